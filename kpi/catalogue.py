"""The catalogue: what each KPI is, in one declarative TOML file that a user can extend.

Names follow 3GPP TS 28.552. Sources spell them in other ways (vendor counters, other case), so every
entry lists aliases, and look-up ignores case. A name that the catalogue does not hold is allowed: it
becomes a gauge without limits, and whoever reads it counts it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from kpi.errors import CatalogueError

BUILT_IN = Path(__file__).with_name("catalogue.toml")


class KpiKind(StrEnum):
    """What sort of quantity a KPI is; decides how it aggregates and which limits are natural."""

    COUNT = "count"
    GAUGE = "gauge"
    RATE = "rate"
    VOLUME = "volume"
    PERCENT = "percent"
    RATIO = "ratio"
    DELAY = "delay"


@dataclass(frozen=True, slots=True)
class Kpi:
    """One catalogue entry.

    Attributes:
        name: TS 28.552 spelling where the measurement is defined there.
        unit: Unit as the specification says it, for example `%`, `kbit`, `ms`, `1`.
        kind: Sort of quantity.
        lower: Least possible value, None where there is none.
        upper: Greatest possible value, None where there is none.
        aliases: Other spellings; case is ignored anyway.
        cumulative: The source reports a running total that only grows until it resets, rather than
            the amount of each granularity period.
        clause: Where the measurement is defined, for example `TS 28.552 5.1.1.2.1`.
    """

    name: str
    unit: str
    kind: KpiKind
    lower: float | None = None
    upper: float | None = None
    aliases: tuple[str, ...] = ()
    cumulative: bool = False
    clause: str = ""


@dataclass(frozen=True, slots=True)
class Derivation:
    """A KPI computed from two counters of the same object and period: scale * numerator / denominator.

    Vendors report means as a sum and a number of samples; a denominator of zero gives no value.
    """

    name: str
    numerator: str
    denominator: str
    scale: float = 1.0


@dataclass(frozen=True)
class Catalogue:
    """Entries by name, with look-up by alias.

    Attributes:
        version: Version of the built-in file, kept in checkpoints.
        kpis: Entries by canonical name.
        derivations: Rules for KPIs that are computed from pairs of counters.
    """

    version: str
    kpis: Mapping[str, Kpi]
    derivations: tuple[Derivation, ...] = ()
    _canonical: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def canonical(self, name: str) -> str:
        """The catalogue's spelling of `name`, or `name` itself where it is unknown."""
        return self._canonical.get(name.casefold(), name)

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self._canonical

    def resolve(self, name: str) -> Kpi:
        """The entry for `name` or an alias of it; unknown names give a gauge without limits."""
        known = self._canonical.get(name.casefold())
        return self.kpis[known] if known else Kpi(name=name, unit="", kind=KpiKind.GAUGE)


def load_catalogue(extensions: Iterable[Path] = ()) -> Catalogue:
    """Read the built-in catalogue and the user's own files over it; later entries win.

    Raises:
        CatalogueError: A file is not TOML, an entry lacks a field or has a wrong one, or two
            entries claim the same alias.
    """
    version = ""
    kpis: dict[str, Kpi] = {}
    derivations: dict[str, Derivation] = {}
    for path in (BUILT_IN, *extensions):
        document = _read(path)
        version = version or str(document.get("version", ""))
        for name, entry in document.get("kpi", {}).items():
            kpis[name] = _entry(path, name, entry)
        for name, entry in document.get("derived", {}).items():
            derivations[name] = _derivation(path, name, entry)
    return Catalogue(version, kpis, tuple(derivations.values()), _spellings(kpis))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogueError(f"catalogue {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"catalogue {path} is not valid TOML: {error}") from error


def _entry(path: Path, name: str, entry: Mapping[str, Any]) -> Kpi:
    allowed = {"unit", "kind", "lower", "upper", "aliases", "cumulative", "clause"}
    if unknown := sorted(set(entry) - allowed):
        raise CatalogueError(
            f"catalogue {path}: {name} has unknown fields {unknown}; expected some of "
            f"{sorted(allowed)}"
        )
    try:
        kind = KpiKind(entry.get("kind", "gauge"))
    except ValueError as error:
        raise CatalogueError(
            f"catalogue {path}: {name} has kind {entry['kind']!r}; expected one of "
            f"{[k.value for k in KpiKind]}"
        ) from error
    lower, upper = entry.get("lower"), entry.get("upper")
    if lower is not None and upper is not None and lower >= upper:
        raise CatalogueError(
            f"catalogue {path}: {name} has lower {lower} not under upper {upper}"
        )
    return Kpi(
        name=name,
        unit=str(entry.get("unit", "")),
        kind=kind,
        lower=None if lower is None else float(lower),
        upper=None if upper is None else float(upper),
        aliases=tuple(entry.get("aliases", ())),
        cumulative=bool(entry.get("cumulative", False)),
        clause=str(entry.get("clause", "")),
    )


def _derivation(path: Path, name: str, entry: Mapping[str, Any]) -> Derivation:
    try:
        return Derivation(
            name=name,
            numerator=entry["numerator"],
            denominator=entry["denominator"],
            scale=float(entry.get("scale", 1.0)),
        )
    except KeyError as error:
        raise CatalogueError(
            f"catalogue {path}: derived {name} lacks {error.args[0]!r}; expected numerator and "
            "denominator"
        ) from error


def _spellings(kpis: Mapping[str, Kpi]) -> dict[str, str]:
    """Canonical name by every casefolded spelling."""
    spellings = {name.casefold(): name for name in kpis}
    for kpi in kpis.values():
        for alias in kpi.aliases:
            taken = spellings.setdefault(alias.casefold(), kpi.name)
            if taken != kpi.name:
                raise CatalogueError(
                    f"alias {alias!r} is claimed by {taken} and by {kpi.name}; remove one of them"
                )
    return spellings
