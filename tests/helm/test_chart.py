"""The chart renders what a strict cluster admits, and refuses values that cannot work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpi.store import StoreLimits
from model.code_cache import CACHE_VARIABLE
from service.settings import PREFIX, Settings
from tests.helm.conftest import CHART, Helm
from tests.helm.rendered import container, environment, gibibytes, of_kind, pod

VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_chart_passes_strict_lint(each_helm: Helm, values: Path) -> None:
    answer = each_helm.run("lint", "--strict", str(CHART), "--values", str(values))
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_both_helms_render_the_same(both_helms: tuple[Helm, Helm], values: Path) -> None:
    content = yaml.safe_load(values.read_text())
    newer, older = (each.template(content) for each in both_helms)
    key = itemgetter("kind", "metadata")
    assert sorted(newer, key=lambda each: str(key(each))) == sorted(
        older, key=lambda each: str(key(each))
    )


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_every_object_carries_the_recommended_labels(helm: Helm, values: Path) -> None:
    own = {**yaml.safe_load(values.read_text()), "extraObjects": []}
    for each in helm.template(own):
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "rancast"
        assert labels["app.kubernetes.io/instance"] == "r"
        assert labels["helm.sh/chart"].startswith("rancast-")


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, "rancast:0.1.0"),
        ({"tag": "1.2.3"}, "rancast:1.2.3"),
        ({"repository": "ran/rancast"}, "ran/rancast:0.1.0"),
        ({"registry": "host.example:5000"}, "host.example:5000/rancast:0.1.0"),
        ({"registry": "host.example/"}, "host.example/rancast:0.1.0"),
        ({"digest": DIGEST}, f"rancast@{DIGEST}"),
        ({"digest": DIGEST, "tag": "1.2.3"}, f"rancast@{DIGEST}"),
        (
            {"registry": "host.example", "repository": "a/b", "digest": DIGEST},
            f"host.example/a/b@{DIGEST}",
        ),
    ],
)
def test_image_name_is_registry_repository_and_digest_or_tag(
    helm: Helm, image: dict[str, str], expected: str
) -> None:
    assert container(helm.template({"image": image}))["image"] == expected


def test_application_version_is_the_projects(helm: Helm) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (CHART.parents[1] / "pyproject.toml").read_text()
    assert f'\nversion = "{chart["appVersion"]}"\n' in project
    assert of_kind(helm.template(), "Deployment")["metadata"]["labels"][
        "app.kubernetes.io/version"
    ] == str(chart["appVersion"])


def test_pod_meets_the_restricted_security_standard(helm: Helm) -> None:
    objects = helm.template()
    assert pod(objects)["securityContext"]["runAsNonRoot"] is True
    assert pod(objects)["securityContext"]["runAsUser"] == 10001
    assert pod(objects)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    context = container(objects)["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_pod_gets_no_token_for_the_kubernetes_api(helm: Helm) -> None:
    objects = helm.template()
    assert pod(objects)["automountServiceAccountToken"] is False
    assert of_kind(objects, "ServiceAccount")["automountServiceAccountToken"] is False


def test_service_links_cannot_be_mistaken_for_settings(helm: Helm) -> None:
    assert pod(helm.template())["enableServiceLinks"] is False


def test_writable_places_are_volumes(helm: Helm) -> None:
    objects = helm.template()
    mounts = {each["mountPath"]: each["name"] for each in container(objects)["volumeMounts"]}
    volumes = {each["name"]: each for each in pod(objects)["volumes"]}
    assert mounts == {"/var/lib/rancast": "journal", "/tmp": "tmp"}
    assert "emptyDir" in volumes["tmp"]
    assert volumes["journal"]["emptyDir"] == {"sizeLimit": "5Gi"}
    assert environment(objects)["RANCAST_JOURNAL_PATH"].startswith("/var/lib/rancast/")


def test_probes_ask_for_life_and_readiness(helm: Helm) -> None:
    only = container(helm.template())
    assert only["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert only["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert only["startupProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    startup_seconds = (
        only["startupProbe"]["periodSeconds"] * only["startupProbe"]["failureThreshold"]
    )
    assert startup_seconds >= 120


def test_requests_in_flight_can_end_before_the_pod_is_killed(helm: Helm) -> None:
    drain_seconds = Settings.model_fields["drain_seconds"].default
    assert pod(helm.template())["terminationGracePeriodSeconds"] > drain_seconds


def test_memory_of_the_default_settings_fits_the_limit(helm: Helm) -> None:
    settings = Settings()
    limits = StoreLimits(settings.max_cells, settings.history_steps, settings.max_kpis)
    store_bytes = settings.max_cells * limits.stated_bytes_per_cell(settings.max_kpis)
    # What docs/operations.md says of the model and of the largest body.
    needed_bytes = 0.4e9 + store_bytes + 30 * settings.max_body_bytes
    limit = container(helm.template())["resources"]["limits"]["memory"]
    assert gibibytes(limit) > needed_bytes


@pytest.mark.parametrize("place", ["size", "ephemeralSizeLimit"])
def test_the_journal_of_a_full_store_fits_its_volume(place: str) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    settings = Settings()
    samples = 2 * settings.max_cells * settings.history_steps * settings.max_kpis
    assert gibibytes(values["persistence"][place]) > 8 * samples


def test_an_emptied_probe_is_left_out(helm: Helm) -> None:
    assert "startupProbe" not in container(helm.template({"startupProbe": None}))


def test_port_reaches_container_environment_and_service(helm: Helm) -> None:
    objects = helm.template({"containerPort": 9090, "service": {"port": 80}})
    assert container(objects)["ports"] == [
        {"name": "http", "containerPort": 9090, "protocol": "TCP"}
    ]
    assert environment(objects)["RANCAST_PORT"] == "9090"
    (port,) = of_kind(objects, "Service")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (80, "http")


def test_service_selects_the_pods_of_the_deployment(helm: Helm) -> None:
    objects = helm.template()
    deployment = of_kind(objects, "Deployment")["spec"]
    selector = of_kind(objects, "Service")["spec"]["selector"]
    assert selector == deployment["selector"]["matchLabels"]
    assert selector.items() <= deployment["template"]["metadata"]["labels"].items()
    assert not any("version" in name or "chart" in name for name in selector)


def test_the_chart_says_in_words_that_the_service_is_open(helm: Helm) -> None:
    variables = environment(helm.template())
    assert (variables["RANCAST_HOST"], variables["RANCAST_OPEN_ACCESS"]) == ("0.0.0.0", "true")
    assert "RANCAST_TOKEN_FILE" not in variables
    variables = environment(helm.template({"access": {"tokenSecret": "callers"}}))
    assert variables["RANCAST_OPEN_ACCESS"] == "false"


def test_a_secret_of_tokens_is_where_the_service_looks_for_it(helm: Helm) -> None:
    objects = helm.template({"access": {"tokenSecret": "callers", "tokenSecretKey": "file"}})
    folder, _, name = environment(objects)["RANCAST_TOKEN_FILE"].rpartition("/")
    (mount,) = [m for m in container(objects)["volumeMounts"] if m["mountPath"] == folder]
    volumes = {each["name"]: each for each in pod(objects)["volumes"]}
    assert name == "file"
    assert mount["readOnly"] is True
    # A file that is mounted alone, by subPath, would never change.
    assert "subPath" not in mount
    assert volumes[mount["name"]]["secret"] == {"secretName": "callers"}


def test_settings_become_environment_variables(helm: Helm) -> None:
    settings = {
        "max_cells": 1_000_000,
        "snap_tolerance_ratio": 0.25,
        "keep_suspect": True,
        "time_zone": "Europe/Madrid",
        "catalogue_files": ["a.toml", "b.toml"],
    }
    variables = environment(helm.template({"settings": settings}))
    assert variables["RANCAST_MAX_CELLS"] == "1000000"
    assert variables["RANCAST_SNAP_TOLERANCE_RATIO"] == "0.25"
    assert variables["RANCAST_KEEP_SUSPECT"] == "true"
    assert variables["RANCAST_TIME_ZONE"] == "Europe/Madrid"
    assert variables["RANCAST_CATALOGUE_FILES"] == "a.toml,b.toml"


def test_every_variable_that_the_chart_sets_is_a_setting(helm: Helm) -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {CACHE_VARIABLE}
    for values in (yaml.safe_load(path.read_text()) for path in VALUES):
        names = {name for name in environment(helm.template(values)) if name.startswith(PREFIX)}
        assert names
        assert names <= known


def test_persistence_makes_a_claim_and_replaces_rather_than_rolls(helm: Helm) -> None:
    objects = helm.template({"persistence": {"enabled": True, "storageClassName": "fast"}})
    claim = of_kind(objects, "PersistentVolumeClaim")
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"] == {"requests": {"storage": "5Gi"}}
    volumes = {each["name"]: each for each in pod(objects)["volumes"]}
    assert volumes["journal"]["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}
    assert of_kind(objects, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(("given", "written"), [("", None), ("fast", "fast"), ("-", "")])
def test_a_claim_can_do_without_a_storage_class(
    helm: Helm, given: str, written: str | None
) -> None:
    values = {"persistence": {"enabled": True, "storageClassName": given}}
    claim = of_kind(helm.template(values), "PersistentVolumeClaim")
    assert claim["spec"].get("storageClassName") == written


def test_an_existing_claim_is_used_and_none_is_made(helm: Helm) -> None:
    objects = helm.template({"persistence": {"enabled": True, "existingClaim": "mine"}})
    assert "PersistentVolumeClaim" not in {each["kind"] for each in objects}
    volumes = {each["name"]: each for each in pod(objects)["volumes"]}
    assert volumes["journal"]["persistentVolumeClaim"] == {"claimName": "mine"}


def test_without_an_own_account_the_named_one_is_used(helm: Helm) -> None:
    objects = helm.template({"serviceAccount": {"create": False, "name": "given"}})
    assert "ServiceAccount" not in {each["kind"] for each in objects}
    assert pod(objects)["serviceAccountName"] == "given"
    objects = helm.template({"serviceAccount": {"create": False}})
    assert pod(objects)["serviceAccountName"] == "default"


@pytest.mark.parametrize(
    ("release", "values", "expected"),
    [
        ("r", {}, "r-rancast"),
        ("my-rancast", {}, "my-rancast"),
        ("r", {"nameOverride": "cells"}, "r-cells"),
        ("r", {"fullnameOverride": "cells"}, "cells"),
        ("a" * 53, {}, "a" * 53 + "-rancast"),
        ("a" * 53, {"nameOverride": "b" * 30}, "a" * 53 + "-" + "b" * 9),
    ],
)
def test_names_follow_the_release_and_fit(
    helm: Helm, release: str, values: dict[str, Any], expected: str
) -> None:
    enabled = {"persistence": {"enabled": True}}
    objects = helm.template(values | enabled, "--name-template", release)
    assert of_kind(objects, "Deployment")["metadata"]["name"] == expected
    assert all(len(each["metadata"]["name"]) <= 63 for each in objects)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"replicas": 2}, "replicas"),
        ({"replicaCount": "two"}, "replicaCount"),
        ({"image": {"repositry": "rancast"}}, "repositry"),
        ({"image": {"repository": "rancast:1.0"}}, "repository"),
        ({"image": {"digest": "sha256:abc"}}, "digest"),
        ({"image": {"registry": "https://host.example"}}, "registry"),
        ({"containerPort": 80}, "containerPort"),
        ({"service": {"type": "Loadbalancer"}}, "type"),
        ({"persistence": {"enabled": True, "size": "2 GB"}}, "size"),
        ({"settings": {"MAX_CELLS": 1}}, "MAX_CELLS"),
        ({"settings": {"port": 1}}, "port"),
        ({"settings": {"open_access": True}}, "open_access"),
        ({"access": {"open": "yes"}}, "open"),
        ({"access": {"tokenSecret": "A b"}}, "tokenSecret"),
        ({"settings": {"compiled": False}}, "compiled"),
        ({"compiled": {"image": {"pullPolicy": "Always"}}}, "pullPolicy"),
        ({"compiled": {"timeoutSeconds": 0}}, "timeoutSeconds"),
        ({"compiled": {"cacheVolume": {"emptyDir": {}, "hostPath": {}}}}, "cacheVolume"),
        ({"settings": {"max_cels": 1}}, "max_cels"),
        ({"settings": {"max_cells": "many"}}, "max_cells"),
        ({"settings": {"max_cells": 0}}, "max_cells"),
        ({"settings": {"canary_share": 1.5}}, "canary_share"),
        ({"settings": {"log_level": "loud"}}, "log_level"),
        ({"profile": "near-RT"}, "profile"),
        ({"xapp": {"name": "Cell_Load"}}, "name"),
        ({"environment": {"appid": "a"}}, "appid"),
        ({"extraEnv": [{"name": "RANCAST_OPEN_ACCESS", "value": "true"}]}, "extraEnv"),
        ({"extraArgs": ["--host=127.0.0.1"]}, "extraArgs"),
        ({"podLabels": {"app.kubernetes.io/name": "mine"}}, "podLabels"),
        ({"commonLabels": {"app.kubernetes.io/instance": "mine"}}, "commonLabels"),
        ({"catalogues": {"site.yaml": ""}}, "catalogues"),
        ({"models": {"accessModes": ["ReadOnly"]}}, "accessModes"),
        ({"podDisruptionBudget": {"minAvailable": "150%"}}, "minAvailable"),
        ({"serviceMonitor": {"interval": "30 seconds"}}, "interval"),
        ({"ingress": {"hosts": [{"host": "a.example"}]}}, "paths"),
        ({"retraining": {"schedule": "daily"}}, "schedule"),
        ({"retraining": {"ttlSecondsAfterFinished": 60}}, "ttlSecondsAfterFinished"),
        ({"retraining": {"options": {"out": "/elsewhere"}}}, "options"),
    ],
)
def test_wrong_values_are_refused_by_name(
    each_helm: Helm, values: dict[str, Any], key: str
) -> None:
    assert key in each_helm.refusal(values)


def test_schema_describes_every_default_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    # For the condition of a parent chart.
    assert set(schema["properties"]) == {*values, "enabled"}
    assert list(undescribed(values, schema, schema["definitions"])) == []


def undescribed(values: Any, schema: Any, definitions: Any, path: str = "") -> Iterator[str]:
    """Values of ours that the schema does not know, or objects of ours that it leaves open."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    rest = schema.get("additionalProperties", True)
    if not isinstance(values, dict) or "properties" not in schema or isinstance(rest, dict):
        return
    if rest is not False and path != ".global":
        yield f"{path} is open"
    for name, value in values.items():
        if name in schema["properties"]:
            inner = schema["properties"][name]
            yield from undescribed(value, inner, definitions, f"{path}.{name}")
        else:
            yield f"{path}.{name} is unknown"


