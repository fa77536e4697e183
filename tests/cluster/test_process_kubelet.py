"""The process kubelet against a real API server: pods go through the states of a real node."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import ApiError, Object, at, wait_for
from tests.cluster.cluster import Cluster
from tests.cluster.process_kubelet import ProcessKubelet

pytestmark = pytest.mark.cluster

# Waits for the file whose path it gets, as a program that is at work.
AT_WORK = "import sys, time\nprint('working', flush=True)\nwhile True: time.sleep(0.05)"


def python(code: str, **more: Any) -> Object:
    """A container that runs Python code."""
    command = [sys.executable, "-u", "-c", code]
    return {"name": "main", "image": "example/python:1", "command": command, **more}


@dataclass(frozen=True)
class Bench:
    """A namespace to put pods in.

    Attributes:
        cluster: Which has it.
        node: Runs the pods.
        namespace: Its name.
    """

    cluster: Cluster
    node: ProcessKubelet
    namespace: str

    def create(self, name: str, *containers: Object, **spec: Any) -> str:
        """Create a pod that is not started again; its name."""
        pod = {
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"restartPolicy": "Never", "containers": list(containers), **spec},
        }
        self.cluster.api.create(at("v1", "pods", self.namespace), pod)
        return name

    def status(self, name: str) -> Object:
        """Of a pod."""
        status: Object = self.cluster.api.get(at("v1", "pods", self.namespace, name))["status"]
        return status

    def wait(self, name: str, look: Callable[[Object], object]) -> Object:
        """Its status, once it looks as wanted."""

        def seen() -> Object | None:
            status = self.status(name)
            return status if look(status) else None

        return wait_for(f"such state of {name}", seen)

    def end(self, name: str) -> Object:
        """Its status, once it has ended."""
        return self.wait(name, lambda status: status["phase"] in {"Succeeded", "Failed"})

    def log(self, name: str, **query: str | int | bool) -> str:
        """Its log."""
        said: str = self.cluster.api.get(at("v1", "pods", self.namespace, f"{name}/log"), **query)
        return said


@pytest.fixture(scope="module")
def bench(cluster: Cluster) -> Bench:
    return Bench(cluster, cluster.process_node(), cluster.namespace())


def running(status: Object) -> bool:
    return bool(status["phase"] == "Running")


def restarted(status: Object) -> bool:
    return any(each["restartCount"] for each in status.get("containerStatuses") or [])


def terminated(status: Object) -> Object:
    found: Object = status["containerStatuses"][0]["state"]["terminated"]
    return found


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (42, "Failed")])
def test_exit_code_decides_how_a_pod_ends(bench: Bench, code: int, phase: str) -> None:
    name = bench.create(f"exit-{code}", python(f"print('said'); raise SystemExit({code})"))
    status = bench.end(name)
    assert status["phase"] == phase
    assert terminated(status)["exitCode"] == code
    assert bench.log(name) == "said\n"


def test_command_that_is_not_there_ends_the_pod(bench: Bench) -> None:
    name = bench.create("nothing", {"name": "main", "image": "x", "command": ["/no/such/program"]})
    assert terminated(bench.end(name))["reason"] == "StartError"


def test_first_containers_run_one_after_the_other_before_the_others(bench: Bench) -> None:
    mount = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}

    def step(name: str) -> Object:
        return {
            **python("", **mount),
            "name": name,
            "command": ["sh", "-c", f"echo {name} >>/shared/list"],
        }

    name = bench.create(
        "order",
        {**python("", **mount), "command": ["sh", "-c", "cat /shared/list"]},
        initContainers=[step("one"), step("two")],
        volumes=[{"name": "shared", "emptyDir": {}}],
    )
    assert bench.end(name)["phase"] == "Succeeded"
    assert bench.log(name) == "one\ntwo\n"


def test_failed_first_container_ends_the_pod_before_the_others(bench: Bench) -> None:
    first = {**python("raise SystemExit(3)"), "name": "first"}
    status = bench.end(
        bench.create("first-fails", python("print('never')"), initContainers=[first])
    )
    assert status["phase"] == "Failed"
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert "waiting" in status["containerStatuses"][0]["state"]


def test_variables_come_from_fields_limits_config_maps_and_secrets(bench: Bench) -> None:
    api = bench.cluster.api
    api.create(
        at("v1", "configmaps", bench.namespace),
        {"metadata": {"name": "words"}, "data": {"COLOUR": "blue"}},
    )
    api.create(
        at("v1", "secrets", bench.namespace),
        {"metadata": {"name": "door"}, "stringData": {"key": "sesame"}},
    )
    env = [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "door", "key": "key"}}},
        {
            "name": "NONE",
            "valueFrom": {"configMapKeyRef": {"name": "no", "key": "no", "optional": True}},
        },
        {"name": "BOTH", "value": "$(POD) $(C_COLOUR) $(UNKNOWN) $$(POD)"},
    ]
    names = ["POD", "APP", "CORES", "KEY", "BOTH", "C_COLOUR"]
    code = f"import os\nfor n in {names}: print(os.environ[n])\nassert 'NONE' not in os.environ"
    name = bench.create(
        "variables",
        python(
            code,
            env=env,
            envFrom=[{"prefix": "C_", "configMapRef": {"name": "words"}}],
            resources={"limits": {"cpu": "1500m"}},
        ),
    )
    bench.end(name)
    expected = ["variables", "variables", "2", "sesame", "variables blue $(UNKNOWN) $(POD)", "blue"]
    assert bench.log(name).splitlines() == expected


def test_files_of_config_maps_and_secrets_lie_where_they_are_mounted(bench: Bench) -> None:
    api = bench.cluster.api
    api.create(
        at("v1", "configmaps", bench.namespace),
        {"metadata": {"name": "files"}, "data": {"a.txt": "A", "b.txt": "B"}},
    )
    name = bench.create(
        "files",
        {
            "name": "main",
            "image": "x",
            "command": ["sh", "-c", "ls /etc/files; cat /etc/files/one/a /pod/labels"],
            "volumeMounts": [
                {"name": "files", "mountPath": "/etc/files"},
                {"name": "pod", "mountPath": "/pod"},
            ],
        },
        volumes=[
            {
                "name": "files",
                "configMap": {"name": "files", "items": [{"key": "a.txt", "path": "one/a"}]},
            },
            {
                "name": "pod",
                "downwardAPI": {
                    "items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
                },
            },
        ],
    )
    bench.end(name)
    assert bench.log(name) == 'one\nAapp="files"\n'


def test_pod_waits_for_the_secret_that_it_lacks(bench: Bench) -> None:
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "late", "key": "key"}}}]
    name = bench.create("waits", python("print('at last')", env=env))

    def waits(status: Object) -> bool:
        states = [each["state"] for each in status.get("containerStatuses") or []]
        return [s.get("waiting", {}).get("reason") for s in states] == [
            "CreateContainerConfigError"
        ]

    bench.wait(name, waits)
    bench.cluster.api.create(
        at("v1", "secrets", bench.namespace),
        {"metadata": {"name": "late"}, "stringData": {"key": "x"}},
    )
    assert bench.end(name)["phase"] == "Succeeded"


def test_claim_keeps_its_files_from_one_pod_to_the_next(bench: Bench) -> None:
    api = bench.cluster.api
    api.create(
        at("v1", "persistentvolumeclaims", bench.namespace),
        {
            "metadata": {"name": "kept"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )
    volumes = [{"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}}]
    mounts = [{"name": "kept", "mountPath": "/data"}]
    for name, script in (("writes", "echo kept >/data/file"), ("reads", "cat /data/file")):
        words = ["sh", "-c", script]
        bench.create(name, {**python("", volumeMounts=mounts), "command": words}, volumes=volumes)
        assert bench.end(name)["phase"] == "Succeeded"
    assert bench.log("reads") == "kept\n"


def test_pod_is_ready_once_its_probe_passes_and_is_asked_at_its_own_address(bench: Bench) -> None:
    code = (
        "import http.server as h, sys\n"
        "h.ThreadingHTTPServer((sys.argv[1], 8080), h.SimpleHTTPRequestHandler).serve_forever()"
    )
    container = python(code, ports=[{"name": "web", "containerPort": 8080}])
    container["command"].append("0.0.0.0")
    container["readinessProbe"] = {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 1}
    # Two of them, at the same port.
    for name in ("web-1", "web-2"):
        bench.create(name, container, restartPolicy="Always")

    def ready(status: Object) -> bool:
        conditions = {each["type"]: each["status"] for each in status.get("conditions") or []}
        return conditions.get("Ready") == "True"

    for name in ("web-1", "web-2"):
        bench.wait(name, ready)
    addresses = {bench.node.address(bench.namespace, name) for name in ("web-1", "web-2")}
    assert len(addresses) == 2


def test_container_that_fails_is_started_again_and_its_last_log_is_kept(bench: Bench) -> None:
    name = bench.create(
        "again", python("print('run'); raise SystemExit(1)"), restartPolicy="Always"
    )
    status = bench.wait(name, restarted)
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    assert bench.log(name, previous=True) == "run\n"


def test_failing_liveness_probe_restarts_the_container(bench: Bench) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    name = bench.create("dead", python(AT_WORK, livenessProbe=probe), restartPolicy="Always")
    bench.wait(name, restarted)


def test_deleted_pod_gets_its_grace(bench: Bench) -> None:
    code = (
        "import signal, sys, time\n"
        "def end(*_): print('tidied', flush=True); time.sleep(0.2); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n" + AT_WORK.partition("\n")[2]
    )
    name = bench.create("graceful", python("import sys\nprint('up', flush=True)\n" + code))
    bench.wait(name, running)
    path = at("v1", "pods", bench.namespace, name)
    runner = bench.node.find(bench.namespace, name)
    assert runner is not None
    wait_for("its first line", lambda: "up" in bench.log(name))
    bench.cluster.api.delete(path)
    wait_for("its end", lambda: bench.cluster.api.find(path) is None)
    assert b"tidied" in runner.containers[0].log().read_bytes()
    assert runner.containers[0].exit_code == 0


def test_pod_that_ignores_the_signal_is_killed_after_its_grace(bench: Bench) -> None:
    code = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + AT_WORK
    name = bench.create("deaf", python(code), terminationGracePeriodSeconds=1)
    wait_for("its first line", lambda: running(bench.status(name)) and "working" in bench.log(name))
    runner = bench.node.find(bench.namespace, name)
    assert runner is not None
    path = at("v1", "pods", bench.namespace, name)
    bench.cluster.api.delete(path)
    wait_for("its end", lambda: bench.cluster.api.find(path) is None)
    assert runner.containers[0].exit_code == 137


def test_nothing_outlives_its_container(bench: Bench) -> None:
    script = "setsid sleep 600 & echo $!"
    name = bench.create("leaves", {"name": "main", "image": "x", "command": ["sh", "-c", script]})
    bench.end(name)
    process = Path("/proc", bench.log(name).strip(), "cmdline")
    wait_for("its end", lambda: not (process.exists() and b"600" in process.read_bytes()))


def test_message_is_the_file_that_was_left_or_the_end_of_the_log(bench: Bench) -> None:
    write = "import sys\nopen(sys.argv[1], 'w').write('no such file: data')\nsys.exit(42)"
    left = python(write)
    left["command"].append("/dev/termination-log")
    logged = python("print('last words'); raise SystemExit(1)")
    logged["terminationMessagePolicy"] = "FallbackToLogsOnError"
    assert terminated(bench.end(bench.create("left", left)))["message"] == "no such file: data"
    assert terminated(bench.end(bench.create("logged", logged)))["message"] == "last words\n"


def test_log_is_given_as_it_is_asked_for(bench: Bench) -> None:
    name = bench.create("lines", python("for n in range(5): print('line', n)"))
    bench.end(name)
    assert bench.log(name, tailLines=2) == "line 3\nline 4\n"
    assert bench.log(name, limitBytes=6) == "line 0"
    stamped = bench.log(name, timestamps=True).splitlines()
    third = stamped[2].partition(" ")[0]
    again = bench.log(name, timestamps=True, sinceTime=third).splitlines()
    # The server cuts the time that it is given to whole seconds.
    assert set(stamped[2:]) <= set(again) <= set(stamped)


def test_log_that_is_followed_ends_with_the_container(bench: Bench) -> None:
    name = bench.create(
        "followed", python("import time\nfor n in range(3): print(n); time.sleep(0.2)")
    )
    bench.wait(name, running)
    assert bench.log(name, follow=True) == "0\n1\n2\n"


def test_log_of_an_unknown_container_is_refused(bench: Bench) -> None:
    name = bench.create("known", python(""))
    bench.end(name)
    with pytest.raises(ApiError, match="400"):
        bench.log(name, container="other")


def test_image_that_cannot_be_pulled_keeps_the_pod_waiting(bench: Bench) -> None:
    bench.node.images.missing.add("example/none:1")
    name = bench.create("none", {"name": "main", "image": "example/none:1", "command": ["true"]})

    def refused(status: Object) -> bool:
        states = [each["state"] for each in status.get("containerStatuses") or []]
        return [s.get("waiting", {}).get("reason") for s in states] == ["ImagePullBackOff"]

    assert bench.wait(name, refused)["phase"] == "Pending"


def test_memory_that_runs_out_is_told(bench: Bench) -> None:
    name = bench.create("hungry", python(AT_WORK))
    bench.wait(name, running)
    bench.node.run_out_of_memory(bench.namespace, name)
    ended = terminated(bench.end(name))
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


def test_eviction_is_told(bench: Bench) -> None:
    name = bench.create("evicted", python(AT_WORK))
    bench.wait(name, running)
    bench.node.evict(bench.namespace, name, "The node was low on resource: memory.")
    status = bench.end(name)
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == "The node was low on resource: memory."


def test_pod_of_which_no_node_has_enough_is_not_scheduled(bench: Bench) -> None:
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    name = bench.create("greedy", python("", resources=limits))
    status = bench.wait(name, lambda status: status.get("conditions"))
    assert status["conditions"][0]["reason"] == "Unschedulable"


def test_deadline_of_a_pod_ends_it(bench: Bench) -> None:
    status = bench.end(bench.create("slow", python(AT_WORK), activeDeadlineSeconds=1))
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
