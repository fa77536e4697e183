"""Who answers: by name, by version, by default, as a canary."""

from __future__ import annotations

import itertools

import pytest
from prometheus_client import CollectorRegistry

from service.errors import ConflictError, NotFoundError
from service.metrics import Metrics
from service.models.reference import parse_reference
from service.models.registry import Models, Role
from service.models.routing import Routing
from tests.service.fakes import FakeClock
from tests.service.models.makers import make_model


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def models(registry):
    """Three models; `a@1` is the base."""
    made = Models(Metrics(registry, FakeClock(), "near-rt"), draw=lambda: 0.5)
    made.put(make_model("a", "1"), base=True)
    made.put(make_model("a", "10"))
    made.put(make_model("a", "9"))
    made.put(make_model("b", "2"))
    return made


def named(text):
    return None if text is None else parse_reference(text)


def routing(default=None, canary=None, share=0.0):
    return Routing(named(default), named(canary), share)


def key(model):
    return "@".join(model.key)


def test_the_base_model_answers_where_nothing_is_said(models):
    assert key(models.find()) == key(models.choose()) == "a@1"


@pytest.mark.parametrize(
    ("asked", "found"),
    [("a", "a@1"), ("a@9", "a@9"), ("b", "b@2"), ("b@2", "b@2")],
)
def test_a_name_means_the_default_or_else_its_highest_version(models, asked, found):
    assert key(models.find(named(asked))) == found


def test_a_default_without_a_version_follows_the_highest_one(models):
    models.route(routing("a"))
    assert key(models.default) == "a@10"
    models.put(make_model("a", "11"))
    assert key(models.default) == "a@11"


def test_what_is_not_served_is_not_found_and_what_is_there_is_named(models):
    with pytest.raises(NotFoundError, match="'c'"):
        models.find(named("c"))
    with pytest.raises(NotFoundError, match=r"'3'; served: 1, 9, 10"):
        models.find(named("a@3"))


def test_the_canary_answers_its_share_of_the_requests_that_name_no_model(registry):
    draws = itertools.cycle([0.05, 0.15, 0.95])
    models = Models(Metrics(registry, FakeClock(), "near-rt"), draw=lambda: next(draws))
    models.put(make_model("a", "1"), base=True)
    models.put(make_model("a", "2"))
    models.route(routing(None, "a@2", 0.1))
    assert [key(models.choose()) for _ in range(6)] == ["a@2", "a@1", "a@1"] * 2
    assert [key(models.choose(named("a"))) for _ in range(3)] == ["a@2", "a@1", "a@1"]
    assert {key(models.choose(named("a@1"))) for _ in range(3)} == {"a@1"}
    assert {key(models.find()) for _ in range(3)} == {"a@1"}


def test_a_canary_of_another_name_does_not_answer_for_the_name_of_the_default(models):
    models.route(routing(None, "b", 1.0))
    assert key(models.choose()) == "b@2"
    assert key(models.choose(named("a"))) == "a@1"


def test_a_canary_that_is_not_served_leaves_everything_to_the_default(models):
    models.route(routing(None, "b", 1.0))
    models.remove(models.find(named("b")))
    assert key(models.choose()) == "a@1"


def test_each_model_has_its_role(models):
    models.route(routing("a@9", "a@10", 0.2))
    assert {key(model): models.role(model) for model in models.served} == {
        "a@1": Role.NAMED,
        "a@9": Role.DEFAULT,
        "a@10": Role.CANARY,
        "b@2": Role.NAMED,
    }


def test_a_routing_to_what_is_not_served_changes_nothing(models):
    for wrong in (routing("c"), routing(None, "c", 0.1), routing("a@9", "a@8", 0.1)):
        with pytest.raises(NotFoundError):
            models.route(wrong)
    assert key(models.default) == "a@1"
    assert models.canary is None


def test_the_last_model_that_can_be_the_default_is_not_removed(models):
    with pytest.raises(ConflictError, match="a@1 answers"):
        models.remove(models.default)
    assert key(models.default) == "a@1"
    models.route(routing("a"))
    models.remove(models.default)
    assert key(models.default) == "a@9"


def test_a_model_takes_the_place_of_the_one_with_its_name_and_version(models, registry):
    old, new = models.find(named("b")), make_model("b", "2", "sha256:1")
    models.put(new)
    assert models.find(named("b")) is new
    models.remove(old)
    assert models.find(named("b")) is new
    info = "rancast_model_info"
    labels = {"name": "b", "version": "2"}
    assert registry.get_sample_value(info, labels | {"digest": "sha256:1"}) == 1
    assert registry.get_sample_value(info, labels | {"digest": "sha256:0"}) is None


def test_the_shares_are_shown(models, registry):
    def shares():
        return {
            version: registry.get_sample_value(
                "rancast_model_share_ratio", {"model": "a", "version": version}
            )
            for version in ("1", "10")
        }

    assert shares() == {"1": 1, "10": None}
    models.route(routing(None, "a@10", 0.25))
    assert shares() == {"1": 0.75, "10": 0.25}


def test_names_and_versions_are_listed_in_order(models):
    assert models.names == ["a", "b"]
    assert models.versions("a") == ["1", "9", "10"]
    assert models.versions("c") == []
