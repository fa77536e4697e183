"""The catalogue: what each KPI is, in one declarative TOML file that a user can extend.

Names follow 3GPP TS 28.552. Sources spell them in other ways (vendor counters, other case), so
every entry lists aliases, and look-up ignores case. A name that the catalogue does not hold is
allowed: it becomes a gauge without limits, and whoever reads it counts it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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

    @property
    def number(self) -> int:
        """Position among the kinds, which is how models tell them apart."""
        return list(KpiKind).index(self)


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
    """A KPI as scale * numerator / denominator of the same object and period.

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

    def canonical_names(self, names: Iterable[str]) -> list[str]:
        """`canonical` of many names at once."""
        known = self._canonical.get
        return [known(name.casefold(), name) for name in names]

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self._canonical

    def resolve(self, name: str) -> Kpi:
        """The entry for `name` or an alias of it.

        A sub-counter (`RRU.PrbUsedDl.01`) or a position of a list (`name[3]`) without an entry of
        its own gets that of its total, under its own name; other unknown names give a gauge without
        limits.
        """
        folded = name.casefold()
        base = folded
        while base:
            known = self._canonical.get(base)
            if known is not None:
                entry = self.kpis[known]
                return entry if base == folded else replace(entry, name=name, aliases=())
            base = base[: max(base.rfind("."), base.rfind("["), 0)]
        return Kpi(name=name, unit="", kind=KpiKind.GAUGE)


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
        if unknown := sorted(set(document) - {"version", "kpi", "derived"}):
            raise CatalogueError(
                f"catalogue {path} has unknown tables {unknown}; expected version, kpi and derived"
            )
        for name, entry in _tables(path, document, "kpi"):
            kpis[name] = _entry(path, name, entry)
        for name, entry in _tables(path, document, "derived"):
            derivations[name] = _derivation(path, name, entry)
    return Catalogue(version, kpis, tuple(derivations.values()), _spellings(kpis))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogueError(f"catalogue {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"catalogue {path} is not valid TOML: {error}") from error


def _tables(
    path: Path, document: Mapping[str, Any], kind: str
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Names and fields of the entries of one kind."""
    tables = document.get(kind, {})
    if not isinstance(tables, dict):
        raise CatalogueError(f'catalogue {path}: expected tables [{kind}."NAME"], got {tables!r}')
    for name, entry in tables.items():
        if not isinstance(entry, dict):
            raise CatalogueError(
                f"catalogue {path}: {kind} {name} is no table of fields; quote names that have dots"
            )
        yield name, entry


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
    aliases = entry.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise CatalogueError(f"catalogue {path}: {name} has aliases {aliases!r}; expected texts")
    if not all(limit is None or _is_number(limit) for limit in (lower, upper)):
        raise CatalogueError(
            f"catalogue {path}: {name} has limits {lower!r} and {upper!r}; expected numbers"
        )
    if not isinstance(cumulative := entry.get("cumulative", False), bool):
        raise CatalogueError(
            f"catalogue {path}: {name} has cumulative {cumulative!r}; expected true or false"
        )
    if lower is not None and upper is not None and lower >= upper:
        raise CatalogueError(f"catalogue {path}: {name} has lower {lower} not under upper {upper}")
    return Kpi(
        name=name,
        unit=str(entry.get("unit", "")),
        kind=kind,
        lower=None if lower is None else float(lower),
        upper=None if upper is None else float(upper),
        aliases=tuple(aliases),
        cumulative=cumulative,
        clause=str(entry.get("clause", "")),
    )


def _derivation(path: Path, name: str, entry: Mapping[str, Any]) -> Derivation:
    if unknown := sorted(set(entry) - {"numerator", "denominator", "scale"}):
        raise CatalogueError(
            f"catalogue {path}: derived {name} has unknown fields {unknown}; expected numerator, "
            "denominator and scale"
        )
    numerator, denominator = entry.get("numerator"), entry.get("denominator")
    if not isinstance(numerator, str) or not isinstance(denominator, str):
        raise CatalogueError(
            f"catalogue {path}: derived {name} has numerator {numerator!r} and denominator "
            f"{denominator!r}; expected the names of two counters"
        )
    scale = entry.get("scale", 1.0)
    if not _is_number(scale):
        raise CatalogueError(
            f"catalogue {path}: derived {name} has scale {scale!r}; expected a number"
        )
    return Derivation(name, numerator, denominator, float(scale))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
