"""Names of jobs: a run id that people choose or a digest gives, and the object's name made of it.

A run id is a label value and part of the names of a Job, its pods and its Service. Pods of an
Indexed Job have the host name NAME-INDEX, those of a TrainJob are called NAME-node-0-INDEX-XXXXX;
both have to stay within the 63 characters of an RFC 1123 label (of TrainJobs of more than ten nodes
that takes shorter run ids).
"""

from __future__ import annotations

import re

from training.jobs.errors import JobSpecError

PREFIX = "rancast-"
MAXIMUM_CHARACTERS = 40
_RUN_ID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def check_run_id(run_id: str) -> str:
    """The run id, where it is one.

    Raises:
        JobSpecError: It is too long, or has other characters than it may.
    """
    if len(run_id) > MAXIMUM_CHARACTERS or not _RUN_ID.fullmatch(run_id):
        raise JobSpecError(
            f"expected a run id of at most {MAXIMUM_CHARACTERS} lower-case letters, digits and "
            f"hyphens that starts and ends with a letter or digit, got {run_id!r}"
        )
    return run_id


def object_name(run_id: str) -> str:
    """Name of the objects that belong to a run."""
    return PREFIX + run_id
