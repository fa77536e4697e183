"""Models follow their files, and a file that cannot be used changes nothing."""

from __future__ import annotations

import asyncio
import os
import shutil

import pytest
from prometheus_client import CollectorRegistry

from model.errors import CheckpointError
from service.errors import ConflictError, NotFoundError, StartupError
from service.metrics import Metrics
from service.models.loader import ModelLoader
from service.models.reference import parse_reference
from service.models.registry import Models
from service.models.repository import FileState, ModelRepository
from service.models.routing import Routing
from service.models.served import ServedModel
from tests.service.fakes import FakeClock
from tests.service.models.makers import make_model

pytestmark = pytest.mark.anyio


class TextLoader(ModelLoader):
    """Reads files of the form `NAME VERSION`, in the place of checkpoints."""

    def __init__(self) -> None:
        self.loads = 0

    async def load(self, file):
        self.loads += 1
        words = file.read_text().split()
        if len(words) != 2:
            raise CheckpointError(f"{file} is no checkpoint")
        if words[0] == "bug":
            raise ZeroDivisionError("oops")
        model = make_model(words[0], words[1], f"sha256:{self.loads}")
        model.file = file
        return model

    def stop(self):
        pass


class Repository:
    def __init__(self, folder, models_limit=8, routing=None):
        self.folder = folder
        self.base = folder / "base.safetensors"
        self.registry = CollectorRegistry()
        metrics = Metrics(self.registry, FakeClock(), "near-rt")
        self.models = Models(metrics, routing)
        self.loader = TextLoader()
        self.told: list[ServedModel] = []
        self.it = ModelRepository(
            self.models,
            self.loader,
            base=self.base,
            directory=folder,
            models_limit=models_limit,
            poll_seconds=1000,
            metrics=metrics,
            clock=FakeClock(),
            on_load=self.told.append,
        )

    def write(self, name, text):
        """As a careful writer does: whole, or not at all."""
        path = self.folder / f"{name}.safetensors"
        path.parent.mkdir(exist_ok=True)
        partial = self.folder / "partial"
        partial.write_text(text)
        os.replace(partial, path)
        return path

    async def settle(self):
        await self.it.look()
        await self.it.look()

    @property
    def served(self):
        return ["@".join(model.key) for model in self.models.served]

    def states(self):
        return {file.path.stem: file.state for file in self.it.files}


@pytest.fixture
async def repository(tmp_path):
    made = Repository(tmp_path)
    made.write("base", "a 1")
    made.write("further", "a 2")
    await made.it.open()
    yield made
    await made.it.stop()


async def test_the_base_and_all_others_are_served_from_the_start(repository):
    assert repository.served == ["a@1", "a@2"]
    assert repository.models.default.file == repository.base
    assert [model.key for model in repository.told] == [("a", "1"), ("a", "2")]


async def test_a_new_file_is_served_once_it_has_settled(repository):
    repository.write("folder/new", "b 1")
    await repository.it.look()
    assert repository.served == ["a@1", "a@2"]
    await repository.it.look()
    assert repository.served == ["a@1", "a@2", "b@1"]


async def test_a_file_that_still_grows_is_not_read(repository):
    before = repository.loader.loads
    for words in ("b", "b 1", "b 1 "):
        (repository.folder / "new.safetensors").write_text(words)
        await repository.it.look()
    assert repository.loader.loads == before


async def test_a_file_that_does_not_change_is_read_once(repository):
    for _ in range(3):
        await repository.settle()
    assert repository.loader.loads == 2


async def test_a_changed_file_takes_the_place_of_what_it_held(repository):
    repository.write("further", "a 3")
    await repository.settle()
    assert repository.served == ["a@1", "a@3"]


async def test_a_changed_file_of_the_base_model_is_the_base_model(repository):
    repository.write("base", "a 1.1")
    await repository.settle()
    assert repository.models.default.key == ("a", "1.1")
    assert repository.served == ["a@1.1", "a@2"]


async def test_weights_that_changed_under_the_same_version_are_served(repository):
    before = repository.models.default.identity.digest
    repository.write("base", "a 1 ")
    await repository.settle()
    assert repository.models.default.identity.digest != before
    assert repository.served == ["a@1", "a@2"]


async def test_a_link_that_turns_to_another_folder_is_a_change(repository, tmp_path):
    # As a volume of Kubernetes changes: ..data is turned, the files are links through it.
    volume = tmp_path / "volume"
    for number, version in enumerate(("1", "2")):
        (volume / f"..{number}").mkdir(parents=True)
        (volume / f"..{number}" / "m.safetensors").write_text(f"v {version}")
    (volume / "..data").symlink_to("..0")
    (volume / "m.safetensors").symlink_to("..data/m.safetensors")
    await repository.settle()
    assert "v@1" in repository.served
    (volume / "next").symlink_to("..1")
    os.replace(volume / "next", volume / "..data")
    await repository.settle()
    assert "v@2" in repository.served
    assert "v@1" not in repository.served