def test_notes_say_how_to_reach_the_service_and_what_is_lost(helm: Helm) -> None:
    if helm.run("version", "--short").stdout.startswith("v3."):
        pytest.skip("Helm 3 prints notes only where it reaches a cluster")
    arguments = ("install", "r", str(CHART), "--dry-run=client", "--set", "access.open=true")
    notes = helm.run(*arguments)
    assert notes.returncode == 0, notes.stderr
    assert "port-forward service/r-rancast 8080:8080" in notes.stdout
    assert "Persistence is off" in notes.stdout
    assert "access.open is true" in notes.stdout
    assert "--container compile" not in notes.stdout
    enabled = ("--set", "persistence.enabled=true,compiled.enabled=true")
    notes = helm.run(*arguments, *enabled)
    assert "Persistence is off" not in notes.stdout
    assert "logs deployment/r-rancast --container compile" in notes.stdout


@pytest.mark.parametrize(
    ("values", "words"),
    [
        # A port that everyone may open, whatever the Service's.
        ("access.open=true,service.port=443", "port-forward service/r-rancast 8080:443"),
        ("access.open=true,access.tlsSecret=tls", "curl --insecure https://127.0.0.1:8080/readyz"),
        ("access.tlsSecret=tls,access.clientCa=true", "curl --cert CERTIFICATE"),
        ("access.open=true,prometheusRule.enabled=true", "prometheusRule.additionalLabels"),
        (
            "access.open=true,networkPolicy.enabled=true,serviceMonitor.enabled=true",
            "networkPolicy.from",
        ),
        (
            "access.tokenSecret=t,httpRoute.enabled=true,httpRoute.parentRefs[0].name=g,"
            "httpRoute.hostnames[0]=cells.example",
            "cells.example",
        ),
    ],
)
def test_notes_follow_the_values(helm: Helm, values: str, words: str) -> None:
    if helm.run("version", "--short").stdout.startswith("v3."):
        pytest.skip("Helm 3 prints notes only where it reaches a cluster")
    notes = helm.run("install", "r", str(CHART), "--dry-run=client", "--set", values)
    assert words in notes.stdout, notes.stderr


