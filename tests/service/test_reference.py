import json
import re
from pathlib import Path

import pytest

from model.predictor import ModelIdentity
from service.app import create_app
from service.errors import ANSWERS
from service.reference import main, metrics_table, settings_table, with_tables
from service.settings import Settings
from tests.service.fakes import RepeatLast, serving

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_operations_page_says_what_the_code_declares():
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert page == with_tables(page), "run: python -m service.reference docs/operations.md"


def test_every_setting_is_described():
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert f"`RANCAST_{name.upper()}`" in settings_table()


def test_no_cell_of_a_table_breaks_it():
    for table in (settings_table(), metrics_table()):
        columns = {re.sub(r"`[^`]*`", "", line).count("|") for line in table.splitlines()}
        assert len(columns) == 1


def test_a_page_is_rewritten_in_place(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- settings -->\nOUTDATED\n<!-- /settings -->\n<!-- metrics -->\n\n<!-- /metrics -->\n"
    )
    main(page)
    assert "RANCAST_PORT" in page.read_text()
    assert "OUTDATED" not in page.read_text()


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="settings"):
        with_tables("# nothing")


def test_the_api_page_names_every_route_and_every_error():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    for path, operations in create_app(Settings()).openapi()["paths"].items():
        for method in operations:
            assert f"`{method.upper()} {path}" in page
    for answer in ANSWERS.values():
        assert f"`{answer.slug}`" in page


@pytest.mark.anyio
async def test_the_bodies_on_the_api_page_are_answered():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    command = r"curl -s (-X PUT )?http://127\.0\.0\.1:8080(\S+) -H '[^']*' -d '(.*?)'"
    sent = re.findall(command, page, re.DOTALL)
    assert len(sent) == 3
    model = RepeatLast()
    model.identity = ModelIdentity("rancast-small", "1.0.0", "sha256:0")
    async with serving(predictor=model) as client:
        for put, path, body in sent:
            method = "PUT" if put else "POST"
            answer = await client.http.request(method, path, json=json.loads(body))
            assert answer.status_code == 200, answer.text