@pytest.mark.parametrize("text", ["half", "bug 1", "a 1"])
async def test_a_file_that_cannot_be_used_leaves_what_it_held_in_service(repository, text):
    repository.write("further", text)
    await repository.settle()
    assert repository.served == ["a@1", "a@2"]
    assert repository.states() == {"base": FileState.SERVED, "further": FileState.REFUSED}
    (file,) = [file for file in repository.it.files if file.path.stem == "further"]
    assert file.reason
    failed = {"kind": "models", "result": "failed"}
    assert repository.registry.get_sample_value("rancast_reloads_total", failed) == 1
    repository.write("further", "a 4")
    await repository.settle()
    assert repository.served == ["a@1", "a@4"]


async def test_what_a_refused_file_held_before_can_be_unloaded(repository):
    repository.write("further", "a 1")  # the base model's name and version
    await repository.settle()
    assert repository.states()["further"] is FileState.REFUSED
    await repository.it.unload(parse_reference("a@2"))
    assert repository.served == ["a@1"]


async def test_a_version_that_a_refused_file_holds_is_free_for_others(repository):
    repository.write("further", "a 1")
    await repository.settle()
    repository.write("base", "a 3")
    await repository.settle()
    repository.write("third", "a 1")
    await repository.settle()
    assert repository.served == ["a@1", "a@2", "a@3"]


async def test_a_file_that_went_takes_its_model_with_it(repository):
    (repository.folder / "further.safetensors").unlink()
    await repository.it.look()
    assert repository.served == ["a@1"]
    assert "further" not in repository.states()


async def test_the_default_stays_in_service_although_its_file_went(repository, caplog):
    repository.base.unlink()
    await repository.it.look()
    await repository.it.look()
    assert repository.served == ["a@1", "a@2"]
    assert [r.message for r in caplog.records].count("model_kept") == 1
    repository.models.route(Routing(default=parse_reference("a@2")))
    await repository.it.look()
    assert repository.served == ["a@2"]


async def test_a_pinned_default_stays_in_service_although_its_file_holds_another(tmp_path):
    made = Repository(tmp_path, routing=Routing(default=parse_reference("a@2")))
    made.write("base", "a 1")
    made.write("further", "a 2")
    await made.it.open()
    made.write("further", "a 3")
    await made.settle()
    assert made.served == ["a@1", "a@2", "a@3"]
    assert made.models.default.key == ("a", "2")


async def test_more_models_than_the_limit_are_refused(tmp_path):
    made = Repository(tmp_path, models_limit=2)
    for name, text in (("base", "a 1"), ("c", "c 1"), ("d", "d 1")):
        made.write(name, text)
    await made.it.open()
    assert made.served == ["a@1", "c@1"]
    assert made.states()["d"] is FileState.REFUSED
    await made.it.unload(parse_reference("c"))
    await made.it.load(parse_reference("d"))
    assert made.served == ["a@1", "d@1"]


async def test_what_is_unloaded_stays_so_until_it_is_asked_for_or_changes(repository):
    await repository.it.unload(parse_reference("a@2"))
    await repository.settle()
    assert repository.served == ["a@1"]
    await repository.it.load(parse_reference("a@2"))
    assert repository.served == ["a@1", "a@2"]
    await repository.it.unload(parse_reference("a@2"))
    repository.write("further", "a 2 ")
    await repository.settle()
    assert repository.served == ["a@1", "a@2"]


async def test_what_answers_by_default_is_not_unloaded_nor_anything_with_it(repository):
    for reference in ("a", "a@1"):
        with pytest.raises(ConflictError, match="requests that name no model"):
            await repository.it.unload(parse_reference(reference))
    assert repository.served == ["a@1", "a@2"]


async def test_what_no_file_holds_is_neither_loaded_nor_unloaded(repository):
    with pytest.raises(NotFoundError):
        await repository.it.load(parse_reference("c"))
    with pytest.raises(NotFoundError):
        await repository.it.unload(parse_reference("a@7"))


async def test_loading_what_cannot_be_used_says_why(repository):
    await repository.it.unload(parse_reference("a@2"))
    repository.write("further", "half")
    with pytest.raises(ConflictError, match="no checkpoint"):
        await repository.it.load(parse_reference("a@2"))


async def test_a_base_that_cannot_be_used_ends_the_start(tmp_path):
    made = Repository(tmp_path)
    made.write("base", "half")
    with pytest.raises(StartupError, match="no checkpoint"):
        await made.it.open()


async def test_a_directory_that_is_missing_ends_the_start(tmp_path):
    made = Repository(tmp_path / "missing")
    with pytest.raises(StartupError, match="missing"):
        await made.it.open()


async def test_a_directory_that_goes_leaves_all_models_in_service(repository, tmp_path):
    shutil.rmtree(tmp_path)
    with pytest.raises(OSError, match="No such file"):
        await repository.it.look()
    assert repository.served == ["a@1", "a@2"]
    tmp_path.mkdir()


async def test_two_changes_at_a_time_come_one_after_the_other(repository):
    repository.write("new", "b 1")
    await repository.it.look()
    await asyncio.gather(
        repository.it.look(),
        repository.it.unload(parse_reference("a@2")),
        repository.it.load(parse_reference("a@2")),
    )
    assert repository.served == ["a@1", "a@2", "b@1"]


async def test_hidden_files_and_folders_are_passed_over(repository):
    (repository.folder / ".hidden.safetensors").write_text("h 1")
    (repository.folder / ".folder").mkdir()
    (repository.folder / ".folder" / "x.safetensors").write_text("h 2")
    await repository.settle()
    assert repository.served == ["a@1", "a@2"]
