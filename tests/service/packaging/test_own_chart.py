"""Our own chart, and what the packages say of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from service.packaging.chart import package_chart, read_chart
from service.packaging.csar import csar_files, package_csar
from service.packaging.tokens import INSTANCE_ID, SME_DISCOVERY
from service.packaging.xapp_rules import check_xapp
from tests.helm.conftest import Helm
from tests.helm.rendered import container, environment, of_kind
from tests.service.packaging.csars import OPTIONS

RAPP = replace(OPTIONS, overrides={"access.tokenSecret": "tokens"})


def rendered(helm: Helm, chart: Path, release: str, values: dict[str, str]) -> list[dict[str, Any]]:
    sets = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    answer = helm.run("template", release, str(chart), "--namespace", "nonrtric", *sets)
    assert answer.returncode == 0, answer.stderr
    return [each for each in yaml.safe_load_all(answer.stdout) if each]


def test_the_rapp_is_installed_as_its_package_says(helm, our_chart, tmp_path):
    package = package_chart(read_chart(our_chart))
    assert package_csar(package, RAPP)
    files = csar_files(package, RAPP)
    path = tmp_path / package.file_name
    path.write_bytes(package.content)
    (element,) = json.loads(files["Files/Acm/instances/k8s-instance.json"])["elements"].values()
    stated = element["properties"]["chart"]
    objects = rendered(helm, path, stated["releaseName"], stated["overrideParams"])
    variables = environment(objects)
    assert variables["APP_ID"] == INSTANCE_ID
    assert variables["SME_DISCOVERY_ENDPOINT"] == SME_DISCOVERY
    assert variables["RANCAST_PROFILE"] == "non-rt"
    assert container(objects)["image"] == "registry.example.org/ran/rancast:0.1.0"
    api = json.loads(files["Files/Sme/serviceapis/rancast-api.json"])
    (interface,) = api["aefProfiles"][0]["interfaceDescriptions"]
    service = of_kind(objects, "Service")
    assert interface["ipv4Addr"].partition(".")[0] == service["metadata"]["name"]
    assert interface["port"] == service["spec"]["ports"][0]["port"]


def test_the_descriptor_that_the_chart_mounts_is_one_that_the_platform_takes(helm, our_chart):
    values = {
        "profile": "near-rt",
        "access.tokenSecret": "tokens",
        "image.registry": "registry.example.org",
    }
    objects = rendered(helm, our_chart, "rancast", values)
    (mounted,) = (
        each["data"]["config-file.json"]
        for each in objects
        if each["kind"] == "ConfigMap" and "config-file.json" in each["data"]
    )
    # The chart sets that variable itself, and has no section of variables.
    places = [finding.place for finding in check_xapp(json.loads(mounted), None)]
    assert places == ["appenv/CONFIG_FILE"]
