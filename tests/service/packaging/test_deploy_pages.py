"""The pages that lead to a running app: what can run without a RIC runs as printed."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from service.settings import Settings
from tests.conftest import REPOSITORY
from tests.deploy_pages import (
    ANYWHERE,
    PAGES,
    PLACES,
    RIC,
    SERVICE,
    blocks,
    commands,
    make_tools,
    run,
    write_files,
)
from tests.helm.conftest import CHART, Helm
from tests.service.live import Live, live

ADDRESS = "http://127.0.0.1:8080"
TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def tools(helm: Helm, tmp_path: Path) -> Path:
    """A folder for PATH: rancast of these sources, and one of the helms."""
    return make_tools(tmp_path / "bin", helm.binary)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Live]:
    """A service that asks for a token."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operator admin {TOKEN}\n")
    with live(Settings(token_file=tokens)) as running:
        yield running


# Options that each command demands (ric-plt-appmgr, xapp_orchestrater, server/cli.py).
DMS_CLI = {
    "health": set(),
    "onboard": {"config_file_path", "shcema_file_path"},
    "install": {"xapp_chart_name", "version", "namespace"},
    "upgrade": {"xapp_chart_name", "old_version", "new_version", "namespace"},
    "rollback": {"xapp_chart_name", "old_version", "new_version", "namespace"},
    "uninstall": {"xapp_chart_name", "namespace"},
}
# Calls that the manager takes (nonrtric-plt-rappmanager, openapi/rappmanager).
RAPP_MANAGER = {
    ("POST", "/NAME", "file"),
    ("GET", "/NAME", ""),
    ("PUT", "/NAME", "primeOrder"),
    ("DELETE", "/NAME", ""),
    ("POST", "/NAME/instance", "acm sme"),
    ("GET", "/NAME/instance/ID", ""),
    ("PUT", "/NAME/instance/ID", "deployOrder"),
    ("DELETE", "/NAME/instance/ID", ""),
}


def rapp_calls(script: str) -> Iterator[tuple[str, str, str]]:
    """Method, path and what is sent of each call of the rApp manager."""
    for call in re.findall(r"curl (.*?)(?=\ncurl |\n[A-Z]+=|\nkubectl |\Z)", script, re.DOTALL):
        if (path := re.search(r'"\$RAPPS(/[^"]*)"', call)) is None:
            continue
        body = re.search(r"-d '(.*?)'", call, re.DOTALL)
        sent = " ".join(json.loads(body[1])) if body else "file" if " -F file=@" in call else ""
        method = re.search(r"-X (\w+)", call)
        place = path[1].replace("/rancast", "/NAME").replace("$INSTANCE", "ID")
        yield method[1] if method else "POST" if sent else "GET", place, sent


def test_what_is_said_to_dms_cli_is_what_it_takes():
    shown = re.findall(r"dms_cli (\w+)((?: --\w+=\S+)*)", "".join(commands(PAGES[0], RIC)))
    assert {name for name, _ in shown} == set(DMS_CLI)
    for name, options in shown:
        assert set(re.findall(r"--(\w+)=", options)) == DMS_CLI[name], name


def test_what_is_asked_of_the_rapp_manager_is_what_it_takes():
    shown = set(rapp_calls("".join(commands(PAGES[1], RIC))))
    assert shown == RAPP_MANAGER


@pytest.mark.parametrize("page", PAGES)
def test_no_request_hides_the_words_of_a_refusal(page):
    calls = re.findall(r"\bcurl ([^\n]*)", "".join(body for _, _, body in blocks(page)))
    assert calls
    assert [call for call in calls if not call.startswith("-sS --fail-with-body ")] == []


@pytest.mark.parametrize("page", PAGES)
def test_addresses_inside_the_cluster_are_asked_through_a_forwarded_port(page):
    for body in commands(page, RIC):
        for address in re.findall(r"(?:curl[^\n]* |=)\"?(http://[^/\s\"]+)", body):
            assert address.startswith("http://127.0.0.1:"), address
    forwarded = re.findall(r"port-forward service/\S+ (\d+):", "".join(b for *_, b in blocks(page)))
    asked = re.findall(r"http://127\.0\.0\.1:(\d+)", "".join(b for *_, b in blocks(page)))
    assert set(asked) == set(forwarded)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_commands_says_where_it_runs(page):
    for above, language, body in blocks(page):
        if language == "sh":
            assert above.lower().endswith(tuple(map(str.lower, PLACES))), body
    shown = (REPOSITORY / "docs" / page).read_text(encoding="utf-8").count("```sh\n")
    assert shown == sum(language == "sh" for _, language, _ in blocks(page))


@pytest.mark.parametrize("page", PAGES)
def test_what_runs_on_any_machine_runs_as_printed(page, work, tools, our_chart):
    assert our_chart == CHART
    write_files(page, work)
    output = run("".join(commands(page, ANYWHERE)), work, tools)
    assert ": fine" in output
    kinds = {each["kind"] for each in yaml.safe_load_all((work / "rendered.yaml").read_text())}
    assert {"Deployment", "Service"} <= kinds
    if page == "deploy-xapp.md":
        assert "service-ricxapp-rancast-http" in output
        assert "service-ricxapp-rancast-rmr" in output
        assert "configmap-ricxapp-rancast-appconfig" in output
        return
    # What the requests to the rApp manager name is in the package.
    with zipfile.ZipFile(work / "dist" / "rancast.csar") as archive:
        names = {Path(name).stem for name in archive.namelist()}
    (request,) = re.findall(r"(\{\s*\"acm\".*?\})'", "".join(commands(page, RIC)), re.S)
    stated = json.loads(request)
    assert {stated["acm"]["instance"], *stated["sme"].values()} <= names


@pytest.mark.parametrize("page", PAGES)
def test_what_asks_the_service_is_answered(page, service, work, tools):
    (work / "token").write_text(TOKEN)
    output = ""
    for script in commands(page, SERVICE):
        assert ADDRESS in script
        output += run(script.replace(ADDRESS, service.url), work, tools)
    assert '"forecasts"' in output
    assert "rancast_latency_budget" in output
