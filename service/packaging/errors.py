"""What can go wrong with a package."""

from __future__ import annotations

from collections.abc import Sequence

from service.errors import ServiceError
from service.packaging.finding import Finding


class PackageError(ServiceError):
    """A package that cannot be made or read; the message says what is wrong and how to mend it."""


class UnusablePackageError(PackageError):
    """What was made would be refused, or would not run.

    Attributes:
        findings: What is wrong, at least one.
    """

    def __init__(self, what: str, findings: Sequence[Finding]) -> None:
        super().__init__(f"{what}: " + "; ".join(str(finding) for finding in findings))
        self.findings = tuple(findings)


class UnusableSchemaError(PackageError):
    """A JSON Schema that nothing can be held to; the message says why."""
