import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from model.predictor import ModelIdentity
from service.metric_families import FAMILIES
from service.realised.exposition import ACCURACY_FAMILIES, AccuracyCollector
from service.realised.kept import Fate
from tests.service.realised.makers import PRB, forecast
from tests.service.realised.test_ledger import Desk


@pytest.fixture
def desk():
    made = Desk()
    yield made
    made.ledger.close()


@pytest.fixture
def registry(desk):
    made = CollectorRegistry()
    made.register(AccuracyCollector(desk.ledger.figures))
    return made


def families(registry):
    text = generate_latest(registry).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_every_family_is_exposed_with_its_kind_and_labels(desk, registry):
    desk.ledger.keep([forecast()])
    desk.push(("a", PRB, 1, 10.5))
    exposed = families(registry)
    for family in ACCURACY_FAMILIES:
        shown = exposed[family.name.removesuffix("_total")]
        assert shown.type == family.kind
        assert shown.documentation == family.text
        assert shown.samples
        assert all(set(sample.labels) == set(family.labels) for sample in shown.samples)


def test_no_family_has_two_names_or_a_cell():
    names = [family.name for family in (*FAMILIES, *ACCURACY_FAMILIES)]
    assert len(names) == len(set(names))
    for family in ACCURACY_FAMILIES:
        assert family.name.startswith("rancast_")
        assert "cell" not in family.labels


def test_the_gauges_show_what_the_ledger_says(desk, registry):
    desk.ledger.keep([forecast()])
    desk.push(("a", PRB, 1, 10.5), ("a", PRB, 2, 20.0))
    labels = {
        "kpi_kind": "percent",
        "horizon": "1",
        "model": "fake",
        "version": "1.2.3",
        "digest": "sha256:feed",
        "rung": "full",
        "levels": "0.1,0.5,0.9",
    }

    def value(name, **changes):
        return registry.get_sample_value(name, {**labels, **changes})

    assert value("rancast_realised_coverage_ratio") == 1
    assert value("rancast_realised_coverage_ratio", horizon="2-3") == 0
    assert value("rancast_nominal_coverage_ratio") == pytest.approx(0.8)
    assert value("rancast_realised_samples_total") == 1
    assert value("rancast_realised_covered_total") == 1
    loss = value("rancast_realised_quantile_loss_total")
    target = value("rancast_realised_absolute_target_total")
    assert target == 10.5
    assert loss / target == pytest.approx(value("rancast_realised_wql"))
    assert registry.get_sample_value("rancast_kept_forecasts") == 1
    for fate in Fate:
        unscored = "rancast_realised_unscored_total"
        assert registry.get_sample_value(unscored, {"reason": fate.value}) == 0


def test_a_single_level_has_no_coverage(desk, registry):
    desk.ledger.keep([forecast(levels=(0.5,))])
    desk.push(("a", PRB, 1, 10.5))
    exposed = families(registry)
    assert exposed["rancast_realised_coverage_ratio"].samples == []
    assert exposed["rancast_nominal_coverage_ratio"].samples == []
    assert len(exposed["rancast_realised_wql"].samples) == 1


def test_two_digests_of_one_version_are_two_series(desk, registry):
    for digest in ("sha256:a", "sha256:b"):
        desk.ledger.keep([forecast(model=ModelIdentity("m", "1", digest))])
    desk.push(("a", PRB, 1, 10.5))
    samples = families(registry)["rancast_realised_wql"].samples
    assert {sample.labels["digest"] for sample in samples} == {"sha256:a", "sha256:b"}
