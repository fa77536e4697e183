"""Local jobs: the contract, and what only processes of this machine can do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.training.jobs.contract import BackendContract, Site, runs
from training.jobs.errors import BackendError, JobSpecError
from training.jobs.local.backend import LocalBackend
from training.jobs.local.folder import JobFolder
from training.jobs.pod_settings import PodSettings
from training.jobs.spec import JobSpec
from training.jobs.status import Cause, Phase


class TestLocal(BackendContract):
    @pytest.fixture
    def site(self, tmp_path, stand_in_python):
        root = tmp_path / "jobs"
        yield Site(
            lambda: LocalBackend(root, stand_in_python),
            JobSpec("one", ("train", "1"), retries=0),
        )
        for job in LocalBackend(root).list():
            LocalBackend(root).cancel(job.run_id)

    def test_a_job_outlives_the_process_that_submitted_it(self, site, tmp_path, stand_in_python):
        file = tmp_path / "pid"
        script = (
            "import os, sys\n"
            "from pathlib import Path\n"
            "from training.jobs.local.backend import LocalBackend\n"
            "from training.jobs.spec import JobSpec\n"
            "root, python, file = sys.argv[1:]\n"
            "LocalBackend(Path(root), python).submit(JobSpec('one', ('hang', file)))\n"
            "os.killpg(0, 9)\n"
        )
        shell = subprocess.run(
            [sys.executable, "-c", script, tmp_path / "jobs", stand_in_python, file],
            start_new_session=True,
            check=False,
        )
        assert shell.returncode == -signal.SIGKILL
        status = site.until("one", lambda status: status.progress is not None)
        assert status.phase is Phase.RUNNING

    def test_a_job_whose_processes_were_killed_is_lost_and_not_running(self, site, tmp_path):
        file = tmp_path / "pid"
        site.open().submit(site.spec("hang", str(file)))
        site.until("one", lambda status: status.progress is not None and file.exists())
        os.killpg(os.getpgid(int(file.read_text())), signal.SIGKILL)
        status = site.until("one")
        assert status.problem.cause is Cause.LOST
        assert "saved state" in status.problem.message

    def test_a_trainer_whose_supervisor_was_killed_still_counts_as_running(self, site, tmp_path):
        file = tmp_path / "pid"
        site.open().submit(site.spec("hang", str(file)))
        site.until("one", lambda status: status.progress is not None and file.exists())
        supervisor = JobFolder(tmp_path / "jobs" / "one").group()
        assert supervisor is not None
        os.kill(supervisor, signal.SIGKILL)
        assert site.open().status("one").phase is Phase.RUNNING
        site.open().cancel("one")
        assert not runs(int(file.read_text()))

    def test_a_command_that_cannot_be_started_says_why(self, site, tmp_path):
        LocalBackend(tmp_path / "jobs", "no-such-python").submit(site.spec("train", "1"))
        problem = site.until("one").problem
        assert problem.cause is Cause.CONFIGURATION
        assert "no-such-python" in problem.message

    def test_the_process_starts_where_the_job_was_submitted(self, site, tmp_path):
        site.open().submit(site.spec("flaky", "begun", directory=str(tmp_path), retries=1))
        site.until("one")
        assert (tmp_path / "begun").exists()

    def test_a_job_that_was_kept_long_enough_goes_with_the_next_submit(self, site, tmp_path):
        site.open().submit(site.spec("train", "1", keep_seconds=600))
        site.until("one")
        path = tmp_path / "jobs" / "one" / "outcome.json"
        outcome = json.loads(path.read_text())
        long_ago = datetime.now(UTC) - timedelta(seconds=601)
        path.write_text(json.dumps({**outcome, "finished_at": long_ago.isoformat()}))
        site.open().submit(site.spec("train", "1", run_id="two"))
        assert [job.run_id for job in site.open().list()] == ["two"]
        site.until("two")

    def test_a_damaged_record_is_named(self, site, tmp_path):
        (tmp_path / "jobs" / "one").mkdir(parents=True)
        (tmp_path / "jobs" / "one" / "job.json").write_text("[]")
        with pytest.raises(BackendError, match=r"one is damaged.*rancast job cancel one"):
            site.open().status("one")
        (tmp_path / "jobs" / "one" / "job.json").unlink()

    @pytest.mark.parametrize(
        ("file", "text"),
        [
            *(("job.json", "[]"), ("job.json", "{"), ("job.json", None)),
            *(("outcome.json", f'{{"finished_at": {at}}}') for at in ("3", '"x"', '"2026-11-30"')),
        ],
    )
    def test_a_damaged_job_is_shown_as_one_beside_the_others(self, site, tmp_path, file, text):
        site.open().submit(site.spec("train", "1"))
        site.until("one")
        path = tmp_path / "jobs" / "one" / file
        path.unlink() if text is None else path.write_text(text)
        if file == "job.json":
            with pytest.raises(BackendError, match=r"one is damaged.*rancast job cancel one"):
                site.open().submit(site.spec("train", "1"))
        site.open().submit(site.spec("train", "1", run_id="two"))
        site.until("two")
        found = {job.run_id: job for job in site.open().list()}
        assert found["two"].phase is Phase.SUCCEEDED
        assert found["one"].problem.cause is Cause.DAMAGED
        assert "rancast job cancel one" in found["one"].problem.message
        site.open().cancel("one")
        assert [job.run_id for job in site.open().list()] == ["two"]

    def test_a_job_that_went_on_without_its_supervisor_is_not_to_be_repeated_blindly(
        self, site, tmp_path
    ):
        begun, go_on = tmp_path / "begun", tmp_path / "go"
        os.mkfifo(go_on)
        site.open().submit(site.spec("wait", str(begun), str(go_on)))
        site.until("one", lambda _: begun.exists())
        supervisor = JobFolder(tmp_path / "jobs" / "one").group()
        assert supervisor is not None
        os.kill(supervisor, signal.SIGKILL)
        go_on.write_bytes(b"now")
        problem = site.until("one").problem
        assert problem.cause is Cause.LOST
        assert "has written mine.safetensors" in problem.message

    def test_a_folder_that_cannot_be_written_is_named(self, site, tmp_path):
        (tmp_path / "jobs").write_text("a file")
        with pytest.raises(BackendError, match="no job can be kept in"):
            site.open().submit(site.spec("train", "1"))
        (tmp_path / "jobs").unlink()

    @pytest.mark.parametrize("change", [{"nodes": 2}, {"pod": PodSettings("image")}])
    def test_what_only_a_cluster_can_do_is_refused(self, site, change):
        with pytest.raises(JobSpecError, match="--backend kubernetes"):
            site.open().submit(site.spec("train", "1", **change))


def test_several_processes_run_under_torchrun() -> None:
    from training.jobs.program import on_one_node

    spec = JobSpec("one", ("train", "--out", "x"), processes=2)
    assert on_one_node("python3", spec) == [
        *("python3", "-P", "-m", "training.torchrun", "--standalone", "--nproc-per-node=2"),
        *("-m", "training.jobs.process", "train", "--out", "x"),
    ]