def emptied(values: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """These values with null in place of every list and of every map that stands for itself."""
    wanted = set(schema.get("required", ()))
    found: dict[str, Any] = {}
    for name, value in values.items():
        inner = schema.get("properties", {}).get(name, {})
        if isinstance(value, dict) and "properties" in inner:
            found[name] = emptied(value, inner)
        elif isinstance(value, dict | list) and name not in wanted:
            found[name] = None
    return found


@pytest.mark.parametrize("profile", ["", "near-rt", "non-rt"])
def test_what_is_emptied_is_left_out(helm: Helm, profile: str) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = emptied(yaml.safe_load((CHART / "values.yaml").read_text()), schema)
    assert values["affinity"] is values["xapp"]["descriptor"] is values["resources"] is None
    switched_on = ("serviceMonitor", "prometheusRule", "dashboards", "networkPolicy", "jobs")
    values |= {name: values.get(name, {}) | {"enabled": True} for name in switched_on}
    values["access"] = {"open": True}
    values["models"] |= {"enabled": True}
    values["retraining"] |= {"enabled": True, "onServiceNode": True}
    values["retraining"]["data"] = {"paths": ["https://data.example/pm"]}
    objects = helm.template({**values, "profile": profile})
    assert not {"resources", "securityContext"} & set(container(objects))
    assert not {"affinity", "tolerations", "topologySpreadConstraints"} & set(pod(objects))


@pytest.mark.parametrize("group", ["access", "autoscaling", "retraining", "xapp"])
def test_a_group_of_values_that_is_taken_away_is_missed_by_name(
    each_helm: Helm, group: str
) -> None:
    assert group in each_helm.refusal({group: None})


@pytest.mark.parametrize(
    ("group", "key"),
    [
        ("access", "tokenSecretKey"),
        ("retraining", "model"),
        ("retraining", "checkpoint"),
        ("retraining", "schedule"),
        ("xapp", "platformNamespace"),
        ("xapp", "rmrRoutePort"),
        ("autoscaling", "minReplicas"),
    ],
)
def test_a_value_that_something_is_made_of_is_missed_by_name(
    helm: Helm, group: str, key: str
) -> None:
    assert key in helm.refusal({group: {key: None}})
