"""What a machine lacks is skipped with the reason, except where nothing may be lacking."""

from __future__ import annotations

import pytest

from tests.helm.conftest import unavailable


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [
        (None, pytest.skip.Exception),
        ("false", pytest.skip.Exception),
        ("true", pytest.fail.Exception),
    ],
)
def test_a_missing_tool_is_a_failure_in_continuous_integration_alone(
    monkeypatch, ci: str | None, outcome: type[BaseException]
) -> None:
    if ci is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no helm here"):
        unavailable("no helm here")
