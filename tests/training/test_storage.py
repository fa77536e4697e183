"""Data and checkpoints by URL, with a real S3-compatible server on the loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs
from typer.testing import CliRunner, Result

import rancast
from kpi.errors import UnreadableFileError
from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from model.config import PRESETS
from model.forecaster import Forecaster
from training.errors import PlaceError, ResumeError, StoreError
from training.exit_status import BAD_INPUT, FAILED
from training.fit_config import FitConfig
from training.storage import StoredFile, check_writable, fetched, place_of, write_file
from training.train import TrainOptions, train

SECRET = "a-secret-of-twenty-letters"
FIT = FitConfig(steps=4, batches_per_step=1, warmup_steps=1, evaluate_every=2, validation_batches=1)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A store that answers as S3 does."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def aws(monkeypatch, endpoint) -> Callable[..., None]:
    """Sets what a user's environment says of the store."""

    def say(**variables: str) -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        said = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "a-key-of-some-letters",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            **variables,
        }
        for name, value in said.items():
            monkeypatch.setenv(name, value)

    say()
    return say


@pytest.fixture
def store(request, endpoint) -> fs.FileSystem:
    """Two empty buckets, `cells` and `models`, and a way to look into them."""
    request.getfixturevalue("aws")
    found = fs.S3FileSystem(
        endpoint_override=endpoint.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
        access_key="a-key-of-some-letters",
        secret_key=SECRET,
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )
    for bucket in ("cells", "models"):
        if found.get_file_info(bucket).type != fs.FileType.NotFound:
            found.delete_dir(bucket)
        found.create_dir(bucket)
    return found


def put(store: fs.FileSystem, key: str, content: bytes) -> None:
    with store.open_output_stream(key) as stream:
        stream.write(content)


def keys(store: fs.FileSystem, bucket: str) -> list[str]:
    found = store.get_file_info(fs.FileSelector(bucket, recursive=True))
    return sorted(info.path for info in found if info.type == fs.FileType.File)


@pytest.fixture
def cells(store, write_table, tmp_path) -> str:
    """A URL below which there is a table."""
    put(store, "cells/north/june.csv", write_table(tmp_path / "june.csv").read_bytes())
    return "s3://cells/north"


@pytest.fixture
def run(monkeypatch, tiny_config, tmp_path) -> Callable[..., Result]:
    monkeypatch.setitem(PRESETS, "nano", tiny_config)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Result:
        options = ["--preset", "nano", "--steps", "2", "--series", "2", "--progress", "json"]
        return CliRunner().invoke(rancast.app, ["train", *arguments, *options])

    return call


def test_a_run_reads_from_a_store_and_writes_to_it_what_it_writes_to_a_disk(
    run, cells, store, tmp_path
):
    url = "s3://models/ran/mine.safetensors"
    result = run(cells, "--out", url)
    assert result.exit_code == 0, result.output
    assert keys(store, "models") == ["models/ran/mine.safetensors"]
    with fetched([place_of(url)]) as (path,):
        stored = load_checkpoint(path)
    assert stored.name == "mine"
    assert stored.training["data"] == ["north"]
    done = json.loads(result.stdout.splitlines()[-1])
    assert (done["checkpoint"], done["digest"]) == (url, stored.digest)
    assert run("june.csv", "--out", "mine.safetensors").exit_code == 0
    local = load_checkpoint(Path("mine.safetensors"))
    assert local.training["data_digest"] == stored.training["data_digest"]
    assert all(bool((local.weights[k] == stored.weights[k]).all()) for k in local.weights)
    assert list(tmp_path.glob("rancast-*")) == []


