"""Labels and annotations that an API server would refuse are refused before it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from training.jobs.cluster.pod import DIGEST_ANNOTATION, labels
from training.jobs.errors import JobSpecError
from training.jobs.labels import MOST_ANNOTATION_BYTES, check_annotations, check_labels
from training.jobs.pod_settings import PodSettings
from training.jobs.spec import JobSpec

POD = PodSettings("a:1")


@pytest.mark.parametrize(
    "pair",
    [
        ("kueue.x-k8s.io/queue-name", "ran"),
        ("team", ""),
        ("Team_1.a", "B-1_2.c"),
        ("a" * 63, "b" * 63),
        (f"{'a.' * 126}a/x", "1"),
    ],
)
def test_what_a_server_takes_is_taken(pair: tuple[str, str]) -> None:
    check_labels("--label", [pair])
    check_annotations("--annotation", [pair])


@pytest.mark.parametrize(
    "key",
    ["", "/a", "a/", "A.org/x", "a..org/x", "-a", "a-", "a b", "a/b/c", "a" * 64, "a" * 254 + "/x"],
)
def test_a_key_that_is_none_is_refused(key: str) -> None:
    for check in (check_labels, check_annotations):
        with pytest.raises(JobSpecError, match="expected KEY=VALUE after --x"):
            check("--x", [(key, "1")])


@pytest.mark.parametrize("value", ["a b", "-a", "a.", "b" * 64, "a=b", "a\n"])
def test_a_value_that_is_none_of_a_label_is_one_of_an_annotation(value: str) -> None:
    with pytest.raises(JobSpecError, match="after --label team="):
        replace(POD, labels=(("team", value),))
    replace(POD, annotations=(("team", value),))
    with pytest.raises(JobSpecError, match="after --node-selector team="):
        replace(POD, node_selector=(("team", value),))


def test_a_key_is_given_once() -> None:
    with pytest.raises(JobSpecError, match="expected a once after --label"):
        replace(POD, labels=(("a", "1"), ("a", "2")))


def test_annotations_have_room_for_so_much() -> None:
    value = "x" * (MOST_ANNOTATION_BYTES - 1)
    replace(POD, annotations=(("a", value),))
    with pytest.raises(JobSpecError, match="bytes after --annotation"):
        replace(POD, annotations=(("a", f"{value}x"),))


def test_no_user_can_change_that_by_which_jobs_are_found() -> None:
    for key in (*labels(JobSpec("one", ("train",), pod=POD)), DIGEST_ANNOTATION):
        with pytest.raises(JobSpecError, match=f"rancast itself sets {key}"):
            replace(POD, labels=((key, "mine"),))
        with pytest.raises(JobSpecError, match=f"rancast itself sets {key}"):
            replace(POD, annotations=((key, "mine"),))
