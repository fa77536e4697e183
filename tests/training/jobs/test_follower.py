"""Logs of pods as they come, through streams that break."""

from __future__ import annotations

import threading

import pytest

from training.jobs.cluster.follower import LogFollower
from training.jobs.cluster.pods import Pods
from training.jobs.errors import BackendError, NotAllowedError, SilentLogError

START = 1_790_000_000_000_000_000


@pytest.fixture
def pods(cluster, connected):
    cluster.idle = True
    return Pods(connected(), "one", "train")


@pytest.fixture
def pod(api):
    """Makes a pod of the run with lines."""
    from tests.training.jobs.api_double import PodLog

    def make(name: str, lines: list[str], phase: str = "Running") -> PodLog:
        stamps = ((START + index // 2, text) for index, text in enumerate(lines))
        log = api.logs[name] = PodLog(list(stamps), ended=phase != "Running")
        about = {"name": name, "labels": {"rancast/run-id": "one"}}
        api.put("pods", {"metadata": about, "status": {"phase": phase}})
        return log

    return make


def end(api, name: str) -> None:
    with api.changed:
        api.logs[name].ended = True
        api.objects["pods", name]["status"] = {"phase": "Succeeded"}
        api.changed.notify_all()


def test_a_stream_that_breaks_again_and_again_brings_each_line_once(api, pods, pod):
    lines = [f"line {index}" for index in range(12)]
    pod("first", lines)
    api.cut_logs_after_bytes += [0, 30, 31, 95, 200, 201]
    broken = threading.Event()

    def finished() -> bool:
        if not api.cut_logs_after_bytes and not broken.is_set():
            broken.set()
            end(api, "first")
        return broken.is_set()

    follower = LogFollower(pods, finished, poll_seconds=0.01)
    assert [line.text for line in follower] == lines


def test_every_pod_of_a_job_is_read(pods, pod):
    pod("first", ["a", "b"], "Failed")
    pod("second", ["c"], "Succeeded")
    read = list(LogFollower(pods, lambda: True, poll_seconds=0.01))
    assert {(line.source, line.text) for line in read} == {
        ("first", "a"),
        ("first", "b"),
        ("second", "c"),
    }


def test_a_pod_that_comes_later_is_found(pods, pod):
    pod("first", ["a"], "Failed")
    looks = iter(range(100))

    def finished() -> bool:
        look = next(looks)
        if look == 2:
            pod("second", ["b"], "Succeeded")
        return look > 3

    read = LogFollower(pods, finished, poll_seconds=0.01)
    assert [line.text for line in read] == ["a", "b"]


def test_what_is_there_can_be_read_of_a_pod_that_goes_on(pods, pod):
    pod("first", ["a", "b"])
    read = LogFollower(pods, lambda: False, follow=False, poll_seconds=0.01)
    assert [line.text for line in read] == ["a", "b"]


def test_a_pod_that_is_gone_ends_its_stream_and_not_the_others(api, pods, pod):
    pod("first", ["a"])
    pod("second", ["b"], "Succeeded")
    api.cut_logs_after_bytes += [1, 1, 1]
    looks = iter(range(100))

    def finished() -> bool:
        if next(looks) == 3:
            api.remove("pods", "first")
            with api.changed:
                api.logs["first"].ended = True
        return ("pods", "first") not in api.objects

    read = [line.text for line in LogFollower(pods, finished, poll_seconds=0.01)]
    assert "b" in read


@pytest.mark.parametrize("follow", [True, False])
def test_a_log_that_may_not_be_read_is_told_at_once(api, pods, pod, follow):
    pod("first", ["a"], "Succeeded")
    pod("second", ["b"], "Succeeded")
    api.forbidden.add(("get", "pods/log"))
    with pytest.raises(NotAllowedError, match=r"the log of first: not allowed.*and 1 more logs"):
        list(LogFollower(pods, lambda: True, follow=follow, poll_seconds=0.01))
    assert api.requests.count(("get", "pods/log")) == 2


@pytest.mark.parametrize("follow", [True, False])
def test_a_pod_that_never_said_a_word_is_told_of_after_the_others(
    api, pods, pod, monkeypatch, follow
):
    monkeypatch.setattr("training.jobs.cluster.follower.BRIEF_SECONDS", 0.05)
    pod("first", ["a"], "Failed")
    pod("second", ["b"], "Succeeded")
    del api.logs["first"]
    read = list(LogFollower(pods, lambda: True, follow=follow, poll_seconds=0.01))
    assert [line.source for line in read] == ["second", "first"]
    assert read[1].text.startswith("cannot read the log of first: ")


@pytest.mark.parametrize("follow", [True, False])
def test_where_no_pod_said_a_word_that_is_an_error(api, pods, pod, monkeypatch, follow):
    monkeypatch.setattr("training.jobs.cluster.follower.BRIEF_SECONDS", 0.05)
    pod("first", ["a"], "Failed")
    del api.logs["first"]
    with pytest.raises(BackendError, match=r"the log of first: .* waiting to start"):
        list(LogFollower(pods, lambda: True, follow=follow, poll_seconds=0.01))


def test_a_refusal_between_answers_is_a_servers_that_has_just_started(api, pods, pod):
    pod("first", ["a"])
    looks = iter(range(100))

    def finished() -> bool:
        look = next(looks)
        if look == 2:
            api.forbidden.add(("list", "pods"))
        if look == 5:
            api.forbidden.discard(("list", "pods"))
            end(api, "first")
        return look >= 5

    read = LogFollower(pods, finished, poll_seconds=0.01)
    assert [line.text for line in read] == ["a"]


def test_a_silent_log_of_a_run_that_is_over_is_not_waited_for(pods, pod, monkeypatch):
    monkeypatch.setattr("training.jobs.cluster.pods.TIMEOUT_SECONDS", (3.0, 0.5))
    monkeypatch.setattr("training.jobs.cluster.follower.BRIEF_SECONDS", 0.1)
    pod("first", ["a"])
    with pytest.raises(SilentLogError):
        list(LogFollower(pods, lambda: True, poll_seconds=0.01))


def test_a_log_that_cannot_be_read_while_the_run_goes_on_is_tried_again(api, pods, pod):
    log = pod("first", ["a"])
    del api.logs["first"]
    looks = iter(range(1000))

    def finished() -> bool:
        if next(looks) == 5:
            api.logs["first"] = log
            end(api, "first")
        return bool(log.ended)

    read = LogFollower(pods, finished, poll_seconds=0.01)
    assert [line.text for line in read] == ["a"]


def test_a_log_that_is_silent_is_waited_for(api, pods, pod, monkeypatch):
    monkeypatch.setattr("training.jobs.cluster.pods.TIMEOUT_SECONDS", (3.0, 0.5))
    monkeypatch.setattr("training.jobs.cluster.follower.PATIENCE_SECONDS", 0.0)
    log = pod("first", ["a"])

    def finished() -> bool:
        # Every time that it says nothing, it is asked again.
        if api.requests.count(("get", "pods/log")) > 4 and not log.ended:
            with api.changed:
                log.lines.append((START + 10**9, "b"))
            end(api, "first")
        return bool(log.ended)

    read = LogFollower(pods, finished, poll_seconds=0.01)
    assert [line.text for line in read] == ["a", "b"]


def test_logs_that_went_with_their_pods_are_an_error(pods):
    with pytest.raises(BackendError, match="no pod of one is left, and its logs went with it"):
        list(LogFollower(pods, lambda: True, poll_seconds=0.01))
    assert list(LogFollower(pods, lambda: False, follow=False, poll_seconds=0.01)) == []


def test_pods_that_may_not_be_looked_for_are_an_error_at_once(api, pods):
    api.forbidden.add(("list", "pods"))
    with pytest.raises(BackendError, match="list pods: not allowed"):
        list(LogFollower(pods, lambda: True, poll_seconds=0.01))


def test_closing_ends_the_iteration(api, pods, pod):
    pod("first", ["a"])
    follower = LogFollower(pods, lambda: False, poll_seconds=0.01)
    lines = iter(follower)
    assert next(lines).text == "a"
    follower.close()
    end(api, "first")
    assert list(lines) == []
