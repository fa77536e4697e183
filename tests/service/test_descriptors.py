import resource

import pytest

from service.descriptors import OWN_DESCRIPTORS, make_room


@pytest.fixture
def limits(monkeypatch):
    """A soft and a hard limit that tests choose, and what becomes of them."""
    state = {"soft": 1024, "hard": 4096}

    def set_limit(_what, wanted):
        soft, hard = wanted
        assert hard == state["hard"], "the hard limit is the system's"
        state["soft"] = soft

    monkeypatch.setattr(resource, "getrlimit", lambda _: (state["soft"], state["hard"]))
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    return state


def test_enough_is_left_alone(limits, caplog):
    assert make_room(500) == 500
    assert limits["soft"] == 1024
    assert not caplog.records


def test_the_limit_is_raised_to_what_connections_need(limits, caplog):
    assert make_room(2000) == 2000
    assert limits["soft"] == 2000 + OWN_DESCRIPTORS
    assert not caplog.records


def test_where_the_system_forbids_it_a_warning_says_how_many_fit(limits, caplog):
    assert make_room(10_000) == 4096 - OWN_DESCRIPTORS
    assert limits["soft"] == 4096
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.rancast_fields["connections"] == 4096 - OWN_DESCRIPTORS
    assert "RANCAST_MAX_CONNECTIONS" in record.rancast_fields["mend"]


def test_an_unlimited_system_is_enough(limits):
    limits["hard"] = resource.RLIM_INFINITY
    assert make_room(1_000_000) == 1_000_000


@pytest.mark.usefixtures("limits")
def test_a_limit_that_cannot_be_raised_is_lived_with(monkeypatch):
    def refuse(*_):
        raise ValueError("not permitted")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert make_room(2000) == 1024 - OWN_DESCRIPTORS
