"""What users can change of the pod, and what of it follows from their other values."""

from __future__ import annotations

from typing import Any

import pytest
import typer
import yaml

import rancast
from tests.helm.conftest import CHART, Helm
from tests.helm.rendered import container, environment, mounts, named, of_kind, pod, volumes

FULL = yaml.safe_load((CHART / "ci" / "full-values.yaml").read_text())


def pod_annotations(objects: list[dict[str, Any]]) -> dict[str, str]:
    metadata = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]
    found: dict[str, str] = metadata.get("annotations", {})
    return found


def test_tls_reaches_service_probes_and_the_test_pod(helm: Helm) -> None:
    objects = helm.template({"access": {"open": True, "tlsSecret": "tls"}})
    variables = environment(objects)
    folder, _, name = variables["RANCAST_TLS_CERTIFICATE"].rpartition("/")
    assert (name, variables["RANCAST_TLS_KEY"]) == ("tls.crt", f"{folder}/tls.key")
    assert "RANCAST_TLS_CLIENT_CA" not in variables
    volume = volumes(pod(objects))[mounts(container(objects))[folder]["name"]]
    assert volume["secret"] == {"secretName": "tls"}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container(objects)[probe]["httpGet"]["scheme"] == "HTTPS"
    (test,) = of_kind(objects, "Pod")["spec"]["containers"]
    assert "RANCAST_TLS_CERTIFICATE" in {each["name"] for each in test["env"]}


def test_probes_without_a_certificate_ask_only_whether_the_port_answers(helm: Helm) -> None:
    objects = helm.template({"access": {"tlsSecret": "tls", "clientCa": True}})
    assert environment(objects)["RANCAST_TLS_CLIENT_CA"].endswith("/ca.crt")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container(objects)[probe]["tcpSocket"] == {"port": "http"}
        assert "httpGet" not in container(objects)[probe]


def test_a_probe_of_ones_own_is_taken_as_it_is(helm: Helm) -> None:
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 30}
    found = container(helm.template({"livenessProbe": probe}))["livenessProbe"]
    assert found == {**probe, "timeoutSeconds": 5}


def test_catalogues_come_before_those_of_the_settings(helm: Helm) -> None:
    objects = helm.template(
        {
            "catalogues": {"b.toml": "two", "a.toml": "one"},
            "settings": {"catalogue_files": ["/mine.toml"]},
        }
    )
    first, second, third = environment(objects)["RANCAST_CATALOGUE_FILES"].split(",")
    folder = first.rpartition("/")[0]
    assert (first, second, third) == (f"{folder}/a.toml", f"{folder}/b.toml", "/mine.toml")
    volume = volumes(pod(objects))[mounts(container(objects))[folder]["name"]]
    content = named(objects, "ConfigMap", volume["configMap"]["name"])["data"]
    assert content == {"a.toml": "one", "b.toml": "two"}


def test_a_changed_file_replaces_the_pods(helm: Helm) -> None:
    one, same, other = (
        pod_annotations(helm.template({"files": {"a.txt": content}}))["checksum/config"]
        for content in ("one", "one", "other")
    )
    assert one == same
    assert one != other


