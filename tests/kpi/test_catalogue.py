"""The catalogue: what it holds, how it is asked, and how a user extends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpi.catalogue import Catalogue, Derivation, Kpi, KpiKind, load_catalogue
from kpi.errors import CatalogueError


@pytest.fixture(scope="module")
def built_in() -> Catalogue:
    return load_catalogue()


def extension(folder: Path, text: str | bytes) -> Path:
    path = folder / "own.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_built_in_catalogue_is_versioned_and_large_enough(built_in: Catalogue) -> None:
    assert built_in.version == "1"
    assert len(built_in.kpis) >= 40
    assert sum(kpi.clause.startswith("TS 28.552 5.1.") for kpi in built_in.kpis.values()) >= 30


def test_limits_follow_the_kind(built_in: Catalogue) -> None:
    for kpi in built_in.kpis.values():
        if kpi.kind is KpiKind.PERCENT:
            assert (kpi.lower, kpi.upper, kpi.unit) == (0, 100, "%"), kpi.name
        if kpi.kind in (KpiKind.COUNT, KpiKind.VOLUME, KpiKind.RATE, KpiKind.DELAY):
            assert kpi.lower == 0, kpi.name
        assert kpi.unit, kpi.name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("RRU.PrbTotDl", "RRU.PrbTotDl"),
        ("rru.PRBTOTDL", "RRU.PrbTotDl"),
        ("DRB.PdcpSduVolumeDl", "DRB.PdcpSduVolumeDL"),
        ("pmRrcConnEstabAtt", "RRC.ConnEstabAtt"),
        ("pmActiveUeDlMax", "DRB.MaxActiveUeDl"),
        ("something.else", "something.else"),
    ],
)
def test_any_case_and_alias_finds_the_canonical_name(
    built_in: Catalogue, spelling: str, name: str
) -> None:
    assert built_in.canonical(spelling) == name
    assert built_in.canonical_names([spelling, "x"]) == [name, "x"]
    assert (spelling in built_in) is (name in built_in.kpis)


def test_quantities_in_other_units_are_no_aliases(built_in: Catalogue) -> None:
    for name, unit in (("pdcpBytesDl", "byte"), ("pmMacVolDl", "bit")):
        assert built_in.canonical(name) == name
        assert built_in.resolve(name).unit == unit
    assert built_in.resolve("DRB.PdcpSduVolumeDL").unit == "Mbit"


def test_unknown_name_is_a_gauge_without_limits(built_in: Catalogue) -> None:
    assert built_in.resolve("Some.Thing") == Kpi("Some.Thing", "", KpiKind.GAUGE)
    assert "Some.Thing" not in built_in


@pytest.mark.parametrize("name", ["RRU.PrbTotDl.01", "rru.prbtotdl.226F04", "RRU.PrbTotDl[3]"])
def test_sub_counter_has_the_limits_of_its_total_under_its_own_name(
    built_in: Catalogue, name: str
) -> None:
    found = built_in.resolve(name)
    assert (found.name, found.unit, found.lower, found.upper) == (name, "%", 0, 100)
    assert built_in.canonical(name) == name


def test_every_derivation_names_a_known_kpi(built_in: Catalogue) -> None:
    assert len(built_in.derivations) >= 5
    assert all(rule.name in built_in.kpis for rule in built_in.derivations)
    assert Derivation("DRB.MeanActiveUeDl", "pmActiveUeDlSum", "pmActiveUeDlSamp") in (
        built_in.derivations
    )


def test_extension_adds_and_replaces_entries(tmp_path: Path) -> None:
    path = extension(
        tmp_path,
        """
        [kpi."My.Load"]
        unit = "Erlang"
        kind = "gauge"
        lower = 0
        aliases = ["vendorLoad"]
        cumulative = true
        clause = "house rule 3"

        [kpi."RRU.PrbTotDl"]
        unit = "ratio"
        kind = "ratio"
        lower = 0
        upper = 1

        [derived."My.Mean"]
        numerator = "a"
        denominator = "b"
        scale = 100
        """,
    )
    found = load_catalogue([path])
    assert found.version == "1"
    assert found.resolve("VENDORLOAD") == Kpi(
        "My.Load",
        "Erlang",
        KpiKind.GAUGE,
        lower=0.0,
        aliases=("vendorLoad",),
        cumulative=True,
        clause="house rule 3",
    )
    assert found.resolve("RRU.PrbTotDl").upper == 1.0
    assert found.derivations[-1] == Derivation("My.Mean", "a", "b", 100.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[kpi", "not valid TOML"),
        (b"\xff\xfe", "not valid TOML"),
        ('[kpi."A"]\nunits = "%"', r"A has unknown fields \['units'\]"),
        ('[kpi."A"]\nkind = "speed"', "kind 'speed'"),
        ('[kpi."A"]\nlower = 2\nupper = 1', "lower 2 not under upper 1"),
        ('[kpi."A"]\nlower = "low"', "limits 'low'"),
        ('[kpi."A"]\nupper = true', "limits None and True"),
        ('[kpi."A"]\naliases = "x"', "aliases 'x'"),
        ('[kpi."A"]\naliases = [1]', "aliases"),
        ('[kpi."A"]\ncumulative = "false"', "cumulative 'false'; expected true or false"),
        ("kpi = 3", "expected tables"),
        ("[kpi]\nA = 1", "quote names"),
        ('[kpis."A"]\nunit = "1"', r"unknown tables \['kpis'\]"),
        ('[derived."A"]\nnumerator = "a"', "denominator None"),
        ('[derived."A"]\nnumerator = "a"\ndenominator = "b"\nfactor = 2', "unknown fields"),
        ('[derived."A"]\nnumerator = "a"\ndenominator = "b"\nscale = "x"', "scale 'x'"),
        ('[kpi."A"]\naliases = ["RRU.PRBTOTDL"]', "claimed by RRU.PrbTotDl and by A"),
        ('[kpi."A"]\naliases = ["z"]\n[kpi."B"]\naliases = ["Z"]', "claimed by A and by B"),
    ],
)
def test_bad_extension_is_refused_with_its_place(
    tmp_path: Path, text: str | bytes, reason: str
) -> None:
    with pytest.raises(CatalogueError, match=reason):
        load_catalogue([extension(tmp_path, text)])


def test_missing_extension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="cannot be read"):
        load_catalogue([tmp_path / "none.toml"])
