"""What a job may be asked to be, and that the same one has the same name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.jobs.errors import JobSpecError
from training.jobs.names import check_run_id, object_name
from training.jobs.pod_settings import Mount, PodSettings, Toleration, amount
from training.jobs.spec import JobSpec, with_own_run_id

SPEC = JobSpec("one", ("train", "cells", "--out", "mine.safetensors"))


def test_the_same_job_has_the_same_name_and_another_has_another() -> None:
    assert with_own_run_id(SPEC) == with_own_run_id(replace(SPEC, run_id="two"))
    assert with_own_run_id(SPEC).run_id.startswith("train-")
    others = [
        replace(SPEC, arguments=("train", "cells", "--out", "other.safetensors")),
        replace(SPEC, nodes=2),
        replace(SPEC, pod=PodSettings("image")),
        replace(SPEC, environment=(("A", "b"),)),
        replace(SPEC, directory="/data"),
    ]
    names = {with_own_run_id(each).run_id for each in (SPEC, *others)}
    assert len(names) == 1 + len(others)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=2))
def test_the_name_that_a_content_gives_can_always_be_a_name(arguments: list[str]) -> None:
    check_run_id(with_own_run_id(replace(SPEC, arguments=tuple(arguments))).run_id)


@pytest.mark.parametrize("run_id", ["", "-a", "a-", "A", "a_b", "a.b", "../a", "a" * 41, "a\n"])
def test_a_run_id_that_is_no_label_is_refused(run_id: str) -> None:
    with pytest.raises(JobSpecError, match="expected a run id"):
        replace(SPEC, run_id=run_id)


def test_the_objects_name_is_made_of_the_run_id() -> None:
    assert object_name("one") == "rancast-one"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arguments": ()}, "a command of rancast"),
        ({"nodes": 0}, "nodes of at least 1"),
        ({"processes": 0}, "processes of at least 1"),
        ({"deadline_seconds": 0}, "deadline_seconds of at least 1"),
        ({"retries": -1}, "retries of at least 0"),
        ({"retries": 2**31}, "retries of at most"),
        ({"deadline_seconds": 2**31}, "deadline_seconds of at most"),
        ({"keep_seconds": 2**31}, "keep_seconds of at most"),
        ({"keep_seconds": 599}, "keep_seconds of at least 600"),
        ({"environment": (("A B", "c"),)}, "name of an environment variable"),
        ({"environment": (("A", "b"), ("A", "c"))}, "each variable once"),
    ],
)
def test_what_cannot_be_is_refused_with_what_was_expected(change: dict, words: str) -> None:
    with pytest.raises(JobSpecError, match=words):
        replace(SPEC, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"environment": (("AWS_SECRET_ACCESS_KEY", "x"),)},
        {"environment": (("AWS_ACCESS_KEY_ID", "x"),)},
        *(
            {"environment": ((name, "hush"),)}
            for name in ("API_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING")
        ),
        *(
            {"environment": ((name, "hush"),)}
            for name in ("my_password", "key", "HF_TOKEN", "MYTOKEN", "SLACK_SECRET_WEBHOOK_URL")
        ),
        *({"environment": ((name, "hush"),)} for name in ("GCP_CREDENTIALS", "PRIVATE_KEY")),
        {"pod": PodSettings("image", annotations=(("from", "https://me:hush@store.example"),))},
        {"environment": (("ENDPOINT", "https://me:hush@store.example"),)},
        {"arguments": ("train", "s3://key:hush@bucket/cells")},
        {"arguments": ("train", "--out=s3://key:hush@bucket/mine")},
    ],
)
def test_a_secret_in_a_job_is_refused_without_repeating_it(change: dict) -> None:
    with pytest.raises(JobSpecError, match="--secret") as refusal:
        replace(SPEC, **change)
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    [
        "GOOGLE_APPLICATION_CREDENTIALS",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "SORT_KEY",
        "PRIMARY_KEY",
        "TOKENIZERS_PARALLELISM",
        "KEYBOARD",
    ],
)
def test_a_name_of_where_a_secret_lies_is_no_secret(name: str) -> None:
    replace(SPEC, environment=((name, "/var/run/secrets/key.json"),))


def test_a_url_without_a_password_is_taken() -> None:
    replace(SPEC, arguments=("train", "s3://bucket/a@b?endpoint_override=store.example:9000"))


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("cells:/data", Mount("cells", "/data")),
        ("cells:/data:ro", Mount("cells", "/data", True)),
        ("cells:/data:rw", Mount("cells", "/data")),
    ],
)
def test_a_mount_is_a_claim_and_a_path(text: str, mount: Mount) -> None:
    assert Mount.parse(text) == mount


@pytest.mark.parametrize(
    "text",
    ["cells", "cells:data", "cells:/", "cells:/a/../b", "Cells:/a", "cells:/a:no", "c:/tmp", ":/a"],
)
def test_a_mount_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(JobSpecError, match="expected"):
        Mount.parse(text)


@pytest.mark.parametrize("text", ["", "=a", "a:", "a:Never", ":NoSchedule"])
def test_a_toleration_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(JobSpecError, match="expected KEY"):
        Toleration.parse(text)


@pytest.mark.parametrize(
    "change",
    [
        {"image": ""},
        {"image": " a"},
        {"cpu": "many"},
        {"memory": "4 GB"},
        {"gpus": -1},
        {"user_id": 0},
        {"user_id": 2**31},
        {"image_pull_policy": "Sometimes"},
        {"scratch": "20 GB"},
        {"memory": "4KB"},
        {"memory": "4K"},
        {"secrets": ("Not A Name",)},
        {"image_pull_secrets": ("no/name",)},
        {"mounts": (Mount("a", "/data"), Mount("b", "/data"))},
    ],
)
def test_pod_settings_that_cannot_be_are_refused(change: dict) -> None:
    with pytest.raises(JobSpecError, match="expected"):
        replace(PodSettings("image"), **change)


@pytest.mark.parametrize(
    ("quantity", "value"),
    [("2", 2.0), ("500m", 0.5), ("2.5", 2.5), ("4Gi", 4 * 1024.0**3), ("1k", 1e3), ("3M", 3e6)],
)
def test_a_quantity_comes_to_a_number(quantity: str, value: float) -> None:
    assert amount("cpu", quantity) == value
