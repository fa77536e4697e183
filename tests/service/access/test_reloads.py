import pytest
from prometheus_client import CollectorRegistry

from service.access.reloads import Reloads, WatchedFiles
from service.errors import ServiceError
from service.metrics import Metrics
from tests.service.fakes import FakeClock

pytestmark = pytest.mark.anyio


class Target:
    """Fails as often as it has errors."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.reads = 0

    def reload(self):
        self.reads += 1
        if self.errors:
            raise self.errors.pop()


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / name for name in ("first", "second")]
    for path in found:
        path.write_text("1")
    return found


def reloads(registry, paths, *targets):
    watched = [
        WatchedFiles(path.name, [path], target) for path, target in zip(paths, targets, strict=True)
    ]
    return Reloads(watched, 0.001, Metrics(registry, FakeClock(), "near-rt"))


def counted(registry, kind, result):
    labels = {"kind": kind, "result": result}
    return registry.get_sample_value("rancast_reloads_total", labels) or 0


async def test_what_goes_wrong_with_one_item_keeps_no_other_from_being_read(
    registry, paths, caplog
):
    first, second = Target(RuntimeError("a bug")), Target()
    looking = reloads(registry, paths, first, second)
    for path in paths:
        path.write_text("22")
    await looking.look()
    assert second.reads == 1
    assert counted(registry, "first", "failed") == 1
    (record,) = [r for r in caplog.records if r.message == "reload_failed"]
    assert record.exc_info


async def test_what_failed_through_no_fault_of_the_files_is_tried_again(registry, paths):
    target = Target(RuntimeError("no thread is left"))
    looking = reloads(registry, paths[:1], target)
    paths[0].write_text("22")
    for _ in range(3):
        await looking.look()
    assert target.reads == 2
    assert counted(registry, "first", "ok") == 1


async def test_files_that_cannot_be_used_are_read_once(registry, paths):
    target = Target(ServiceError("line 1"), ServiceError("line 1"))
    looking = reloads(registry, paths[:1], target)
    paths[0].write_text("22")
    for _ in range(3):
        await looking.look()
    assert target.reads == 1


async def test_a_look_that_fails_is_counted_and_not_the_last(registry, paths, monkeypatch):
    target = Target()
    looking = reloads(registry, paths[:1], target)
    with monkeypatch.context() as patch:
        patch.setattr("service.access.reloads.fingerprint", lambda _: 1 / 0)
        await looking.look()
    assert counted(registry, "first", "failed") == 1
    await looking.look()
    assert target.reads == 1
