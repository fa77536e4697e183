"""Every operation of the OpenAPI document, called as the document allows and as it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx

from service.settings import Settings
from tests.service.fakes import series
from tests.service.live import live

SECRET = "0123456789abcdef-of-the-test"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "ignored_auth",
)


def run_schemathesis(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Its command line, in a process of its own: it changes how pytest reports."""
    options = {
        "--checks": ",".join(CHECKS),
        "--phases": "examples,coverage,fuzzing",
        "--max-examples": "10",
        # The same requests in every run; `make fuzz` is for new ones.
        "--seed": "5",
        "--generation-database": "none",
        "--suppress-health-check": "all",
        "--warnings": "off",
        "--header": f"Authorization: Bearer {SECRET}",
    }
    flat = [word for pair in options.items() for word in pair]
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "--no-color",
            "run",
            *flat,
            f"{url}/openapi.json",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )


def test_no_operation_fails_or_answers_otherwise_than_the_document_says(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"tester read,write,admin {SECRET}\n", encoding="utf-8")
    # Everything is locked, so that the lock of every operation is tried.
    settings = Settings(
        profile="non-rt", access_log=False, max_cells=50, token_file=tokens, open_paths=()
    )
    with live(settings) as one:
        headers = {"Authorization": f"Bearer {SECRET}"}
        kept = httpx.post(
            f"{one.url}/v1/observations", json={"series": [series()]}, headers=headers
        )
        assert kept.status_code == 200
        ended = run_schemathesis(one.url, tmp_path)
        operations = sum(len(methods) for methods in one.app.openapi()["paths"].values())
    assert ended.returncode == 0, f"{ended.stdout[-8_000:]}\n{ended.stderr[-2_000:]}"
    assert f"Tested: {operations}" in ended.stdout
