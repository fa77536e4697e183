"""Volumes of a pod as folders of this machine."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.api import Api, ApiError, Object, at
from tests.cluster.pod_environment import PodWaitsError, References


def make_volumes(pod: Object, folder: Path, references: References) -> dict[str, Path]:
    """Make a pod's volumes.

    Args:
        pod: As the API knows it.
        folder: Of the pod, on this machine.
        references: Looks up config maps and secrets.

    Returns:
        The folder of each volume, by the volume's name.

    Raises:
        PodWaitsError: What a volume is made of is not there, or it is of a kind not known here.
    """
    return {
        volume["name"]: _make(volume, folder / "volumes" / volume["name"], pod, references)
        for volume in pod["spec"].get("volumes") or []
    }


def _make(volume: Object, folder: Path, pod: Object, references: References) -> Path:
    if "hostPath" in volume:
        return _host_path(volume["hostPath"])
    if claim := volume.get("persistentVolumeClaim"):
        return _claimed(claim["claimName"], pod, references.api)
    folder.mkdir(parents=True, exist_ok=True)
    if "emptyDir" in volume:
        return folder
    if "projected" in volume:
        for source in volume["projected"].get("sources") or []:
            (kind,) = source
            _fill(folder, _files(kind, source[kind], pod, references))
        return folder
    for kind in ("configMap", "secret", "downwardAPI"):
        if kind in volume:
            _fill(folder, _files(kind, volume[kind], pod, references))
            return folder
    kinds = ", ".join(sorted(set(volume) - {"name"}))
    raise PodWaitsError("FailedMount", f"volumes of {kinds} are not known to this node")


def _host_path(source: Object) -> Path:
    place = Path(source["path"])
    kind = source.get("type") or ""
    if kind == "DirectoryOrCreate":
        place.mkdir(parents=True, exist_ok=True)
    if kind == "Directory" and not place.is_dir():
        raise PodWaitsError("FailedMount", f"hostPath type check failed: {place}")
    return place


def _claimed(name: str, pod: Object, api: Api) -> Path:
    """The folder behind a claim, whose volume has to be one of this machine."""
    claim = api.find(at("v1", "persistentvolumeclaims", pod["metadata"]["namespace"], name))
    volume = (claim or {}).get("spec", {}).get("volumeName")
    found = api.find(at("v1", "persistentvolumes", name=volume)) if volume else None
    if found is None:
        raise PodWaitsError("FailedMount", f'claim "{name}" is not bound')
    place = Path(found["spec"].get("hostPath", {}).get("path", ""))
    if not place.is_absolute():
        raise PodWaitsError("FailedMount", f"volume {volume} is not one of this machine")
    place.mkdir(parents=True, exist_ok=True)
    return place


def _files(kind: str, source: Object, pod: Object, references: References) -> dict[str, bytes]:
    """Names and contents that a source brings."""
    if kind == "downwardAPI":
        return {
            item["path"]: references.field(item["fieldRef"]["fieldPath"]).encode()
            for item in source.get("items") or []
        }
    if kind == "serviceAccountToken":
        return {source["path"]: _token(source, pod, references.api).encode()}
    try:
        data = references.data({"configMap": "configmaps", "secret": "secrets"}[kind], source)
    except PodWaitsError as error:
        raise PodWaitsError("FailedMount", str(error)) from error
    items = source.get("items")
    if items is None:
        return data
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not source.get("optional"):
        raise PodWaitsError("FailedMount", f"references non-existent keys: {', '.join(missing)}")
    return {item["path"]: data[item["key"]] for item in items if item["key"] in data}


def _token(source: Object, pod: Object, api: Api) -> str:
    account = pod["spec"].get("serviceAccountName", "default")
    wanted = {"expirationSeconds": source.get("expirationSeconds") or 3600}
    if source.get("audience"):
        wanted["audiences"] = [source["audience"]]
    path = at("v1", "serviceaccounts", pod["metadata"]["namespace"], f"{account}/token")
    try:
        made = api.create(path, {"spec": {"audiences": [], **wanted}})
    except ApiError as error:
        raise PodWaitsError("FailedMount", str(error)) from error
    token: str = made["status"]["token"]
    return token


def _fill(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
