from __future__ import annotations

import io
import json
import uuid
import zipfile
from dataclasses import replace

import pytest
import yaml

from service.app import create_app
from service.packaging.chart import package_chart, read_chart
from service.packaging.csar import package_csar
from service.packaging.csar_rules import check_csar
from service.packaging.errors import PackageError, UnusablePackageError
from service.packaging.image import image_reference
from service.packaging.sme import RESOURCES
from service.settings import Settings
from tests.service.packaging.conftest import VALUES_YAML
from tests.service.packaging.csars import OPTIONS, files_of, findings_of

INSTANCE = "Files/Acm/instances/k8s-instance.json"
ASD = "Definitions/asd.yaml"


def chart_of_instance(files: dict[str, bytes]) -> dict[str, object]:
    (element,) = json.loads(files[INSTANCE])["elements"].values()
    stated: dict[str, object] = element["properties"]["chart"]
    return stated


def properties(files: dict[str, bytes]) -> dict[str, str]:
    document = yaml.safe_load(files[ASD])
    template = document["topology_template"]["node_templates"]["applicationServiceDescriptor"]
    stated: dict[str, str] = template["properties"]
    return stated


def test_the_package_is_one_that_the_manager_takes(make_chart):
    content = package_csar(package_chart(read_chart(make_chart())), OPTIONS)
    assert check_csar(content, "rancast.csar") == []
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert {name.partition("/")[0] for name in archive.namelist()} == {
            *("Artifacts", "Definitions", "Files", "TOSCA-Metadata", "asd.mf")
        }


def test_the_same_input_gives_the_same_bytes(make_chart):
    package = package_chart(read_chart(make_chart()))
    assert package_csar(package, OPTIONS) == package_csar(package, OPTIONS)


def test_the_chart_inside_is_the_one_that_is_installed(helm, make_chart, tmp_path):
    files = files_of(make_chart())
    stated = chart_of_instance(files)
    identity = stated["chartId"]
    assert isinstance(identity, dict)
    name = f"{identity['name']}-{identity['version']}.tgz"
    path = tmp_path / name
    path.write_bytes(files[f"Artifacts/Deployment/HELM/{name}"])
    overrides = stated["overrideParams"]
    assert isinstance(overrides, dict)
    sets = [part for key, value in overrides.items() for part in ("--set", f"{key}={value}")]
    answer = helm.run("template", str(stated["releaseName"]), str(path), *sets)
    assert answer.returncode == 0, answer.stderr
    rendered = yaml.safe_load(answer.stdout)
    assert rendered["metadata"]["name"] == "rancast"
    assert rendered["data"] == {
        "profile": "non-rt",
        "app": "DO_NOT_CHANGE_THIS_RAPP_INSTANCE_ID",
        "image": "registry.example.org/ran/rancast:0.1.0",
        "version": identity["version"],
    }


def test_a_digest_goes_in_the_place_of_the_tag(make_chart):
    digest = f"sha256:{'ab' * 32}"
    files = files_of(make_chart(), image=image_reference(f"a.example/rancast@{digest}"))
    overrides = chart_of_instance(files)["overrideParams"]
    assert isinstance(overrides, dict)
    assert overrides["image.digest"] == digest
    assert "image.tag" not in overrides
    assert findings_of(files) == []


def test_identifiers_follow_the_content_and_the_invariant_does_not(make_chart):
    first = properties(files_of(make_chart()))
    same = properties(files_of(make_chart()))
    other = properties(files_of(make_chart({"NOTICE": "new"})))
    elsewhere = properties(files_of(make_chart(), push_uri="http://other.example/api/charts"))
    provided = properties(files_of(make_chart(), provider="Another"))
    all_of_them = (first, other, elsewhere, provided)
    assert first["descriptor_id"] == same["descriptor_id"]
    assert len({each["descriptor_id"] for each in all_of_them}) == 4
    assert len({each["descriptor_invariant_id"] for each in all_of_them}) == 1
    assert uuid.UUID(first["descriptor_id"]) != uuid.UUID(first["descriptor_invariant_id"])
    assert first["application_version"] != other["application_version"]


def test_what_is_published_is_what_the_service_answers():
    paths = create_app(Settings()).openapi()["paths"]
    for resource in RESOURCES:
        assert {each.lower() for each in resource.operations} <= set(paths[resource.uri])


def test_the_published_address_is_the_service_that_the_chart_makes(make_chart):
    files = files_of(make_chart(), release="cast", namespace="smo")
    api = json.loads(files["Files/Sme/serviceapis/cast-api.json"])
    (interface,) = api["aefProfiles"][0]["interfaceDescriptions"]
    assert interface == {"ipv4Addr": "cast.smo.svc.cluster.local", "port": 8080}
    overrides = chart_of_instance(files)["overrideParams"]
    assert isinstance(overrides, dict)
    assert overrides["fullnameOverride"] == "cast"


