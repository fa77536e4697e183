"""A checkpoint that would be lost with its pod, or could not be written, is refused at submit."""

from __future__ import annotations

import pytest

from training.jobs.errors import JobSpecError
from training.jobs.kept import check_kept
from training.jobs.pod_settings import Mount

MOUNTS = (
    Mount("models", "/models"),
    Mount("cells", "/data", read_only=True),
    Mount("more", "/data/out/"),
    Mount("old", "/models/old", read_only=True),
)


@pytest.mark.parametrize(
    "out",
    [
        "/models/x.safetensors",
        "/models/deep/er/x",
        "/data/out/x",
        "file:///models/x",
        "file:///models/a%20b",
        "s3://ran/x.safetensors",
        "gs://ran/x",
    ],
)
def test_a_volume_that_can_be_written_and_a_store_keep_it(out: str) -> None:
    check_kept(out, MOUNTS)


@pytest.mark.parametrize(
    "out",
    [
        *("x.safetensors", "/tmp/x", "/var/lib/rancast/x", "/modelsx/x"),
        *("/models/../tmp/x", "/models", "file:///tmp/x", "FILE:///tmp/x"),
    ],
)
def test_what_goes_with_the_pod_is_refused(out: str) -> None:
    with pytest.raises(JobSpecError, match="outlives the pod for --out"):
        check_kept(out, MOUNTS)


@pytest.mark.parametrize("out", ["/data/x", "/data/in/x", "/models/old/x"])
def test_a_volume_that_is_only_read_is_refused_by_the_innermost_mount(out: str) -> None:
    with pytest.raises(JobSpecError, match=r"can be written.*read only"):
        check_kept(out, MOUNTS)
