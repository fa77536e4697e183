"""What docs/training-jobs.md has people apply is taken by Kubernetes itself."""

from __future__ import annotations

import pytest

from tests.cluster.api import at
from tests.cluster.cluster import Cluster
from tests.conftest import REPOSITORY
from tests.test_docs import manifests

pytestmark = pytest.mark.cluster

PAGE = REPOSITORY / "docs" / "training-jobs.md"
PLACES = {
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "Pod": ("v1", "pods"),
    "Role": ("rbac", "roles"),
}


def test_every_manifest_of_the_page_is_taken_by_the_server(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    for each in manifests(PAGE):
        path = at(*PLACES[each["kind"]], namespace)
        taken = cluster.api.send("POST", path, each, query={"dryRun": "All"})
        assert taken["metadata"]["name"] == each["metadata"]["name"]