def test_models_are_mounted_where_the_service_looks_for_them(helm: Helm) -> None:
    objects = helm.template({"models": {"enabled": True}, "settings": {"models_limit": 3}})
    folder = environment(objects)["RANCAST_MODELS_DIRECTORY"]
    mount = mounts(container(objects))[folder]
    # The service reads; only training writes.
    assert mount["readOnly"] is True
    claim = volumes(pod(objects))[mount["name"]]["persistentVolumeClaim"]["claimName"]
    kept = named(objects, "PersistentVolumeClaim", claim)
    assert kept["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert of_kind(objects, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert environment(objects)["RANCAST_MODELS_LIMIT"] == "3"


def test_models_that_several_nodes_mount_do_not_stop_a_rolling_update(helm: Helm) -> None:
    objects = helm.template({"models": {"enabled": True, "accessModes": ["ReadWriteMany"]}})
    assert of_kind(objects, "Deployment")["spec"]["strategy"]["type"] == "RollingUpdate"


@pytest.mark.parametrize(
    ("given", "surge", "unavailable"),
    [
        ({}, "25%", "25%"),
        ({"type": "RollingUpdate"}, "25%", "25%"),
        ({"rollingUpdate": {"maxSurge": 0}}, 0, "25%"),
        ({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, 1, 0),
    ],
)
def test_a_rolling_update_is_said_in_full_so_that_it_can_be_taken_back(
    helm: Helm, given: dict[str, Any], surge: object, unavailable: object
) -> None:
    strategy = of_kind(helm.template({"strategy": given}), "Deployment")["spec"]["strategy"]
    expected = {"maxSurge": surge, "maxUnavailable": unavailable}
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": expected}


def test_an_existing_models_claim_is_used_and_none_is_made(helm: Helm) -> None:
    objects = helm.template({"models": {"enabled": True, "existingClaim": "mine"}})
    assert "PersistentVolumeClaim" not in {each["kind"] for each in objects}
    assert volumes(pod(objects))["models"]["persistentVolumeClaim"] == {"claimName": "mine"}


def test_every_word_about_the_pod_reaches_it(helm: Helm) -> None:
    objects = helm.template(FULL)
    spec = pod(objects)
    for name in (
        *("priorityClassName", "runtimeClassName", "schedulerName", "hostAliases", "dnsPolicy"),
        *("dnsConfig", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"),
        "terminationGracePeriodSeconds",
    ):
        assert spec[name] == FULL[name], name
    assert volumes(spec)["tmp"] == {"name": "tmp", **FULL["temporaryVolume"]}
    assert spec["imagePullSecrets"] == [{"name": "registry-login"}, {"name": "shared-login"}]
    assert container(objects)["image"].startswith("registry.example.org:5000/ran/rancast@")
    assert container(objects)["lifecycle"] == FULL["lifecycle"]
    assert container(objects)["args"] == ["serve", *FULL["extraArgs"]]
    assert [each["name"] for each in spec["containers"]] == ["rancast", "collector"]
    assert [each["name"] for each in spec["initContainers"]] == ["wait", "compile"]
    deployment = of_kind(objects, "Deployment")
    assert deployment["metadata"]["labels"]["example.org/tier"] == "serving"
    assert deployment["metadata"]["annotations"]["example.org/deployment"] == "main"
    assert deployment["spec"]["template"]["metadata"]["labels"]["example.org/team"] == "ran"
    assert pod_annotations(objects)["example.org/note"] == "a note"
    assert deployment["spec"]["minReadySeconds"] == 5


def test_a_variable_of_ones_own_takes_the_place_of_the_charts(helm: Helm) -> None:
    extra = [{"name": "HOME", "value": "/home"}, {"name": "RANCAST_THREADS", "value": "4"}]
    objects = helm.template(
        {"extraEnv": extra, "settings": {"threads": 2}, "compiled": {"enabled": True}}
    )
    (compiler,) = pod(objects)["initContainers"]
    for one in (container(objects), compiler):
        names = [each["name"] for each in one["env"]]
        assert len(names) == len(set(names))
        assert one["env"][-2:] == extra


def test_templates_in_what_users_add_are_rendered(helm: Helm) -> None:
    objects = helm.template(FULL)
    assert environment(objects)["RELEASE"] == "r"
    assert volumes(pod(objects))["checkpoints"]["configMap"] == {"name": "r-checkpoints"}
    assert named(objects, "ConfigMap", "r-more")["data"] == {"key": "value"}


def test_common_labels_and_the_namespace_are_on_every_object_of_ours(helm: Helm) -> None:
    objects = helm.template(FULL)
    ours = [each for each in objects if each["metadata"]["name"] != "r-more"]
    assert len(ours) > 15
    for each in ours:
        assert each["metadata"]["labels"]["example.org/owner"] == "ran"
        elsewhere = each["kind"] in ("Role", "RoleBinding")
        assert each["metadata"]["namespace"] == ("training" if elsewhere else "forecasting")


def test_arguments_of_the_example_are_options_of_the_service() -> None:
    group = typer.main.get_command(rancast.app)
    serve = group.commands["serve"]  # type: ignore[attr-defined]
    known = {option for parameter in serve.params for option in parameter.opts}
    assert {each.partition("=")[0] for each in FULL["extraArgs"]} <= known


@pytest.mark.parametrize(
    ("constraints", "own"), [(None, True), ([], None), (FULL["topologySpreadConstraints"], False)]
)
def test_pods_spread_over_zones_and_nodes(
    helm: Helm, constraints: list[Any] | None, own: bool | None
) -> None:
    values = {} if constraints is None else {"topologySpreadConstraints": constraints}
    objects = helm.template(values)
    found = pod(objects).get("topologySpreadConstraints")
    if own is None:
        assert found is None
        return
    labels = of_kind(objects, "Deployment")["spec"]["selector"]["matchLabels"]
    for each in found:
        assert (each["labelSelector"]["matchLabels"] == labels) is own


EVERYTHING = {
    "profile": "near-rt",
    "access": {"tokenSecret": "callers", "tlsSecret": "tls"},
    "catalogues": {"a.toml": ""},
    "files": {"a.txt": ""},
    "models": {"enabled": True, "accessModes": ["ReadWriteMany"]},
    "compiled": {"enabled": True},
    "retraining": {
        "enabled": True,
        "data": {"paths": ["/data"], "existingClaim": "pm"},
        "sharedMemory": "1Gi",
    },
}


@pytest.mark.parametrize("training", [False, True])
def test_what_the_chart_has_in_the_pod_is_not_added_again(helm: Helm, training: bool) -> None:
    objects = helm.template(EVERYTHING)
    where = "retraining." if training else ""
    spec = pod(objects)
    if training:
        spec = of_kind(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    lists: dict[str, list[Any]] = {
        "extraVolumes": [],
        "extraVolumeMounts": [],
        "extraInitContainers": [],
    }
    taken: list[tuple[str, dict[str, Any]]] = [
        *(("extraVolumes", {"name": name, "emptyDir": {}}) for name in volumes(spec)),
        *(
            ("extraVolumeMounts", {"name": "tmp", "mountPath": path})
            for path in mounts(spec["containers"][0])
        ),
        *(("extraInitContainers", {"name": each["name"]}) for each in spec["containers"]),
    ]
    assert len(taken) > 10
    for name, one in taken:
        group = {**lists, name: [one]}
        added = {"retraining": {**EVERYTHING["retraining"], **group}} if training else group  # type: ignore[dict-item]
        assert where + name in helm.refusal({**EVERYTHING, **added}).replace(
            "extraContainers and ", ""
        )


def test_what_the_chart_leaves_unused_is_free(helm: Helm) -> None:
    names = ("models", "tls", "tokens", "code", "data")
    own = [{"name": name, "emptyDir": {}} for name in names]
    assert set(names) < set(volumes(pod(helm.template({"extraVolumes": own}))))


def test_containers_of_one_name_are_refused(helm: Helm) -> None:
    one = [{"name": "wait", "image": "w"}]
    assert "wait" in helm.refusal({"extraContainers": one, "extraInitContainers": one})
    assert "extraInitContainers" in helm.refusal({"extraInitContainers": [{"name": "rancast"}]})


def test_the_platform_may_choose_the_user(helm: Helm) -> None:
    chosen_by_the_platform = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    objects = helm.template({"podSecurityContext": chosen_by_the_platform})
    for spec in (pod(objects), of_kind(objects, "Pod")["spec"]):
        assert not set(chosen_by_the_platform) & set(spec["securityContext"])
        assert spec["securityContext"]["runAsNonRoot"] is True
