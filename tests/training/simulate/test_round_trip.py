"""What the readers make of every dialect and fault equals what the simulated network knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from kpi.catalogue import Catalogue, Derivation
from kpi.readers import ColumnMapping, ReadOptions, read, read_tree
from training.simulate import FaultRates, SimulateOptions, simulate
from training.simulate.dialects import DIALECTS, expressible
from training.simulate.faults import FaultPlan
from training.simulate.measurements import MEASUREMENTS

PERIOD_MS = 900_000
# Cell, KPI, end of the period: value and suspect flag.
Samples = dict[tuple[str, str, int], tuple[float, bool]]

# Vendors' pairs of counters; those that only need a factor are in SCALED.
VENDOR_CATALOGUE = Catalogue(
    "test",
    {},
    tuple(
        Derivation(name, numerator, denominator, scale)
        for name, numerator, denominator, scale in [
            ("RRU.PrbTotDl", "pmMacRBSymUsedPdschTypeA", "pmMacRBSymAvailDl", 100.0),
            ("RRU.PrbTotUl", "pmMacRBSymUsedPuschTypeA", "pmMacRBSymAvailUl", 100.0),
            ("DRB.UEThpDl", "pmMacVolDlDrb", "pmMacTimeDlDrb", 1.0),
            ("DRB.UEThpUl", "pmMacVolUlResUe", "pmMacTimeUlResUe", 1.0),
            ("DRB.MeanActiveUeDl", "pmActiveUeDlSum", "pmActiveUeDlSamp", 1.0),
            ("RRC.ConnMean", "pmRrcConnLevelSumSa", "pmRrcConnLevelSamp", 1.0),
        ]
    ),
)
OMES_CATALOGUE = Catalogue(
    "test",
    {},
    (
        Derivation("RRU.PrbTotDl", "M55308C10001", "M55308C10003", 100.0),
        Derivation("RRU.PrbTotUl", "M55308C10002", "M55308C10004", 100.0),
    ),
)
PLAIN_CATALOGUE = Catalogue("test", {})
CATALOGUES = {"ericsson": VENDOR_CATALOGUE, "nokia": OMES_CATALOGUE}
SCALED: Mapping[str, tuple[str, float]] = {
    "pmMacVolDl": ("DRB.PdcpSduVolumeDL", 1e-6),
    "pmMacVolUl": ("DRB.PdcpSduVolumeUL", 1e-6),
    "pmRrcConnLevelMaxSa": ("RRC.ConnMax", 1.0),
    "pmRrcConnEstabAtt": ("RRC.ConnEstabAtt", 1.0),
    "pmRrcConnEstabSucc": ("RRC.ConnEstabSucc", 1.0),
    "pmConsumedEnergy": ("PEE.Energy", 1e-3),
    "M55309C01001": ("DRB.PdcpSduVolumeDL", 8e-6),
    "M55309C02001": ("DRB.PdcpSduVolumeUL", 8e-6),
}
FAULTS = {
    "none": FaultRates(),
    "files": FaultRates(late=0.4, duplicate=0.4, missing_file=0.2),
    "values": FaultRates(missing_counter=0.3, suspect=0.3),
    "corrected": FaultRates(corrected=0.5, late_periods=2),
    "wrong_clock": FaultRates(wrong_clock=1.0),
}


def object_name(dialect: str, gnb: str, cell: int, kpi: str) -> str:
    element = f"ManagedElement={gnb}"
    if dialect == "nokia":
        return f"PLMN-PLMN/MRBTS-{gnb.removeprefix('GNB-')}/NRBTS-1/NRCELL-{cell}"
    if dialect == "ericsson" and kpi == "PEE.Energy":
        return f"{element},Equipment=1,FieldReplaceableUnit=RRU-{cell},EnergyMeter=1"
    is_central = {
        "ericsson": kpi.startswith("RRC."),
        "keysight": MEASUREMENTS[kpi].central,
    }.get(dialect, False)
    if is_central:
        return f"{element},GNBCUCPFunction=1,NRCellCU={cell}"
    return f"{element},GNBDUFunction=1,NRCellDU={cell}"


def truth(options: SimulateOptions, first: int, last: int) -> Samples:
    """What all files that arrived until the end of period `last` say when they are put together."""
    network, plan = options.network(), FaultPlan(options.seed, options.faults)
    known: Samples = {}
    for gnb in network.gnbs:
        dialect = options.dialects[gnb.index % len(options.dialects)]
        count = last - first + 1
        values = network.values(gnb.cells, first, count)
        for i, fates in enumerate(plan.deliveries(gnb, first, count)):
            arrived = [d for d in fates if d.period + d.delay_periods <= last]
            if not arrived:
                continue
            newest = max(arrived, key=lambda d: d.delay_periods)
            for c, cell in enumerate(gnb.cells):
                missing, _ = plan.missing(cell, options.kpis, first + i, 1)
                (suspect,), (share,) = plan.suspect(cell, first + i, 1)
                for k, kpi in enumerate(options.kpis):
                    if kpi not in expressible(dialect) or missing[k, 0]:
                        continue
                    if suspect and dialect == "nokia":
                        continue
                    value = 0.0 if newest.is_wrong else float(values[c, k, i])
                    if MEASUREMENTS[kpi].additive:
                        value = float(np.round(value * share, MEASUREMENTS[kpi].decimals))
                    name = object_name(dialect, gnb.name, cell.local_id, kpi)
                    known[name, kpi, (first + i + 1) * PERIOD_MS] = value, bool(suspect)
    return known


def observed(paths: list[Path], dialect: str, kpis: tuple[str, ...]) -> Samples:
    """What the readers make of files in the order of their arrival; the last value wins."""
    options = ReadOptions()
    if dialect in ("csv", "parquet"):
        options = ReadOptions(columns=ColumnMapping(period_seconds=PERIOD_MS / 1000))
    catalogue = CATALOGUES.get(dialect, PLAIN_CATALOGUE)
    known: Samples = {}
    for path in paths:
        for batch in read(path, options, catalogue):
            assert set(batch.period_ms.tolist()) <= {PERIOD_MS}
            ends_ms = np.rint(batch.period_end_ms / PERIOD_MS).astype(int) * PERIOD_MS
            for row, value in enumerate(batch.values.tolist()):
                kpi, scale = batch.kpis[batch.kpi_index[row]], 1.0
                kpi, scale = SCALED.get(kpi, (kpi, scale))
                if kpi in kpis and not np.isnan(value):
                    key = batch.cells[batch.cell_index[row]], kpi, int(ends_ms[row])
                    known[key] = value * scale, bool(batch.suspect[row])
    return known


def assert_same(found: Samples, expected: Samples, dialect: str) -> None:
    assert found.keys() == expected.keys()
    keys = list(expected)
    is_exact = dialect not in CATALOGUES
    np.testing.assert_allclose(
        [found[key][0] for key in keys],
        [expected[key][0] for key in keys],
        # Vendors' counters are whole numbers; all others come back digit by digit.
        rtol=0.0 if is_exact else 1e-6,
        atol=0.0 if is_exact else 3e-3,
    )
    assert [found[key][1] for key in keys] == [expected[key][1] for key in keys]


def run_in_order(options: SimulateOptions) -> tuple[list[Path], int, int]:
    """Simulate; files in the order of arrival, and the first and last period."""
    arrived: list[Path] = []

    def watch(_):
        files = {p for p in options.out.rglob("*") if p.is_file() and p.name[0] != "."}
        arrived.extend(sorted(files - set(arrived), key=lambda p: (p.name.count("_-_2"), p.name)))

    summary = simulate(options, watch)
    return arrived, summary.first_ms // PERIOD_MS, summary.end_ms // PERIOD_MS - 1


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_readers_give_back_what_the_network_knows(make_options, dialect, fault):
    options = make_options(
        days=0,
        cells=2,
        cells_per_gnb=1,
        periods=9,
        dialects=(dialect,),
        faults=FAULTS[fault],
        time_zone="America/New_York",
        compact=fault in ("none", "values"),
        compress=dialect != "parquet" and fault == "files",
    )
    paths, first, last = run_in_order(options)
    expected = truth(options, first, last)
    assert expected
    assert_same(observed(paths, dialect, options.kpis), expected, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_daily_history_reads_as_the_same_network(make_options, dialect):
    faults = FaultRates(missing_counter=0.1, missing_file=0.1, suspect=0.1, wrong_clock=0.5)
    options = make_options(days=0.5, periods=0, dialects=(dialect,), faults=faults)
    paths, first, last = run_in_order(options)
    expected = truth(options, first, last)
    assert_same(observed(paths, dialect, options.kpis), expected, dialect)


def test_a_directory_of_all_dialects_is_read_without_an_error(make_options):
    errors: list[Exception] = []
    options = make_options(
        cells=len(DIALECTS), cells_per_gnb=1, days=0.25, periods=0, dialects=tuple(DIALECTS)
    )
    simulate(options)
    (options.out / "history" / "half.xml.partial").write_bytes(b"<measDataFile")
    batches = list(read_tree(options.out, ReadOptions(), PLAIN_CATALOGUE, errors.append))
    assert errors == []
    assert {cell for batch in batches for cell in batch.cells} >= {
        f"ManagedElement=GNB-{gnb + 1},GNBDUFunction=1,NRCellDU=1"
        for gnb, dialect in enumerate(DIALECTS)
        if dialect != "nokia"
    }


def test_keysight_sub_counters_keep_their_own_names(make_options):
    options = make_options(days=0, periods=1, dialects=("keysight",))
    simulate(options)
    batches = list(read_tree(options.out, ReadOptions(), PLAIN_CATALOGUE))
    kpis = {kpi for batch in batches for kpi in batch.kpis}
    assert {"RRU.PrbTotDl", "RRU.PrbTotDl.01", "RRU.PrbTotDl.010003e8"} <= kpis