def test_finetune_starts_from_a_checkpoint_in_a_store(cells, store, tiny_config, tmp_path):
    weights = Forecaster(tiny_config).state_dict()
    base = tmp_path / "base.safetensors"
    digest = save_checkpoint(Checkpoint("base", "1", tiny_config, weights, "1"), base)
    put(store, "models/base.safetensors", base.read_bytes())
    options = ["--steps", "2", "--horizon", "8", "--series", "2", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(
        rancast.app, ["finetune", "s3://models/base.safetensors", cells, *options]
    )
    assert result.exit_code == 0, result.output
    assert load_checkpoint(tmp_path / "out").training["base"]["digest"] == digest


def test_calibrate_reads_from_a_store_and_writes_to_it(cells, store, tiny_config, tmp_path):
    weights = Forecaster(tiny_config).state_dict()
    base, out = tmp_path / "base.safetensors", "s3://models/calibrated.safetensors"
    save_checkpoint(Checkpoint("base", "1", tiny_config, weights, "1"), base)
    put(store, "models/base.safetensors", base.read_bytes())
    options = ["--max-origins", "40", "--horizon", "8", "--progress", "json", "--out", out]
    result = CliRunner().invoke(
        rancast.app, ["calibrate", "s3://models/base.safetensors", cells, *options]
    )
    assert result.exit_code == 0, result.output
    start, *steps, done = (json.loads(line) for line in result.stdout.splitlines())
    assert (start["event"], start["command"]) == ("start", "calibrate")
    assert steps[-1]["step"] == steps[-1]["of"] == done["step"] == done["of"]
    assert (done["event"], done["checkpoint"]) == ("done", out)
    with fetched([place_of(out)]) as (path,):
        assert load_checkpoint(path).calibration is not None


def test_the_state_of_a_run_that_was_stopped_lies_in_the_store_and_is_gone_on_from(
    cells, store, catalogue, monkeypatch, tiny_config
):
    monkeypatch.setitem(PRESETS, "nano", tiny_config)
    out = place_of("s3://models/mine.safetensors")
    options = TrainOptions(out, (place_of(cells),), preset="nano", series=2, fit=FIT)

    def stop(progress):
        if progress.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(options, catalogue, print, stop)
    assert keys(store, "models") == ["models/mine.safetensors.run"]
    with pytest.raises(ResumeError, match=r"s3://models/mine\.safetensors\.run belongs to a run"):
        train(replace(options, series=3), catalogue, print, print)
    steps = []
    train(options, catalogue, print, lambda progress: steps.append(progress.step))
    assert steps == [3, 4]
    assert keys(store, "models") == ["models/mine.safetensors"]


@pytest.mark.parametrize(
    ("data", "out", "reason"),
    [
        ("s3://cells/south", "s3://models/x", "s3://cells/south: expected a file, or files below"),
        ("s3://nowhere/south", "s3://models/x", "s3://nowhere/south: expected a file"),
        ("s3://cells/north", "s3://nowhere/x", "s3://nowhere/x cannot be written"),
        ("s3://cells/north", "s3://models", "directory"),
        ("s3://cells/north", "s3://nowhere/", "below a bucket"),
        ("s3://cells/north", "s3://models/ran", "directory"),
        ("s3://cells/north", "s3:///x", "s3://BUCKET/KEY"),
        ("s3://cells/north", "nosuch://models/x", "nosuch"),
        ("s3://cells/north", "file://models/x", "three slashes"),
    ],
)
@pytest.mark.usefixtures("cells")
def test_a_place_that_cannot_be_used_ends_the_run_before_the_first_step(
    run, store, data, out, reason
):
    put(store, "models/ran/other", b"")
    result = run(data, "--out", out)
    assert result.exit_code == BAD_INPUT, result.output
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert reason in told[-1]["reason"]
    assert "step" not in [event["event"] for event in told]
    assert keys(store, "models") == ["models/ran/other"]


def test_a_store_that_does_not_answer_may_do_so_later_and_no_secret_is_told(run, aws):
    aws(AWS_ENDPOINT_URL="http://127.0.0.1:9")
    result = run("--out", "s3://models/x")
    assert result.exit_code == FAILED, result.output
    assert "NETWORK_CONNECTION" in result.output
    assert SECRET not in result.output


@pytest.mark.usefixtures("aws")
def test_secrets_are_taken_out_of_what_a_store_says():
    class Talkative(SimpleNamespace):
        def open_input_stream(self, _key):
            raise OSError(f"AWS Error ACCESS_DENIED for {SECRET} of a-key-of-some-letters")

    file = StoredFile("s3://models/x", "models/x", Talkative())
    with pytest.raises(PlaceError) as told:
        file.read_bytes()
    assert "for <AWS_SECRET_ACCESS_KEY> of <AWS_ACCESS_KEY_ID>" in str(told.value)
    assert told.value.__cause__ is None


@pytest.mark.parametrize("url", ["s3://key:word@models/x", "gs://key:word@models/x"])
def test_credentials_in_a_url_are_refused_and_not_repeated(url):
    with pytest.raises(PlaceError, match="without credentials") as told:
        place_of(url)
    assert "word" not in str(told.value)


@pytest.mark.parametrize("endpoint", ["ftp://x", "http://key:word@x", "https://"])
def test_an_endpoint_that_is_none_is_refused(aws, endpoint):
    aws(AWS_ENDPOINT_URL=endpoint)
    with pytest.raises(PlaceError, match="AWS_ENDPOINT_URL as http://HOST:PORT"):
        place_of("s3://models/x")


@pytest.mark.usefixtures("store")
def test_a_file_is_replaced_in_one_step_and_stays_where_that_fails():
    file = place_of("s3://models/ran/x")
    assert isinstance(file, StoredFile)
    assert not file.exists()
    write_file(file, b"old")
    assert file.read_bytes() == b"old"
    store = file.filesystem

    class Failing:
        def __getattr__(self, name):
            return getattr(store, name)

        def move(self, _source, _target):
            raise OSError("AWS Error SLOW_DOWN")

    with pytest.raises(StoreError, match="s3://models/ran/x cannot be written: AWS Error SLOW"):
        write_file(replace(file, filesystem=Failing()), b"new")
    assert file.read_bytes() == b"old"
    write_file(file, b"new")
    assert file.read_bytes() == b"new"
    file.unlink()
    assert not file.exists()
    file.unlink(missing_ok=True)
    with pytest.raises(PlaceError, match="cannot be removed"):
        file.unlink()
    with pytest.raises(PlaceError, match="cannot be read"):
        file.read_bytes()


@pytest.mark.usefixtures("store")
def test_the_proof_that_a_place_can_be_written_leaves_what_is_there():
    file = place_of("s3://models/x")
    write_file(file, b"old")
    check_writable(file)
    assert file.read_bytes() == b"old"
    assert not file.with_name("x.probe").exists()


def test_copies_keep_names_and_times_and_go_in_the_end(store):
    put(store, "cells/a/b/june.csv", b"1")
    put(store, "cells/a/july.csv", b"2")
    put(store, "cells/ab.csv", b"3")
    with fetched([place_of("s3://cells/a/"), place_of("s3://cells/ab.csv")]) as (folder, file):
        assert folder.name == "a"
        assert (folder / "b" / "june.csv").read_bytes() == b"1"
        assert (folder / "july.csv").read_bytes() == b"2"
        assert file.name == "ab.csv"
        assert file.read_bytes() == b"3"
        stored = store.get_file_info("cells/ab.csv").mtime_ns
        assert file.stat().st_mtime_ns == pytest.approx(stored, abs=1_000_000)
    assert not folder.exists()
    assert not file.exists()


def test_keys_that_lead_out_of_the_copy_are_refused():
    info = fs.FileInfo("cells/a/../../x", fs.FileType.File, size=1)
    below = fs.FileInfo("cells/a", fs.FileType.Directory)
    store = SimpleNamespace(get_file_info=lambda what: below if what == "cells/a" else [info])
    with (
        pytest.raises(PlaceError, match=r"without '\.\.'"),
        fetched([StoredFile("s3://cells/a", "cells/a", store)]),
    ):
        pass


def test_paths_and_file_urls_are_read_where_they_are(tmp_path):
    path = tmp_path / "a file.csv"
    path.touch()
    url = f"file://{tmp_path}/a%20file.csv"
    with fetched([place_of(str(path)), place_of(url)]) as found:
        assert found == (path, path)
    with pytest.raises(UnreadableFileError, match="found nothing"), fetched([Path("nowhere")]):
        pass


def test_a_full_disk_is_no_wrong_place(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("training.storage.replace_file", full)
    with pytest.raises(OSError, match="No space"):
        check_writable(tmp_path / "x")


def test_other_file_systems_of_pyarrow_are_reached_by_their_urls(monkeypatch, tmp_path):
    asked = []

    def from_uri(url):
        asked.append(url)
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "x.bin"

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=from_uri))
    file = place_of("gs://models/x.bin")
    write_file(file, b"1")
    assert asked == ["gs://models/x.bin"]
    assert (tmp_path / "x.bin").read_bytes() == b"1"
