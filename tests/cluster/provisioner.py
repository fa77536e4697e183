"""Folders of this machine as persistent volumes, for claims that name no other class."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.api import Api, ApiError, Object, at

PROVISIONER = "rancast.test/folder"
CLASS = "folder"
_MADE_BY = "pv.kubernetes.io/provisioned-by"
_ASKED_OF = "volume.beta.kubernetes.io/storage-provisioner"


@dataclass(frozen=True)
class Provisioner:
    """Makes the volume of a claim, and removes it with the claim.

    Attributes:
        api: Of the cluster.
        folder: Holds the folders of all volumes.
    """

    api: Api
    folder: Path

    def register(self) -> None:
        """Make its class, which is that of claims that name none."""
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        self.api.create(
            at("storage", "storageclasses"),
            {"metadata": {"name": CLASS, "annotations": default}, "provisioner": PROVISIONER},
        )

    def step(self) -> None:
        """Serve the claims that wait, and clear what is no longer claimed."""
        for claim in self.api.list(at("v1", "persistentvolumeclaims")):
            asked = (claim["metadata"].get("annotations") or {}).get(_ASKED_OF) == PROVISIONER
            if asked and claim["status"].get("phase") == "Pending":
                self._make(claim)
        for volume in self.api.list(at("v1", "persistentvolumes")):
            made = (volume["metadata"].get("annotations") or {}).get(_MADE_BY) == PROVISIONER
            if made and volume["status"].get("phase") == "Released":
                shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)
                self.api.delete(at("v1", "persistentvolumes", name=volume["metadata"]["name"]))

    def _make(self, claim: Object) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{metadata['uid']}"
        place = self.folder / name
        place.mkdir(parents=True, exist_ok=True)
        volume = {
            "metadata": {"name": name, "annotations": {_MADE_BY: PROVISIONER}},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "storageClassName": CLASS,
                "persistentVolumeReclaimPolicy": "Delete",
                "hostPath": {"path": str(place), "type": "Directory"},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
            },
        }
        try:
            self.api.create(at("v1", "persistentvolumes"), volume)
        except ApiError as error:
            # Made in the last step, and not bound yet.
            if error.status != 409:
                raise
