"""Names that YAML takes for something else, that Kubernetes refuses, or that stand there twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.helm.conftest import Helm
from tests.helm.rendered import container, named, of_kind, pod, variables

MODELS = {"enabled": True, "accessModes": ["ReadWriteMany"]}
TRAINED = {"enabled": True, "data": {"paths": ["s3://bucket/pm"]}}


def named_like(word: str) -> dict[str, Any]:
    """Values whose names are all one word, in everything that takes a name."""
    return {
        "nameOverride": word,
        "namespaceOverride": word,
        "profile": "near-rt",
        "xapp": {"platformNamespace": word, "dbaasConfigMap": word},
        "access": {"tokenSecret": word, "tlsSecret": word},
        "serviceAccount": {"name": word},
        "ingress": {
            "enabled": True,
            "className": word,
            "hosts": [{"host": word, "paths": [{"path": "/", "pathType": "Prefix"}]}],
        },
        "persistence": {"enabled": True, "storageClassName": word},
        "models": {**MODELS, "existingClaim": word},
        "jobs": {"enabled": True, "namespace": word},
        "retraining": {
            **TRAINED,
            "data": {"paths": [word], "existingClaim": f"{word}.pm", "subPath": word},
            "priorityClassName": word,
        },
        "serviceMonitor": {"enabled": True, "namespace": word},
        "networkPolicy": {"enabled": True},
        "priorityClassName": word,
        "runtimeClassName": word,
        "schedulerName": word,
    }


def scalars(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """What is neither list nor map, with where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from scalars(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from scalars(inner, f"{path}[{place}]")
    else:
        yield path, value


@pytest.mark.parametrize("word", ["123", "1e3", "on", "null"])
def test_a_name_stays_a_text_whatever_yaml_would_take_it_for(helm: Helm, word: str) -> None:
    ordinary = helm.template(named_like("word"), "--name-template", "word")
    odd = helm.template(named_like(word), "--name-template", word)
    assert len(odd) == len(ordinary) > 10
    for one, other in zip(ordinary, odd, strict=True):
        changed = [
            path
            for (path, expected), (_, found) in zip(scalars(one), scalars(other), strict=True)
            if isinstance(expected, str) and not isinstance(found, str)
        ]
        assert changed == [], one["kind"]


@pytest.mark.parametrize("release", ["5g", "cells.north"])
def test_a_release_whose_service_could_not_be_called_so_is_refused(
    helm: Helm, release: str
) -> None:
    arguments = ("--name-template", release)
    assert "fullnameOverride" in helm.refusal({}, *arguments)
    objects = helm.template({"fullnameOverride": "cells"}, *arguments)
    assert named(objects, "Service", "cells")
    labels = of_kind(objects, "Deployment")["metadata"]["labels"]
    assert labels["app.kubernetes.io/instance"] == release


def test_an_xapp_may_be_called_by_a_digit_first_but_has_no_dot(helm: Helm) -> None:
    values = {"profile": "near-rt"}
    objects = helm.template(values, "--name-template", "5g")
    assert pod(objects)["hostname"] == "5g-rancast"
    assert "xapp.name" in helm.refusal(values, "--name-template", "cells.north")


def test_numbers_of_seven_digits_are_written_out(helm: Helm) -> None:
    values = {
        "models": MODELS,
        "retraining": {
            **TRAINED,
            "ttlSecondsAfterFinished": 1_209_600,
            "activeDeadlineSeconds": 1_000_000,
            "startingDeadlineSeconds": 1_000_000,
        },
        "progressDeadlineSeconds": 2_000_000,
        "minReadySeconds": 1_000_000,
    }
    text = helm.try_template({"access": {"open": True}, **values}).stdout
    for number in ("ttlSecondsAfterFinished: 1209600", "activeDeadlineSeconds: 1000000"):
        assert number in text
    # What Helm makes of a number by itself, and what no API server takes for one.
    assert "e+06" not in text


def test_a_variable_of_ones_own_takes_the_place_of_that_of_training(helm: Helm) -> None:
    extra = [{"name": "HOME", "value": "/home"}, {"name": "AWS_REGION", "value": "eu"}]
    objects = helm.template({"models": MODELS, "retraining": {**TRAINED, "extraEnv": extra}})
    spec = of_kind(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    names = [each["name"] for each in spec["containers"][0]["env"]]
    assert len(names) == len(set(names))
    assert variables(spec["containers"][0])["HOME"] == "/home"


@pytest.mark.parametrize("name", ["JOB_NAME", "VERSION_PREFIX"])
def test_what_a_run_knows_its_checkpoint_by_cannot_be_changed(each_helm: Helm, name: str) -> None:
    extra = [{"name": name, "value": "a"}]
    refusal = each_helm.refusal({"models": MODELS, "retraining": {**TRAINED, "extraEnv": extra}})
    assert "extraEnv" in refusal


@pytest.mark.parametrize(
    "name", ["RANCAST_OPEN_PATHS", "RANCAST_TOKEN_FILE", "RANCAST_TLS_CLIENT_CA"]
)
def test_who_may_call_is_not_decided_by_a_variable(each_helm: Helm, name: str) -> None:
    refusal = each_helm.refusal({"extraEnv": [{"name": name, "value": "/*"}]})
    assert "extraEnv" in refusal


def test_a_variable_in_small_letters_does_not_open_the_door(helm: Helm) -> None:
    # The service reads its variables whatever the size of their letters.
    extra = [{"name": "rancast_open_access", "value": "true"}]
    assert "capitals" in helm.refusal({"access": {"tokenSecret": "callers"}, "extraEnv": extra})


def test_a_variable_that_is_given_twice_is_refused(helm: Helm) -> None:
    extra = [{"name": "TZ", "value": "UTC"}, {"name": "TZ", "value": "Europe/Madrid"}]
    assert "TZ" in helm.refusal({"extraEnv": extra})
    values = {"models": MODELS, "retraining": {**TRAINED, "extraEnv": extra}}
    assert "retraining.extraEnv" in helm.refusal(values)


def test_labels_of_the_platform_stand_on_the_pod_once(helm: Helm) -> None:
    own = {"profile": "near-rt", "xapp": {"name": "cell-load"}}
    values = {**own, "commonLabels": {"app": "other", "kubernetes_name": "other"}}
    answer = helm.try_template({"access": {"open": True}, **values})
    (deployment,) = (
        part for part in answer.stdout.split("\n---\n") if "\nkind: Deployment\n" in part
    )
    template = deployment.partition("template:")[2]
    assert template.count(" app: ") == template.count(" kubernetes_name: ") == 1
    assert "app: ricxapp-cell-load" in template
    for name in ("app", "kubernetes_name"):
        assert "podLabels" in helm.refusal({**own, "podLabels": {name: "other"}})
    labels = of_kind(helm.template({"podLabels": {"app": "mine"}}), "Deployment")["spec"]
    assert labels["template"]["metadata"]["labels"]["app"] == "mine"


@pytest.mark.parametrize(
    ("values", "emptied"),
    [
        ({"persistence": {"ephemeralSizeLimit": None}}, "journal"),
        ({"compiled": {"enabled": True, "ephemeralSizeLimit": None}}, "code"),
    ],
)
def test_a_bound_that_is_taken_away_is_none(
    helm: Helm, values: dict[str, Any], emptied: str
) -> None:
    (volume,) = (each for each in pod(helm.template(values))["volumes"] if each["name"] == emptied)
    assert volume["emptyDir"] == {}


@pytest.mark.parametrize("group", ["persistence", "models"])
def test_a_claim_without_a_size_is_refused(each_helm: Helm, group: str) -> None:
    assert "size" in each_helm.refusal({group: {"enabled": True, "size": None}})


def test_a_number_in_a_variable_is_written_as_a_text(helm: Helm) -> None:
    extra = [
        {"name": "COUNT", "value": 1_000_000},
        {"name": "SWITCH", "value": True},
        {"name": "REVISION", "value": "1{{ .Release.Revision }}"},
        {"name": "EMPTY"},
    ]
    values = {"models": MODELS, "retraining": {**TRAINED, "extraEnv": extra}, "extraEnv": extra}
    objects = helm.template(values)
    expected = {"COUNT": "1000000", "SWITCH": "true", "REVISION": "11"}
    job = of_kind(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for one in (container(objects), job["containers"][0]):
        assert expected.items() <= variables(one).items()
