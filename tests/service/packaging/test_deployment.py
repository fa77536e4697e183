from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.packaging.chart import Chart, ChartPackage, package_chart, read_chart
from service.packaging.csar import package_csar
from service.packaging.csar_rules import check_csar
from service.packaging.deployment import check_deployment, service_port
from service.packaging.errors import PackageError
from tests.service.packaging.csars import OPTIONS, files_of, findings_of


def chart(**values: Any) -> Chart:
    return Chart("cast", "1.0.0", "", {"service": {"port": 8080}} | values, {})


def check(
    overrides: dict[str, str] | None = None, *, published: bool = True, **values: Any
) -> None:
    check_deployment(chart(**values), overrides or {}, published=published)


@pytest.mark.parametrize("key", ["access.tlsSecret", "settings.tls_certificate"])
def test_tls_is_not_published_for_the_gateway_does_not_speak_it(key):
    group, name = key.split(".")
    values: dict[str, Any] = {group: {name: "mine", "open": True}}
    with pytest.raises(PackageError, match=f"plain HTTP, got {key}"):
        check({key: "mine"})
    with pytest.raises(PackageError, match="--no-publish"):
        check({}, published=True, **values)
    check({key: "mine", "access.open": "true"}, published=False)


def test_a_chart_that_goes_elsewhere_by_its_own_values_is_refused():
    with pytest.raises(PackageError, match="got namespaceOverride"):
        check(namespaceOverride="smo")


@pytest.mark.parametrize("port", [None, "8080", 0, 65_536, True, [8080]])
def test_a_chart_without_a_port_cannot_be_published(port):
    with pytest.raises(PackageError, match=r"service\.port of cast"):
        check(service={"port": port})
    check(published=False, service={"port": port})


@pytest.mark.parametrize(
    ("text", "port"), [("9090", 9090), ("08080", None), ("\uff18\uff10", None), ("0", None)]
)
def test_a_port_is_what_helm_makes_of_it(text, port):
    if port is None:
        with pytest.raises(PackageError, match="from 1 to 65535"):
            service_port(chart(), {"service.port": text})
    else:
        assert service_port(chart(), {"service.port": text}) == port


@pytest.fixture
def package(make_chart: Any) -> ChartPackage:
    return package_chart(read_chart(make_chart()))


def test_what_is_not_published_has_nothing_for_the_registry(package, make_chart):
    options = replace(OPTIONS, published=False)
    assert check_csar(package_csar(package, options), "rancast.csar") == []
    files = files_of(make_chart(), published=False)
    assert findings_of(files) == []
    assert not [name for name in files if name.startswith("Files/Sme/")]


@pytest.mark.parametrize("provider", ["a\nSource: b", "a\tb", " a", "a\r"])
def test_a_provider_that_would_write_into_the_manifest_is_refused(package, provider):
    with pytest.raises(PackageError, match="on one line"):
        package_csar(package, replace(OPTIONS, provider=provider))


def test_a_provider_may_have_any_letters(package):
    assert package_csar(package, replace(OPTIONS, provider="T\u00e9l\u00e9com \u96fb\u4fe1"))
