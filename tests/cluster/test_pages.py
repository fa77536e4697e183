"""The pages that lead to a running app, followed in a cluster with helm and kubectl as printed.

Left out are the lines that need what the test cluster lacks: Services that lead somewhere
(`helm test`), and a node that forwards ports. In their place the pod itself is asked.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from io import BytesIO
from pathlib import Path

import httpx
import pytest

from tests.cluster.cluster import Cluster, unavailable
from tests.cluster.release import Release, find_helm
from tests.deploy_pages import ANYWHERE, CLUSTER, make_tools, run, write_files
from tests.deploy_pages import commands as commands_of

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

NAMESPACES = {"deploy-xapp.md": "ricxapp", "deploy-rapp.md": "nonrtric"}
NOT_HERE = re.compile(r"^(helm test|kubectl [^\n]*port-forward) [^\n]*\n", re.MULTILINE)


@pytest.fixture(params=NAMESPACES)
def page(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    helm = find_helm("helm")
    if helm is None:
        unavailable("no helm beside Python or on PATH; `make tools` fetches it")
    if shutil.which("kubectl") is None:
        unavailable("no kubectl on PATH (Debian: kubernetes-client)")
    return make_tools(tmp_path / "bin", helm)


@pytest.fixture
def namespace(cluster: Cluster, page: str) -> str:
    # Only on our own control plane: a RIC of the user's may have a namespace of that name.
    cluster.process_node()
    return cluster.namespace(NAMESPACES[page])


def let_old_servers_take(chart: Path) -> None:
    """Take the oldest Kubernetes that it is meant for out of a packaged chart."""
    with tarfile.open(chart) as archive:
        files = [(info, archive.extractfile(info)) for info in archive.getmembers()]
        contents = [(info, file.read() if file else b"") for info, file in files]
    with tarfile.open(chart, "w:gz") as archive:
        for info, content in contents:
            if info.name.endswith("/Chart.yaml") and info.name.count("/") == 1:
                content = re.sub(rb"^kubeVersion:.*\n", b"", content, flags=re.M)
            info.size = len(content)
            archive.addfile(info, BytesIO(content))


def forecast(release: Release, token: str) -> httpx.Response:
    series = {
        "cell": "NRCellDU=32",
        "start": "2026-11-01T00:00:00Z",
        "step_seconds": 60,
        "kpis": {"RRU.PrbTotDl": [12.0, None, 15.5, 18.0, 21.5]},
    }
    # The longest that a near-RT loop may state: the machine is not the pod's alone.
    request = {"series": [series], "horizon": 4, "quantiles": [0.1, 0.5, 0.9], "budget_ms": 1000}
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(
        f"{release.address()}/v1/forecast",
        json=request,
        headers=headers,
        timeout=60,
        trust_env=False,
    )


def test_from_an_empty_folder_to_forecasts_and_back(
    cluster: Cluster, page: str, namespace: str, tools: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    write_files(page, work)
    packing = "".join(commands_of(page, ANYWHERE))
    run(packing, work, tools, 300)
    release = Release(cluster, str(tools / "helm"), work, namespace, "rancast", tmp_path)
    answered = False
    for block in commands_of(page, CLUSTER):
        (chart,) = work.glob("dist/rancast-*.tgz")
        if cluster.plane is not None:
            let_old_servers_take(chart)
        script = f"CHART={chart.relative_to(work)}\n{NOT_HERE.sub('', block)}"
        run(script, work, tools, 400, KUBECONFIG=str(cluster.kubeconfig))
        if not answered and release.objects("apps/v1", "deployments"):
            answered = True
            assert forecast(release, "wrong").status_code == 401
            answer = forecast(release, (work / "token").read_text().strip())
            assert answer.status_code == 200, answer.text
    assert answered
