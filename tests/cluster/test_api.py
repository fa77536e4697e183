from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from tests.cluster.api import Access, KubeconfigError, Object, at, wait_for


def write(tmp_path: Path, user: Object, cluster: Object | None = None) -> Path:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://c.example", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def test_token_of_a_user_is_sent(tmp_path: Path) -> None:
    access = Access.of_kubeconfig(write(tmp_path, {"token": "secret"}))
    assert access.server == "https://c.example"
    assert access.headers == {"Authorization": "Bearer secret"}


def test_login_command_is_asked_for_a_token(tmp_path: Path) -> None:
    code = "import os; print('{\"status\": {\"token\": \"' + os.environ['WORD'] + '\"}}')"
    login = {
        "command": sys.executable,
        "args": ["-c", code],
        "env": [{"name": "WORD", "value": "open"}],
    }
    access = Access.of_kubeconfig(write(tmp_path, {"exec": login}))
    assert access.headers == {"Authorization": "Bearer open"}


def test_certificate_is_not_checked_only_where_the_user_says_so(tmp_path: Path) -> None:
    careless = Access.of_kubeconfig(write(tmp_path, {}, {"insecure-skip-tls-verify": True}))
    assert not careless.trust.check_hostname
    assert Access.of_kubeconfig(write(tmp_path, {})).trust.check_hostname


def test_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, {})
    path.write_text(path.read_text().replace("current-context: x", "current-context: y"))
    with pytest.raises(KubeconfigError, match="context 'y'"):
        Access.of_kubeconfig(path)


def test_paths_are_those_of_the_api() -> None:
    assert at("v1", "pods") == "/api/v1/pods"
    assert at("batch/v1", "jobs", "n", "j/status") == "/apis/batch/v1/namespaces/n/jobs/j/status"
    assert at("v1", "nodes", name="a") == "/api/v1/nodes/a"


def test_waiting_in_vain_says_for_what() -> None:
    with pytest.raises(AssertionError, match="no moon within 0 s"):
        wait_for("moon", lambda: None, 0)
