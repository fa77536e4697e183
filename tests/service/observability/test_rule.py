import yaml
from hypothesis import given
from hypothesis import strategies as st

from service.metric_families import BUDGET_USED
from service.observability.promql import has_risen, number, seconds, select, share
from service.observability.rule import Alert, Recording, RuleFile, RuleGroup, Severity

WORDS = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1)


@given(description=WORDS, value=WORDS)
def test_whatever_is_said_is_read_from_the_file_as_it_was_written(description, value):
    alert = Alert(
        "A", "up == 0", Severity.INFO, "What.", description, labels={"long_window": value}
    )
    file = RuleFile("f", [RuleGroup("g", [alert])])
    (group,) = yaml.safe_load(file.text("https://x.example/m"))["groups"]
    assert group == {
        "name": "g",
        "rules": [
            {
                "alert": "A",
                "expr": "up == 0",
                "labels": {"long_window": value, "severity": "info"},
                "annotations": {
                    "summary": "What.",
                    "description": description,
                    "runbook_url": "https://x.example/m#a",
                },
            }
        ],
    }


def test_expressions_keep_their_lines_and_alerts_their_patience():
    expression = 'sum(up{job=~"a|b"})\n/ (\n  sum(up) # all\n) > 0'
    alert = Alert("A", expression, Severity.INFO, "s", "d", "15m")
    rules: list[Recording | Alert] = [Recording("a:b:c", expression), alert]
    (group,) = yaml.safe_load(RuleFile("f", [RuleGroup("g", rules)]).text())["groups"]
    assert group["rules"][0] == {"record": "a:b:c", "expr": expression}
    assert group["rules"][1]["expr"] == expression
    assert group["rules"][1]["for"] == "15m"


def test_numbers_lose_what_binary_fractions_add():
    assert number(1 - 0.995) == "0.005"
    assert number(14.4) == "14.4"
    assert number(2700) == "2700"


def test_a_selector_names_the_part_of_a_histogram():
    assert select(BUDGET_USED) == "rancast_latency_budget_used_ratio"
    bucket = select(BUDGET_USED, 'le="1.0"', part="_bucket")
    assert bucket == 'rancast_latency_budget_used_ratio_bucket{le="1.0"}'


def test_a_rare_event_is_looked_for_in_both_ways():
    assert has_risen("x_total", "5m", ("job",)) == (
        "sum by (job) (increase(x_total[5m])) > 0\n"
        "or\n"
        "sum by (job) (\n"
        "  x_total unless x_total offset 5m\n"
        "  and on (namespace, job, pod, instance) "
        "(rancast_ready offset 5m or process_start_time_seconds > time() - 300)\n"
        ") > 0"
    )


def test_a_share_has_a_whole_and_may_have_no_part():
    assert share("a\n- b", "sum(c)") == "(\n  a\n  - b\n  or sum(c) * 0\n)\n/ (sum(c) > 0)"


def test_windows_have_seconds():
    assert [seconds(window) for window in ("5m", "6h", "3d")] == [300, 21_600, 259_200]
