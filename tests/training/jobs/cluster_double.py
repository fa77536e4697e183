"""Controllers and a node for the double of an API server: pods are processes of this machine.

The rules are those of the Job controller that training jobs rely on: a pod policy that fails the
Job at an exit status, the limit of retries, the deadline, deletion in the foreground; a TrainJob
has one pod.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from tests.training.jobs.api_double import ApiDouble, Object, PodLog, now

MESSAGE_BYTES = 2048


@dataclass
class ClusterDouble:
    """Runs what is stored in an API server.

    Attributes:
        api: The server.
        idle: Make pods, and leave them as the scheduler finds them.
    """

    api: ApiDouble
    idle: bool = False
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)
    _runs: dict[str, threading.Thread] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.api.on_created = self._created
        self.api.on_deleted = self._deleted

    def close(self) -> None:
        for key in [key for key in self.api.objects if key[0] in ("jobs", "trainjobs")]:
            self.api.delete(*key, policy="Foreground")
        for thread in self._threads:
            thread.join()

    def set_pod(self, name: str, status: Object) -> None:
        with self.api.changed:
            self.api.objects["pods", name]["status"] = status

    def warn(self, kind: str, name: str, reason: str, message: str) -> None:
        self.tell(kind, name, reason, message, "Warning")

    def tell(
        self, kind: str, name: str, reason: str, message: str = "", level: str = "Normal"
    ) -> None:
        about = {"kind": kind, "name": name, "namespace": "training"}
        event = {
            "metadata": {"name": f"{name}.{len(self.api.objects)}"},
            "involvedObject": about,
            "type": level,
            "reason": reason,
            "message": message,
            "lastTimestamp": now(),
        }
        self.api.put("events", event)

    def condition(self, plural: str, name: str, kind: str, reason: str, message: str = "") -> None:
        """Let a controller say something of an object."""
        stamp = now()
        with self.api.changed:
            body = self.api.objects.get((plural, name))
            if body is None:
                return
            status = body.setdefault("status", {})
            status.setdefault("conditions", []).append(
                {
                    "type": kind,
                    "status": "True",
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": stamp,
                }
            )
            if kind == "Complete" and plural == "jobs":
                status["completionTime"] = stamp

    def _created(self, plural: str, body: Object) -> None:
        if plural not in ("jobs", "trainjobs"):
            return
        run = self._run_job if plural == "jobs" else self._run_trainjob
        thread = threading.Thread(target=run, args=(body,))
        self._runs[body["metadata"]["uid"]] = thread
        self._threads.append(thread)
        thread.start()

    def _deleted(self, plural: str, body: Object) -> None:
        thread = threading.Thread(target=self._finish_deletion, args=(plural, body))
        self._threads.append(thread)
        thread.start()

    def _finish_deletion(self, plural: str, body: Object) -> None:
        uid = body["metadata"]["uid"]
        run = self._runs.get(uid)
        while run is not None:
            for pod in self.api.find("pods"):
                if pod["metadata"]["ownerReferences"][0]["uid"] == uid:
                    self._kill(pod["metadata"]["name"])
            run.join(0.01)
            if not run.is_alive():
                break
        self.api.remove(plural, body["metadata"]["name"])

    def _run_job(self, job: Object) -> None:
        name, spec = job["metadata"]["name"], job["spec"]
        with self.api.changed:
            job["status"] = {"startTime": now()}
        ends_at = time.monotonic() + spec["activeDeadlineSeconds"]
        for attempt in range(spec["backoffLimit"] + 1):
            if "deletionTimestamp" in job["metadata"]:
                return
            pod = self._make_pod(f"{name}-{attempt}", "Job", job, spec["template"])
            if self.idle:
                return
            status = self._run_pod(pod, spec["template"]["spec"]["containers"][0], ends_at)
            if status == 0:
                self.condition("jobs", name, "Complete", "CompletionsReached")
                return
            if status is None:
                self.condition("jobs", name, "Failed", "DeadlineExceeded", "was active too long")
                return
            with self.api.changed:
                job["status"]["failed"] = attempt + 1
            if status in _final_statuses(spec):
                self.condition("jobs", name, "Failed", "PodFailurePolicy", f"exit code {status}")
                return
        self.condition("jobs", name, "Failed", "BackoffLimitExceeded", "reached the limit")

    def _run_trainjob(self, trainjob: Object) -> None:
        name, spec = trainjob["metadata"]["name"], trainjob["spec"]
        (job,) = spec["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"][
            "replicatedJobs"
        ]
        trainer = spec["trainer"]
        container = {"name": "node", **{key: trainer[key] for key in ("image", "command", "env")}}
        template = {
            "metadata": job["template"]["spec"]["template"]["metadata"],
            "spec": {"containers": [{**container, "resources": trainer["resourcesPerNode"]}]},
        }
        counts = dict.fromkeys(("active", "failed", "ready", "succeeded", "suspended"), 0)
        with self.api.changed:
            trainjob["status"] = {"jobsStatus": [{"name": "node", **counts}]}
        pod = self._make_pod(f"{name}-node-0-0-abcde", "JobSet", trainjob, template)
        if self.idle:
            return
        ends_at = time.monotonic() + spec["activeDeadlineSeconds"]
        match self._run_pod(pod, container, ends_at):
            case 0:
                self.condition("trainjobs", name, "Complete", "AllJobsCompleted")
            case None:
                self.condition("trainjobs", name, "Failed", "DeadlineExceeded")
            case _:
                self.condition("trainjobs", name, "Failed", "FailedJobs", "jobset failed")

    def _make_pod(self, name: str, kind: str, owner: Object, template: Object) -> Object:
        about = owner["metadata"]
        reference = {
            "apiVersion": "v1",
            "kind": kind,
            "name": about["name"],
            "uid": about["uid"],
        }
        with self.api.changed:
            self.api.logs[name] = PodLog()
            return self.api.put(
                "pods",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": name,
                        "labels": template["metadata"]["labels"],
                        "ownerReferences": [reference],
                    },
                    "spec": template["spec"],
                    "status": {"phase": "Pending"},
                },
            )

    def _run_pod(self, pod: Object, container: Object, ends_at: float) -> int | None:
        """Run a pod to its end: its exit status as a container has it, None past the deadline."""
        name = pod["metadata"]["name"]
        variables = {each["name"]: each["value"] for each in container["env"] if "value" in each}
        process = subprocess.Popen(
            container["command"],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._processes[name] = process
        self._say(pod, container, "Running", {"running": {"startedAt": now()}})
        reader = threading.Thread(target=self._read, args=(name, process))
        reader.start()
        try:
            status = process.wait(max(0.0, ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._kill(name)
            status = None
        reader.join()
        code = 137 if status is None else status if status >= 0 else 128 - status
        reason = "Completed" if status == 0 else "Error"
        ended: Object = {"exitCode": code, "reason": reason, "finishedAt": now()}
        if status != 0:
            text = "".join(f"{line}\n" for _, line in self.api.logs[name].lines)
            ended["message"] = text[-MESSAGE_BYTES:]
        self._say(pod, container, "Succeeded" if status == 0 else "Failed", {"terminated": ended})
        with self.api.changed:
            self.api.logs[name].ended = True
            self.api.changed.notify_all()
        return None if status is None else code

    def _read(self, name: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                with self.api.changed:
                    text = line.decode().rstrip("\n")
                    self.api.logs[name].lines.append((time.time_ns(), text))
                    self.api.changed.notify_all()

    def _say(self, pod: Object, container: Object, phase: str, state: dict[str, Any]) -> None:
        about = {"name": container["name"], "image": container["image"], "imageID": "sha256:0"}
        status = {**about, "ready": phase == "Running", "restartCount": 0, "state": state}
        with self.api.changed:
            pod["status"] = {"phase": phase, "containerStatuses": [status]}

    def _kill(self, name: str) -> None:
        process = self._processes.get(name)
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()


def _final_statuses(spec: Object) -> set[int]:
    """Exit statuses at which a Job fails without another attempt."""
    rules = spec.get("podFailurePolicy", {}).get("rules", [])
    return {
        value
        for rule in rules
        if rule["action"] == "FailJob" and rule.get("onExitCodes")
        for value in rule["onExitCodes"]["values"]
    }
