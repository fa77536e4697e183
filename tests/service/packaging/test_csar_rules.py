"""Every broken variant of a package is refused, with the reason."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from service.packaging import csar_contents
from service.packaging.archive import tar_gz, zip_archive
from service.packaging.csar_rules import check_csar
from tests.service.packaging.csars import Files, edit_json, edit_yaml, files_of, findings_of

ASD = "Definitions/asd.yaml"
META = "TOSCA-Metadata/TOSCA.meta"
COMPOSITION = "Files/Acm/definition/compositions.json"
INSTANCE = "Files/Acm/instances/k8s-instance.json"
PROVIDER = "Files/Sme/providers/rancast-provider.json"
API = "Files/Sme/serviceapis/rancast-api.json"
INVOKER = "Files/Sme/invokers/mine.json"
JOB = "Files/Dme/infoconsumers/pm.json"
PRODUCER = "Files/Dme/infoproducers/mine.json"
TYPE = "Files/Dme/producerinfotypes/mine.json"

Change = Callable[[Any], Any]
Breaking = Callable[[Files], Any]


def in_asd(change: Change) -> Breaking:
    def change_templates(document: Any) -> None:
        change(document["topology_template"]["node_templates"])

    return lambda files: edit_yaml(files, ASD, change_templates)


def in_properties(**changes: Any) -> Breaking:
    return in_asd(lambda t: t["applicationServiceDescriptor"]["properties"].update(changes))


def in_artifact(change: Change) -> Breaking:
    return in_asd(lambda t: change(t["applicationServiceDescriptor"]["artifacts"]["rancast"]))


def in_json(name: str, change: Change) -> Breaking:
    return lambda files: edit_json(files, name, change)


def in_element(change: Change) -> Breaking:
    return in_json(INSTANCE, lambda d: change(next(iter(d["elements"].values()))))


def in_chart(change: Change) -> Breaking:
    return in_element(lambda e: change(e["properties"]["chart"]))


def in_overrides(**changes: Any) -> Breaking:
    return in_chart(lambda c: c["overrideParams"].update(changes))


def in_profile(change: Change) -> Breaking:
    return in_json(API, lambda d: change(d["aefProfiles"][0]))


def with_file(name: str, document: Any) -> Breaking:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return lambda files: files.update({name: content})


def without(name: str) -> Breaking:
    return lambda files: files.pop(name)


def invoker(**changes: Any) -> list[dict[str, Any]]:
    return [
        {
            "apiInvokerInformation": "DO_NOT_CHANGE_THIS_RAPP_INSTANCE_ID",
            "apiList": [{"apiName": "influxdb2-http"}],
            "onboardingInformation": {"apiInvokerPublicKey": "key"},
        }
        | changes
    ]


def chart_file(files: Files) -> str:
    return next(name for name in files if name.endswith(".tgz"))


def replace_chart(files: Files) -> None:
    files[chart_file(files)] = tar_gz(
        {"cast/Chart.yaml": b"apiVersion: v2\nname: cast\nversion: 9.9.9\n"}
    )


def rename_chart(files: Files) -> None:
    content = files.pop(chart_file(files))
    files["Artifacts/Deployment/HELM/cast.tgz"] = content
    in_artifact(lambda a: a.update(file="Artifacts/Deployment/HELM/cast.tgz"))(files)


def chart_besides(files: Files) -> None:
    """A second chart, which the instance installs and no artifact names."""
    files["Artifacts/cast-9.9.9.tgz"] = tar_gz(
        {"cast/Chart.yaml": b"apiVersion: v2\nname: cast\nversion: 9.9.9\n"}
    )
    in_chart(lambda c: c["chartId"].update(version="9.9.9"))(files)


def odd_chart(files: Files) -> None:
    content = files.pop(chart_file(files))
    files["Artifacts/cast (1).tgz"] = content
    in_artifact(lambda a: a.update(file="Artifacts/cast (1).tgz"))(files)


def odd_entry(files: Files) -> None:
    files["Definitions/asd+.yaml"] = files.pop(ASD)
    files[META] = b"Entry-Definitions: Definitions/asd+.yaml\n"


def job(**changes: Any) -> dict[str, Any]:
    definition = {"deliveryInfo": {"topic": "pmreports"}}
    return {"info_type_id": "PmData", "job_owner": "a", "job_definition": definition} | changes


def pm_job(**changes: Any) -> dict[str, Any]:
    definition = {"filter": {}, "deliveryInfo": {"topic": "pmreports"}} | changes
    return job(job_definition=definition)


def producer(**changes: Any) -> dict[str, Any]:
    return {
        "info_job_callback_url": "http://rancast:8080/dme/jobs",
        "info_producer_supervision_callback_url": "http://rancast:8080/dme/supervision",
        "supported_info_types": ["CellTrafficForecast_1.0.0"],
    } | changes


BROKEN: dict[str, tuple[Breaking, str, str]] = {
    # What the manager checks itself.
    "no meta": (without(META), META, "expected this file"),
    "no entry": (with_file(META, b"CSAR-Version: 1.0\n"), META, "got None"),
    "lost entry": (with_file(META, b"Entry-Definitions: asd.yaml\n"), META, "got 'asd.yaml'"),
    "byte order mark": (
        with_file(META, b"\xef\xbb\xbfEntry-Definitions: Definitions/asd.yaml\n"),
        META,
        "ufeff",
    ),
    "line ends of a typewriter": (
        with_file(META, b"CSAR-Version: 1.0\rEntry-Definitions: Definitions/asd.yaml\r"),
        META,
        "CSAR-Version",
    ),
    "blank before the colon": (
        with_file(META, b"Entry-Definitions : Definitions/asd.yaml\n"),
        META,
        "Entry-Definitions :",
    ),
    "key in another line": (
        with_file(META, b"Created-By: Entry-Definitions\nEntry-Definitions: Definitions/asd.yaml"),
        META,
        "Created-By",
    ),
    "entry of an odd name": (odd_entry, META, "a regular expression"),
    "artifact of an odd name": (odd_chart, ASD, "a regular expression"),
    "chart that is not sent": (chart_besides, INSTANCE, "got cast 9.9.9"),
    "no composition": (without(COMPOSITION), COMPOSITION, "expected this file"),
    "damaged composition": (with_file(COMPOSITION, b"{"), COMPOSITION, "expected JSON"),
    "two compositions": (
        with_file("Files/Acm/definition/second.json", {}),
        "Files/Acm/definition/",
        "exactly one",
    ),
    "composition without elements": (
        in_json(COMPOSITION, lambda d: d.update(topology_template={})),
        COMPOSITION,
        "elements",
    ),
    "damaged descriptor": (with_file(ASD, b"a: ["), ASD, "expected YAML"),
    "template of another name": (
        in_asd(lambda t: t.update(asd=t.pop("applicationServiceDescriptor"))),
        ASD,
        "applicationServiceDescriptor",
    ),
    "no identifier": (in_properties(descriptor_id=None), ASD, "descriptor_id, got none"),
    "no UUID": (in_properties(descriptor_invariant_id="rancast"), ASD, "a UUID"),
    "no name": (in_properties(application_name=""), ASD, "application_name"),
    "other schema": (in_properties(schema_version="1.0"), ASD, "schema_version 2.0"),
    "no artifacts": (
        in_asd(lambda t: t["applicationServiceDescriptor"].pop("artifacts")),
        ASD,
        "a chart among the artifacts",
    ),
    "lost artifact": (in_artifact(lambda a: a.update(file="a.tgz")), ASD, "'a.tgz'"),
    "other type": (in_artifact(lambda a: a.update(type="a")), ASD, "deploymentItem"),
    "other artifact": (
        in_artifact(lambda a: a["properties"].update(artifact_type="kustomize")),
        ASD,
        "artifact_type helm_chart",
    ),
    "other server": (
        in_artifact(lambda a: a["properties"].update(target_server="oci")),
        ASD,
        "target_server chartmuseum",
    ),
    "no item": (in_artifact(lambda a: a["properties"].pop("item_id")), ASD, "item_id"),
    "no address": (
        in_artifact(lambda a: a["properties"].update(target_server_uri="UPDATE_THIS_URI")),
        ASD,
        "http://HOST:PORT/api/charts",
    ),
    "impossible port": (
        in_artifact(lambda a: a["properties"].update(target_server_uri="http://a:b/")),
        ASD,
        "target_server_uri",
    ),
    # The chart inside.
    "damaged chart": (
        lambda files: files.update({chart_file(files): b"no chart"}),
        "Artifacts/",
        "gzipped tar",
    ),
    "other chart": (replace_chart, INSTANCE, "a chart of the package, ['cast 9.9.9']"),
    "chart of another name": (rename_chart, "Artifacts/", "file name cast-1.2.3-c"),
    # Resources.
    "name without a dot": (with_file("Files/Acm/instances/README", b""), "Files/Acm", "in .json"),
    "hidden file": (with_file("Files/Acm/instances/.json", b""), "Files/Acm", "in .json"),
    "folder of another name": (
        with_file("Files/Sme/provider/a.json", {}),
        "Files/Sme/provider/a.json",
        "it is lost",
    ),
    "unfinished": (
        in_chart(lambda c: c.update(note="UPDATE_THIS_ADDRESS")),
        INSTANCE,
        "the words themselves",
    ),
    # Instances.
    "no instance": (without(INSTANCE), "Files/Acm/instances/", "an instance to deploy"),
    "damaged instance": (with_file(INSTANCE, b"{"), INSTANCE, "expected JSON"),
    "no token": (in_json(INSTANCE, lambda d: d.update(compositionId="1")), INSTANCE, "replaces"),
    "no elements": (in_json(INSTANCE, lambda d: d.update(elements={})), INSTANCE, "elements"),
    "key is no UUID": (
        in_json(INSTANCE, lambda d: d["elements"].update(a={"id": "a"})),
        INSTANCE,
        "a UUID as its key",
    ),
    "other id": (in_element(lambda e: e.update(id="a")), INSTANCE, "as its key, got 'a'"),
    "element of no name": (
        in_element(lambda e: e["definition"].update(name=[])),
        INSTANCE,
        "compositions.json lists",
    ),
    "unknown element": (
        in_element(lambda e: e["definition"].update(version="1.2.4")),
        INSTANCE,
        "compositions.json lists",
    ),
    "other chart version": (
        in_chart(lambda c: c["chartId"].update(version="0.1.0")),
        INSTANCE,
        "got cast 0.1.0",
    ),
    "no namespace": (in_chart(lambda c: c.pop("namespace")), INSTANCE, "expected namespace"),
    "no release": (in_chart(lambda c: c.update(releaseName="")), INSTANCE, "releaseName"),
    "release of a long name": (
        in_chart(lambda c: c.update(releaseName="a" * 54)),
        INSTANCE,
        "at most 53",
    ),
    "namespace in capitals": (
        in_chart(lambda c: c.update(namespace="Smo")),
        INSTANCE,
        "namespace of at most 63",
    ),
    "no repository": (in_chart(lambda c: c.pop("repository")), INSTANCE, "repository address"),
    "no overrides": (in_chart(lambda c: c.pop("overrideParams")), INSTANCE, "overrideParams"),
    "own instance id": (in_overrides(**{"environment.appId": "a"}), INSTANCE, "DO_NOT_CHANGE"),
    "no discovery": (
        in_chart(lambda c: c["overrideParams"].pop("environment.smeDiscoveryEndpoint")),
        INSTANCE,
        "smeDiscoveryEndpoint",
    ),
    "unknown value": (in_overrides(replicas="2"), INSTANCE, "got replicas"),
    "value below a value": (in_overrides(**{"profile.name": "a"}), INSTANCE, "got profile.name"),
    "number": (in_overrides(replicaCount=2), INSTANCE, "text as replicaCount"),
    "comma": (in_overrides(profile="a,b"), INSTANCE, "without commas"),
    "looks like a number": (in_overrides(**{"image.tag": "12"}), INSTANCE, "look like a number"),
    # What is published and called.
    "damaged provider": (with_file(PROVIDER, b"{"), PROVIDER, "expected JSON"),
    "no domain": (in_json(PROVIDER, lambda d: d.pop("apiProvDomInfo")), PROVIDER, "DomInfo"),
    "no publisher": (in_json(PROVIDER, lambda d: d["apiProvFuncs"].pop(0)), PROVIDER, "role APF"),
    "no server": (in_json(PROVIDER, lambda d: d["apiProvFuncs"].pop()), PROVIDER, "role AEF"),
    "role is a list": (
        in_json(PROVIDER, lambda d: d["apiProvFuncs"][0].update(apiProvFuncRole=[])),
        PROVIDER,
        "role APF",
    ),
    "function is a list": (in_profile(lambda p: p.update(aefId=[])), API, "got []"),
    "no key": (
        in_json(PROVIDER, lambda d: d["apiProvFuncs"][0].pop("regInfo")),
        PROVIDER,
        "apiProvPubKey",
    ),
    "damaged API": (with_file(API, b"{"), API, "expected JSON"),
    "no API name": (in_json(API, lambda d: d.pop("apiName")), API, "an apiName"),
    "no profiles": (in_json(API, lambda d: d.update(aefProfiles=[])), API, "aefProfiles"),
    "unknown function": (in_profile(lambda p: p.update(aefId="a")), API, "got 'a'"),
    "no resources": (in_profile(lambda p: p.update(versions=[])), API, "resources"),
    "relative path": (
        in_profile(lambda p: p["versions"][0]["resources"][0].update(uri="v1")),
        API,
        "begins with a slash",
    ),
    "no interface": (in_profile(lambda p: p.pop("interfaceDescriptions")), API, "interface"),
    "port of an interface": (
        in_profile(lambda p: p["interfaceDescriptions"][0].update(port="8080")),
        API,
        "'8080'",
    ),
    "resource without operations": (
        in_profile(lambda p: p["versions"][0]["resources"][0].pop("operations")),
        API,
        "operations of '/v1/forecast'",
    ),
    "resource of another kind": (
        in_profile(lambda p: p["versions"][0]["resources"][0].update(commType="PUSH")),
        API,
        "'PUSH'",
    ),
    "version without resources": (
        in_profile(lambda p: p["versions"].append({"apiVersion": "v2"})),
        API,
        "in each of versions",
    ),
    "the same resource twice": (
        in_profile(
            lambda p: p["versions"][0]["resources"].append(p["versions"][0]["resources"][0])
        ),
        API,
        "'forecast' twice",
    ),
    "no security method": (
        in_profile(lambda p: p["interfaceDescriptions"][0].update(securityMethods=[])),
        API,
        "or none at all",
    ),
    "unknown security method": (
        in_profile(lambda p: p["interfaceDescriptions"][0].update(securityMethods=["TLS"])),
        API,
        "['TLS']",
    ),
    "the same API twice": (
        lambda files: files.update({"Files/Sme/serviceapis/second.json": files[API]}),
        "Files/Sme/serviceapis/",
        "'rancast' twice",
    ),
    "damaged invoker": (with_file(INVOKER, b"{"), INVOKER, "expected JSON"),
    "invoker is no list": (with_file(INVOKER, {}), INVOKER, "a list of invokers"),
    "invoker of another": (
        with_file(INVOKER, invoker(apiInvokerInformation="a")),
        INVOKER,
        "which the manager replaces",
    ),
    "invoker of nothing": (with_file(INVOKER, invoker(apiList=[{}])), INVOKER, "an apiName"),
    "invoker without a key": (
        with_file(INVOKER, invoker(onboardingInformation={})),
        INVOKER,
        "apiInvokerPublicKey",
    ),
    "the same key twice": (
        with_file(INVOKER, invoker() + invoker()),
        "Files/Sme/invokers/",
        "'key' twice",
    ),
    # Data.
    "damaged job": (with_file(JOB, b"{"), JOB, "expected JSON"),
    "job without a type": (with_file(JOB, job(info_type_id="")), JOB, "info_type_id"),
    "job of nobody": (with_file(JOB, job(job_owner=None)), JOB, "job_owner"),
    "job of nothing": (with_file(JOB, job(job_definition=None)), JOB, "job_definition"),
    "job without a topic": (
        with_file(JOB, job(job_definition={"deliveryInfo": {}})),
        JOB,
        "a topic",
    ),
    "job with a misspelt filter": (
        with_file(JOB, pm_job(filter={"sourceName": []})),
        JOB,
        "got sourceName",
    ),
    "job with more to say of its delivery": (
        with_file(JOB, pm_job(deliveryInfo={"topic": "a", "group": "b"})),
        JOB,
        "got group",
    ),
    "job that replays what nobody sent": (
        with_file(JOB, pm_job(filter={"pmRopStartTime": "2026-11-01T00:00:00Z"})),
        JOB,
        "sourceNames",
    ),
    "job with a relative address": (
        with_file(JOB, job(status_notification_uri="/status")),
        JOB,
        "status_notification_uri",
    ),
    "producer of nothing": (
        with_file(PRODUCER, producer(supported_info_types=[])),
        PRODUCER,
        "supported_info_types",
    ),
    "producer out of reach": (
        with_file(PRODUCER, producer(info_job_callback_url="rancast")),
        PRODUCER,
        "info_job_callback_url",
    ),
    "type without a schema": (with_file(TYPE, {}), TYPE, "info_job_data_schema"),
}


def test_the_package_that_is_broken_here_is_fine_before(make_chart):
    good = {
        INVOKER: json.dumps(invoker()).encode(),
        JOB: json.dumps(job()).encode(),
        PRODUCER: json.dumps(producer()).encode(),
        TYPE: b'{"info_job_data_schema": {}}',
    }
    assert findings_of(files_of(make_chart()) | good) == []


@pytest.mark.parametrize("variant", BROKEN)
def test_each_broken_package_is_refused_with_the_reason(make_chart, variant):
    files = files_of(make_chart())
    break_it, place, reason = BROKEN[variant]
    break_it(files)
    findings = findings_of(files)
    assert [each for each in findings if each.place.startswith(place) and reason in each.reason], (
        list(map(str, findings))
    )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            b"Source: Definitions/asd.yaml",
            b"Source: Definitions/as.yaml",
            "got Definitions/as.yaml",
        ),
        (b"Source: Definitions/asd.yaml", b"Sauce: Definitions/asd.yaml", "is not listed"),
        (b"application_provider", b"application_vendor", "expected application_provider"),
        (b"Hash: ", b"Hash: 0", "the SHA-256"),
        (b"Algorithm: SHA-256", b"Algorithm: MD5", "got MD5"),
    ],
)
def test_a_manifest_that_does_not_fit_is_told(make_chart, old, new, reason):
    files = files_of(make_chart())
    files["asd.mf"] = files["asd.mf"].replace(old, new)
    assert [each for each in findings_of(files, signed=False) if reason in each.reason]


def test_another_algorithm_and_name_of_a_manifest_are_taken(make_chart):
    files = files_of(make_chart())
    manifest = files.pop("asd.mf").decode()
    for source in re.findall(r"Source: (.*)", manifest):
        old, new = (hashlib.new(kind, files[source]).hexdigest() for kind in ("sha256", "sha512"))
        manifest = manifest.replace(old, new)
    meta = files[META].replace(b"asd.mf", b"my.mf").replace(b"\n", b"\r\n")
    manifest = manifest.replace("SHA-256", "SHA-512").replace(
        hashlib.sha512(files[META]).hexdigest(), hashlib.sha512(meta).hexdigest()
    )
    files |= {META: meta, "my.mf": b"\xef\xbb\xbf" + manifest.replace("\n", "\r\n").encode()}
    assert findings_of(files, signed=False) == []


def test_a_package_without_a_manifest_is_told(make_chart):
    files = files_of(make_chart())
    del files["asd.mf"]
    (finding,) = findings_of(files, signed=False)
    assert str(finding) == "asd.mf: expected a manifest, got none"


def test_another_suffix_is_refused(make_chart):
    (finding,) = check_csar(zip_archive(files_of(make_chart())), "rancast.zip")
    assert "rancast.zip" in finding.reason


@pytest.mark.parametrize("content", [b"", b"no zip", zip_archive({"a": b"1"})[:-9]])
def test_what_is_no_zip_is_refused(content):
    (finding,) = check_csar(content, "a.csar")
    assert "a zip file" in finding.reason


def test_a_bomb_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(csar_contents, "MOST_BYTES", 1_000)
    (finding,) = check_csar(zip_archive({"a": bytes(100_000)}), "a.csar")
    assert "at most" in finding.reason


@pytest.mark.parametrize("name", ["./asd.mf", "../a", "a//b", "a\\b"])
def test_a_path_that_the_manager_would_not_find_is_told(make_chart, name):
    findings = findings_of(files_of(make_chart()) | {name: b""})
    assert [each for each in findings if each.place == name and "plain path" in each.reason]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_there_twice_is_told():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", b"1")
        archive.writestr("a", b"2")
    findings = check_csar(packed.getvalue(), "a.csar")
    assert [each for each in findings if each.place == "a" and "twice" in each.reason]


class Pipe(io.RawIOBase):
    """Takes bytes and cannot go back."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.taken += bytes(data)
        return len(data)


def test_an_uncompressed_entry_of_a_stream_is_told():
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as archive:
        archive.writestr("a", b"1")
    findings = check_csar(pipe.taken, "a.csar")
    assert [each for each in findings if each.place == "a" and "not to a pipe" in each.reason]
