from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from model.inference_path import InferencePath, PathKind
from model.predictor import ModelIdentity, Rung
from service.metric_families import FAMILIES, RATIO_BUCKETS, SECONDS_BUCKETS
from service.metrics import Metrics, Stage, StoreFigures
from tests.service.fakes import NOON_MS, FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry, clock):
    return Metrics(registry, clock, "near-rt")


def families(metrics):
    return {f.name: f for f in text_string_to_metric_families(metrics.exposition().decode())}


def watch(metrics, newest_ms: int | None = NOON_MS - 42_000):
    metrics.watch_store(lambda: StoreFigures(cells=3, stored_bytes=99, newest_ms=newest_ms))


def test_every_family_of_the_table_is_exposed_with_its_kind_and_labels(metrics):
    watch(metrics)
    metrics.show_model(ModelIdentity("m", "1", "sha256:0"))
    metrics.observe_request("/v1/forecast", 0.05, 0.5)
    metrics.observe_stage(Stage.INFER, 0.01)
    metrics.count_exceeded("queue")
    metrics.count_forecasts(ModelIdentity("m", "1", "sha256:0"), [Rung.FULL])
    metrics.count_rejected("/v1/forecast", "full")
    metrics.count_file(readable=True)
    exposed = families(metrics)
    for family in FAMILIES:
        shown = exposed[family.name.removesuffix("_total")]
        assert shown.type == family.kind
        assert shown.documentation == family.text
        assert set(family.labels) <= {label for s in shown.samples for label in s.labels} | (
            set(family.labels) if not shown.samples else set()
        )


def test_every_family_carries_the_prefix_and_base_units_and_names_no_cell():
    for family in FAMILIES:
        assert family.name.startswith("rancast_")
        assert "cell" not in family.labels
        assert not any(unit in family.name for unit in ("_ms", "_milli", "percent"))


def test_buckets_ascend_and_the_budget_has_one_at_exactly_one():
    for buckets in (RATIO_BUCKETS, SECONDS_BUCKETS):
        assert all(a < b for a, b in pairwise(buckets))
    assert 1.0 in RATIO_BUCKETS


def test_the_share_of_the_budget_is_counted_only_where_there_is_one(metrics, registry):
    metrics.observe_request("/v1/forecast", 0.05, 0.5)
    metrics.observe_request("/v1/forecast", 0.05, None)
    labels = {"route": "/v1/forecast", "profile": "near-rt"}
    assert registry.get_sample_value("rancast_latency_budget_used_ratio_sum", labels) == 0.5
    assert registry.get_sample_value("rancast_latency_budget_used_ratio_count", labels) == 1
    assert registry.get_sample_value("rancast_request_duration_seconds_count", labels) == 2


def test_the_age_of_the_data_grows_with_the_clock(metrics, registry, clock):
    watch(metrics)
    assert registry.get_sample_value("rancast_data_age_seconds") == 42
    clock.advance(8)
    assert registry.get_sample_value("rancast_data_age_seconds") == 50


def test_an_empty_store_has_no_age(metrics, registry):
    watch(metrics, newest_ms=None)
    assert registry.get_sample_value("rancast_data_age_seconds") is None
    assert registry.get_sample_value("rancast_store_cells") == 3
    assert registry.get_sample_value("rancast_store_bytes") == 99


def test_a_model_that_is_served_no_more_is_shown_no_more(metrics):
    gone, stays = ModelIdentity("m", "1", "a"), ModelIdentity("m", "2", "b")
    for identity in (gone, stays):
        metrics.show_model(identity)
        metrics.show_cost(identity, Rung.FULL, call_s=0.1, work_s=0.2)
        metrics.show_inference(identity, InferencePath(PathKind.EAGER, "float32", "torch"))
        metrics.count_forecasts(identity, [Rung.FULL])
    metrics.hide_model(gone)
    shown = families(metrics)
    for name in ("model_info", "inference_cost_seconds", "inference_info"):
        samples = shown[f"rancast_{name}"].samples
        assert {sample.labels["version"] for sample in samples} == {"2"}, name
    answered = {s.labels["version"] for s in shown["rancast_forecasts"].samples}
    assert answered == {"1", "2"}


def test_the_way_a_model_is_run_is_shown_once(metrics):
    identity = ModelIdentity("m", "1", "a")
    for kind in (PathKind.EAGER, PathKind.COMPILED):
        metrics.show_inference(identity, InferencePath(kind, "float32", "torch"))
    (sample,) = families(metrics)["rancast_inference_info"].samples
    assert sample.labels["path"] == "compiled"


def test_the_process_shows_its_own_figures(metrics):
    assert "process_resident_memory_bytes" in families(metrics)
