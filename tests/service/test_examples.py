"""The examples of the pages on protocols and on the client run, and get what the pages promise."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from model.predictor import ModelIdentity
from service.settings import Settings
from tests.service.fakes import RepeatLast
from tests.service.live import Live, live

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
ADDRESS = "http://127.0.0.1:8080"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [body for found, body in BLOCK.findall(text) if found == language]


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    model = RepeatLast()
    model.identity = ModelIdentity("rancast-small", "1.0.0", "sha256:0")
    with live(Settings(profile="non-rt"), model) as running:
        yield running


def shape(value: object) -> object:
    """What an answer is made of, without its values."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return float if isinstance(value, int | float) else type(value)


def answer_of(server: Live, block: str) -> httpx.Response:
    """Do what a curl command says: an address, and `-d` with a body."""
    curl, quiet, address, flag, body = shlex.split(block)
    assert (curl, quiet, flag) == ("curl", "-s", "-d")
    return httpx.post(
        address.replace(ADDRESS, server.url),
        content=body,
        headers={"content-type": "application/x-www-form-urlencoded"},
    )


@pytest.mark.parametrize("block", blocks("protocols.md", "sh"))
def test_every_curl_of_the_page_on_protocols_is_answered(server, block):
    answer = answer_of(server, block)
    assert answer.status_code == 200, answer.text


def test_answers_have_the_shape_that_the_page_on_protocols_shows(server):
    text = (DOCS / "protocols.md").read_text(encoding="utf-8")
    pairs = re.findall(r"```sh\n([^`]*)```\n\n```json\n([^`]*)```", text, re.DOTALL)
    assert len(pairs) == 3
    for command, shown in pairs:
        assert shape(answer_of(server, command).json()) == shape(json.loads(shown))


def run(source: str, server: Live, names: dict[str, object]) -> None:
    exec(compile(source.replace(ADDRESS, server.url), "<example>", "exec"), names)


def test_tensors_as_bytes_go_as_the_page_on_protocols_says(server):
    (source,) = blocks("protocols.md", "python")
    names: dict[str, object] = {}
    run(source, server, names)
    assert names["forecast"].shape == (1, 1, 4, 3)  # type: ignore[attr-defined]


def test_the_page_on_the_client_runs_from_top_to_bottom(server, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("secret", encoding="utf-8")
    names: dict[str, object] = {}
    for source in blocks("client.md", "python"):
        run(source, server, names)
    shown = capsys.readouterr().out
    assert "(1, 24, 3)" in shown
    assert "3 ()" in shown
    assert "Fault(path='/horizon'" in shown


def test_the_pages_name_every_route_of_a_protocol_and_every_error_of_the_client(server):
    from service import client

    protocols = (DOCS / "protocols.md").read_text(encoding="utf-8")
    expanded = protocols.replace("[/versions/{version}]", "") + protocols.replace("[", "").replace(
        "]", ""
    )
    for path in server.app.openapi()["paths"]:
        if path.startswith(("/v1/models", "/v1/timeseries", "/v2")):
            assert path in expanded
    page = (DOCS / "client.md").read_text(encoding="utf-8")
    for name in client.__all__:
        if name.endswith("Error") and name != "ClientError":
            assert f"`{name}`" in page
