"""The examples of the pages run, and get what the pages promise."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import service
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


STATIC = Path(service.__file__).parent / "static"
SAMPLES = """
import {{ sample }} from {module};
const {{ schemas }} = JSON.parse(await new Promise((done) => {{
  let text = "";
  process.stdin.on("data", (part) => {{ text += part; }}).on("end", () => done(text));
}})).components;
const made = Object.entries(schemas).map(([name, schema]) => [name, sample(schema, schemas)]);
console.log(JSON.stringify(Object.fromEntries(made)));
"""


def bodies_of(document: Any) -> dict[str, str]:
    """Schema of the JSON body by path, of every operation that has one."""
    found: dict[str, str] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            forms = operation.get("requestBody", {}).get("content", {})
            if method == "post" and "application/json" in forms:
                found[path] = forms["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return found


def test_the_samples_that_the_page_of_the_api_shows_are_answered(server, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run the page's script")
    document = server.app.openapi()
    module = tmp_path / "sample.mjs"  # by this name node takes it for a module, as the page does
    shutil.copyfile(STATIC / "sample.js", module)
    script = SAMPLES.format(module=json.dumps(module.as_uri()))
    done = subprocess.run(
        [node, "--input-type=module", "--eval", script],
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)
    bodies = bodies_of(document)
    assert len(bodies) >= 6
    for path, name in bodies.items():
        address = path.replace("{model}", "rancast-small").replace("{version}", "1.0.0")
        answer = httpx.post(f"{server.url}{address}", json=samples[name], timeout=30)
        assert answer.status_code == 200, (path, samples[name], answer.text)


def test_the_examples_of_the_protocols_in_the_document_are_answered(server):
    document = server.app.openapi()
    for path, name in bodies_of(document).items():
        for example in document["components"]["schemas"][name].get("examples", ()):
            address = path.replace("{model}", "rancast-small").replace("{version}", "1.0.0")
            answer = httpx.post(f"{server.url}{address}", json=example, timeout=30)
            assert answer.status_code == 200, answer.text
    for name in ("PredictRequest", "InferRequest", "TimeseriesForecastRequest"):
        assert document["components"]["schemas"][name]["examples"]


def test_the_page_of_the_api_takes_its_samples_from_there():
    page = (STATIC / "docs.js").read_text(encoding="utf-8")
    assert 'import { refName, sample } from "./sample.js";' in page
    assert "requestBody.content)" in page  # every media type, not JSON alone
