"""What every backend has to do. A backend is tested by a class that inherits this one.

It gives a fixture `site`: the backend, and jobs whose process is `stand_in.py`. Whatever runs the
processes has to run them on this machine, because tests look whether they are gone, and to leave
them `tmp_path`: where a node gives pods a `/tmp` of their own, that has to lie elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from training.jobs.backend import TrainingBackend, wait_for
from training.jobs.errors import JobConflictError, JobNotFoundError
from training.jobs.spec import JobSpec
from training.jobs.status import Cause, JobStatus, Phase

STAND_IN = Path(__file__).with_name("stand_in.py")


@dataclass(frozen=True)
class Site:
    """A backend under test.

    Attributes:
        open: Makes the backend anew, as another process would.
        sample: A job of it; tests change its arguments and limits.
        retries: Whether the backend itself starts a failed job again.
        bad_data_is_final: Whether it knows exit status 42 (clusters before 1.26 do not).
        poll_seconds: Between two looks at a job.
    """

    open: Callable[[], TrainingBackend]
    sample: JobSpec
    retries: bool = True
    bad_data_is_final: bool = True
    poll_seconds: float = 0.02

    def spec(self, *arguments: str, **changes: object) -> JobSpec:
        return replace(self.sample, arguments=arguments, **changes)  # type: ignore[arg-type]

    def until(
        self,
        run_id: str,
        enough: Callable[[JobStatus], bool] = lambda status: status.finished,
    ) -> JobStatus:
        """The first status that is enough."""
        *_, last = wait_for(self.open(), run_id, enough, poll_seconds=self.poll_seconds)
        return last

    def until_gone(self, run_id: str) -> None:
        with pytest.raises(JobNotFoundError):
            self.until(run_id, lambda _: False)


def runs(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet waited for does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


class BackendContract:
    @pytest.fixture
    def site(self) -> Site:
        raise NotImplementedError

    def test_a_job_that_succeeds_says_how_far_it_came(self, site):
        submission = site.open().submit(site.spec("train", "3"))
        assert submission.fresh
        status = site.until("one")
        assert status.phase is Phase.SUCCEEDED
        assert status.problem is None
        assert (status.progress.done, status.progress.of) == (3, 3)
        assert status.progress.checkpoint == "mine.safetensors"
        assert status.created_at <= status.started_at <= status.finished_at

    def test_submitting_twice_is_one_job(self, site):
        first = site.open().submit(site.spec("train", "2"))
        second = site.open().submit(site.spec("train", "2"))
        assert (first.fresh, second.fresh) == (True, False)
        assert second.status.created_at == first.status.created_at
        assert [job.run_id for job in site.open().list()] == ["one"]

    def test_a_job_that_has_ended_is_not_run_again(self, site):
        site.open().submit(site.spec("train", "1"))
        ended = site.until("one")
        again = site.open().submit(site.spec("train", "1"))
        assert not again.fresh
        assert again.status.finished_at == ended.finished_at

    def test_another_job_of_the_same_run_id_is_a_conflict(self, site):
        site.open().submit(site.spec("train", "2"))
        with pytest.raises(JobConflictError, match="another job is called one"):
            site.open().submit(site.spec("train", "3"))

    def test_all_jobs_are_found_by_whoever_asks(self, site):
        for run_id in ("one", "two"):
            site.open().submit(site.spec("train", "1", run_id=run_id))
            site.until(run_id)
        listed = {job.run_id: job.phase for job in site.open().list()}
        assert listed == {"one": Phase.SUCCEEDED, "two": Phase.SUCCEEDED}

    def test_bad_data_fail_at_once_with_their_reason(self, site):
        # Where the backend does not know the status, only its words are looked at.
        retries = 2 if site.bad_data_is_final else 0
        site.open().submit(site.spec("fail", "42", "cells.csv: no samples", retries=retries))
        status = site.until("one")
        assert status.phase is Phase.FAILED
        assert status.problem.cause is Cause.BAD_DATA
        assert "cells.csv: no samples" in status.problem.message
        if site.bad_data_is_final:
            assert status.failed_attempts == 1

    def test_a_failure_is_told_with_the_last_words_of_the_process(self, site):
        site.open().submit(site.spec("fail", "3", "the disk is full", retries=0))
        problem = site.until("one").problem
        assert problem.cause is Cause.ERROR
        assert "the disk is full" in problem.message
        assert "exit status 3" in problem.message

    def test_every_attempt_of_a_job_that_is_retried_can_be_read(self, site):
        if not site.retries:
            pytest.skip("attempts are torchrun's own here")
        site.open().submit(site.spec("fail", "1", "again and again", retries=1))
        assert site.until("one").failed_attempts == 2
        with site.open().logs("one") as lines:
            read = list(lines)
        assert len({line.source for line in read}) == 2
        assert sum("again and again" in line.text for line in read) == 2

    def test_a_second_attempt_may_succeed(self, site, tmp_path):
        if not site.retries:
            pytest.skip("attempts are torchrun's own here")
        site.open().submit(site.spec("flaky", str(tmp_path / "begun"), retries=1))
        status = site.until("one")
        assert status.phase is Phase.SUCCEEDED
        assert status.failed_attempts == 1
        assert status.problem is None

    def test_a_killed_process_is_told_from_one_that_failed(self, site):
        site.open().submit(site.spec("die", retries=0))
        problem = site.until("one").problem
        assert problem.cause is Cause.KILLED
        assert "memory" in problem.message

    def test_a_job_that_takes_too_long_is_ended(self, site, tmp_path):
        file = tmp_path / "pid"
        site.open().submit(site.spec("hang", str(file), deadline_seconds=1))
        status = site.until("one")
        assert status.phase is Phase.FAILED
        assert status.problem.cause is Cause.DEADLINE
        assert "--deadline" in status.problem.message

    def test_a_cancelled_job_is_gone_with_its_process(self, site, tmp_path):
        file = tmp_path / "pid"
        site.open().submit(site.spec("hang", str(file)))
        site.until("one", lambda status: status.progress is not None and file.exists())
        site.open().cancel("one")
        site.until_gone("one")
        assert not runs(int(file.read_text()))
        assert site.open().list() == ()

    def test_a_cancelled_run_id_can_be_used_again(self, site):
        site.open().submit(site.spec("train", "1"))
        site.open().cancel("one")
        site.until_gone("one")
        assert site.open().submit(site.spec("train", "2")).fresh
        assert site.until("one").progress.of == 2

    def test_cancelling_what_is_not_there_is_done(self, site):
        site.open().cancel("never-was")

    def test_a_job_that_is_not_there_is_said_not_to_be(self, site):
        with pytest.raises(JobNotFoundError, match="never-was"):
            site.open().status("never-was")
        with (
            pytest.raises(JobNotFoundError, match="never-was"),
            site.open().logs("never-was") as lines,
        ):
            list(lines)

    def test_followed_logs_bring_each_line_once_until_the_end(self, site):
        site.open().submit(site.spec("train", "40"))
        with site.open().logs("one", follow=True) as lines:
            read = [line.text for line in lines]
        assert read[0] == "this line is no event"
        epochs = [text for text in read if '"event": "epoch"' in text]
        assert len(epochs) == len(set(epochs)) == 40
        assert '"event": "done"' in read[-1]

    def test_logs_can_be_left_while_the_job_goes_on(self, site, tmp_path):
        site.open().submit(site.spec("hang", str(tmp_path / "pid")))
        with site.open().logs("one", follow=True) as lines:
            assert next(iter(lines)).text == "this line is no event"
        assert site.open().status("one").phase is Phase.RUNNING
        site.open().cancel("one")
        site.until_gone("one")

    def test_variables_reach_the_process(self, site):
        site.open().submit(site.spec("variable", "COLOUR", environment=(("COLOUR", "blue"),)))
        site.until("one")
        with site.open().logs("one") as lines:
            assert "variable blue" in [line.text for line in lines]