def test_a_job_of_ones_own_goes_along(make_chart):
    job = {"info_type_id": "PmData", "job_owner": "rancast", "job_definition": {}}
    extra = {"Files/Dme/infoconsumers/pm.json": json.dumps(job).encode()}
    files = files_of(make_chart(), extra=extra)
    assert findings_of(files) == []
    assert b"Source: Files/Dme/infoconsumers/pm.json" in files["asd.mf"]


def test_an_extra_file_does_not_replace_one_of_the_packages_own(make_chart):
    with pytest.raises(PackageError, match="other names of extra files"):
        files_of(make_chart(), extra={INSTANCE: b"{}"})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"push_uri": "UPDATE_THIS"}, "target_server_uri"),
        ({"pull_uri": "charts.example.org"}, "repository address"),
        ({"overrides": {"replicaCounts": "2"}}, "values that cast"),
        ({"overrides": {"settings.ingest_kpis": "a,b"}}, "without commas"),
        ({"image": image_reference("a.example/rancast:20261130")}, "not to look like a number"),
        ({"image": image_reference("a.example/rancast:true")}, "not to look like a number"),
        ({"image": image_reference("a.example/rancast:True")}, "not to look like a number"),
        ({"push_uri": "http://me:word@a.example/api/charts"}, "target_server_uri"),
        ({"pull_uri": "http://me@a.example/charts"}, "repository address"),
        ({"overrides": {"environment.appId": "mine"}}, "environment.appId: DO_NOT_CHANGE"),
        ({"provider": ""}, "property provider"),
        ({"extra": {"Files/Dme/infoconsumer/a.json": b"{}"}}, "it is lost"),
    ],
)
def test_what_the_manager_would_refuse_is_not_written(make_chart, changes, complaint):
    package = package_chart(read_chart(make_chart()))
    with pytest.raises(UnusablePackageError, match=complaint):
        package_csar(package, replace(OPTIONS, **changes))


def test_a_chart_without_the_managers_values_is_refused(make_chart):
    package = package_chart(read_chart(make_chart({"values.yaml": "service: {port: 80}\n"})))
    with pytest.raises(UnusablePackageError, match=r"got environment\.appId"):
        package_csar(package, OPTIONS)


LOCKED = "access: {open: false, tokenSecret: '', clientCa: false}\n"


def test_a_chart_that_refuses_to_stand_open_is_asked_who_may_call(make_chart):
    package = package_chart(read_chart(make_chart({"values.yaml": VALUES_YAML + LOCKED})))
    with pytest.raises(PackageError, match=r"access\.tokenSecret=NAME"):
        package_csar(package, OPTIONS)
    with pytest.raises(PackageError, match=r"access\.open=true"):
        package_csar(package, replace(OPTIONS, overrides={"access.open": "false"}))


@pytest.mark.parametrize(
    "overrides",
    [
        {"access.open": "true"},
        {"access.tokenSecret": "rancast-tokens"},
        {"access.clientCa": "true"},
        {"settings.token_file": "/etc/tokens"},
    ],
)
def test_each_way_to_say_who_may_call_is_taken(make_chart, overrides):
    package = package_chart(read_chart(make_chart({"values.yaml": VALUES_YAML + LOCKED})))
    assert package_csar(package, replace(OPTIONS, overrides=overrides))


@pytest.mark.parametrize("tag", ["1.10", "0123", "v1", "1e5", "2026.11"])
def test_a_tag_that_helm_leaves_as_it_is_is_taken(helm, make_chart, tmp_path, tag):
    package = package_chart(read_chart(make_chart()))
    image = image_reference(f"a.example/rancast:{tag}")
    assert package_csar(package, replace(OPTIONS, image=image))
    path = tmp_path / package.file_name
    path.write_bytes(package.content)
    answer = helm.run("template", "r", str(path), "--set", f"image.tag={tag}")
    assert yaml.safe_load(answer.stdout)["data"]["image"].endswith(f":{tag}")


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"fullnameOverride": "other"}, "fullnameOverride"),
        ({"namespaceOverride": "other"}, "namespaceOverride"),
        ({"profile": "near-rt"}, "profile"),
        ({"service.port": "http"}, "service.port"),
    ],
)
def test_a_value_that_moves_the_published_address_is_refused(make_chart, overrides, named):
    package = package_chart(read_chart(make_chart()))
    with pytest.raises(PackageError, match=named):
        package_csar(package, replace(OPTIONS, overrides={**OPTIONS.overrides, **overrides}))


def test_the_published_port_is_the_one_that_is_chosen(make_chart):
    chosen = {**OPTIONS.overrides, "service.port": "9090"}
    files = files_of(make_chart(), overrides=chosen)
    (api,) = (text for name, text in files.items() if name.endswith("-api.json"))
    assert '"port": 9090' in api.decode()
