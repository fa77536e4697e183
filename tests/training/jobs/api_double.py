"""A double of a Kubernetes API server, as much of its protocol as training jobs use.

It stores objects, refuses what the schema of a version of Kubernetes refuses (strictly: unknown
fields too), answers conflicts, absences and missing rights with Status objects, selects by labels
and fields, and streams logs with time stamps. What becomes of the objects is the business of
`cluster_double.py`.
"""

from __future__ import annotations

import copy
import json
import re
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubernetes_validate
import yaml
from kubeflow_trainer_api.models import TrainerV1alpha1TrainJob

NAMESPACE, TOKEN = "training", "a-token"
KINDS = {"jobs": "Job", "pods": "Pod", "services": "Service", "events": "Event"}
PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[a-z0-9.]+)/\w+)/namespaces/(?P<namespace>[a-z0-9-]+)"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[a-z0-9.-]+))?(?:/(?P<part>log))?"
)
GROUPS = {"jobs": "batch", "trainjobs": "trainer.kubeflow.org"}

Object = dict[str, Any]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class PodLog:
    """What a pod has printed, each line with the time of it in nanoseconds."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    ended: bool = False


def _leave(_plural: str, _body: Object) -> None:
    """Let an object be as it is."""


@dataclass
class Refusal(Exception):
    """An answer that is an error."""

    status: int
    message: str


class ApiDouble:
    """The server and all that it has stored."""

    def __init__(self, version: str = "1.37") -> None:
        self.version = version
        self.objects: dict[tuple[str, str], Object] = {}
        self.logs: dict[str, PodLog] = {}
        self.changed = threading.Condition()
        self.forbidden: set[tuple[str, str]] = set()
        self.unknown_fields: dict[str, set[str]] = {}
        self.knows_strict = True
        self.on_created: Callable[[str, Object], None] = _leave
        self.on_deleted: Callable[[str, Object], None] = _leave
        self.cut_logs_after_bytes: list[int] = []
        self.answer_instead: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def write_kubeconfig(self, path: Path, token: str = TOKEN) -> Path:
        entry = {"cluster": "double", "user": "me", "namespace": NAMESPACE}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "double", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [{"name": "double", "context": entry}],
            "current-context": "double",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def put(self, plural: str, body: Object) -> Object:
        """Store an object as a controller does, who is not asked for his rights."""
        with self.changed:
            about = body["metadata"]
            about.setdefault("namespace", NAMESPACE)
            about.setdefault("uid", str(uuid.uuid4()))
            about.setdefault("creationTimestamp", now())
            self.objects[plural, about["name"]] = body
            self.changed.notify_all()
        return body

    def remove(self, plural: str, name: str) -> None:
        with self.changed:
            gone = self.objects.pop((plural, name), None)
            uid = gone["metadata"]["uid"] if gone else None
            for key, each in list(self.objects.items()):
                owners = each["metadata"].get("ownerReferences") or []
                if uid and any(owner["uid"] == uid for owner in owners):
                    del self.objects[key]
            self.changed.notify_all()

    def create(self, plural: str, body: Object, *, strict: bool = False) -> Object:
        self._validate(plural, body)
        unknown = self.unknown_fields.get(plural, set()) & set(body["spec"])
        if unknown and strict and self.knows_strict:
            said = ", ".join(f'unknown field "spec.{name}"' for name in sorted(unknown))
            raise Refusal(400, f"strict decoding error: {said}")
        kept = {name: value for name, value in body["spec"].items() if name not in unknown}
        body = {**body, "spec": kept}
        name = body["metadata"]["name"]
        with self.changed:
            if (plural, name) in self.objects:
                raise Refusal(409, f'{plural} "{name}" already exists')
            stored = self.put(plural, copy.deepcopy(body))
        self.on_created(plural, stored)
        return stored

    def read(self, plural: str, name: str) -> Object:
        with self.changed:
            if (plural, name) not in self.objects:
                raise Refusal(404, f'{plural} "{name}" not found')
            return copy.deepcopy(self.objects[plural, name])

    def find(self, plural: str, labels: str = "", fields: str = "") -> list[Object]:
        with self.changed:
            return [
                copy.deepcopy(body)
                for (kind, _), body in self.objects.items()
                if kind == plural and _bears(body, labels) and _has(body, fields)
            ]

    def delete(self, plural: str, name: str, policy: str) -> Object:
        body = self.read(plural, name)
        if policy == "Foreground":
            with self.changed:
                about = self.objects[plural, name]["metadata"]
                about.setdefault("deletionTimestamp", now())
                about["finalizers"] = ["foregroundDeletion"]
            self.on_deleted(plural, body)
        else:
            # As the API does by default: what the object owns is left behind.
            with self.changed:
                del self.objects[plural, name]
        return body

    def _validate(self, plural: str, body: Object) -> None:
        if plural == "trainjobs":
            try:
                TrainerV1alpha1TrainJob.from_dict(body)
            except ValueError as error:
                raise Refusal(422, str(error)) from error
            return
        if body.get("kind") != KINDS[plural]:
            raise Refusal(400, f"expected {KINDS[plural]}, got {body.get('kind')}")
        try:
            kubernetes_validate.validate(body, self.version, strict=True)
        except kubernetes_validate.ValidationError as error:
            raise Refusal(422, error.message) from error


def _bears(body: Object, selector: str) -> bool:
    labels = body["metadata"].get("labels") or {}
    pairs = [term.split("=") for term in selector.split(",") if term]
    return all(labels.get(key) == value for key, value in pairs)


def _has(body: Object, selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        path, value = term.split("=")
        found: Any = body
        for part in path.split("."):
            found = (found or {}).get(part)
        if found != value:
            return False
    return True


def _handler(double: ApiDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body go in two packets, and the second would wait for the first one's receipt.
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self._answer("get")

        def do_POST(self) -> None:
            self._answer("create")

        def do_DELETE(self) -> None:
            self._answer("delete")

        def _answer(self, verb: str) -> None:
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            try:
                match = PATH.fullmatch(url.path)
                if match is None:
                    raise Refusal(404, "the server could not find the requested resource")
                plural, name, part = match["plural"], match["name"], match["part"]
                if verb == "get" and not name:
                    verb = "list"
                self._allow(verb, plural + (f"/{part}" if part else ""), match)
                if part == "log":
                    self._stream(name, query)
                    return
                self._send(201 if verb == "create" else 200, self._do(verb, match, query, body))
            except Refusal as refusal:
                self._send(
                    refusal.status,
                    {
                        "kind": "Status",
                        "apiVersion": "v1",
                        "status": "Failure",
                        "message": refusal.message,
                        "code": refusal.status,
                    },
                )

        def _allow(self, verb: str, resource: str, match: re.Match[str]) -> None:
            double.requests.append((verb, resource))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                raise Refusal(401, "Unauthorized")
            if GROUPS.get(match["plural"]) != match["group"]:
                raise Refusal(404, "the server could not find the requested resource")
            if match["namespace"] != NAMESPACE or (verb, resource) in double.forbidden:
                raise Refusal(403, f"cannot {verb} resource {resource}")

        def _do(self, verb: str, match: re.Match[str], query: dict[str, str], body: Object) -> Any:
            plural, name = match["plural"], match["name"]
            if verb == "create":
                strict = query.get("fieldValidation") == "Strict"
                return double.create(plural, body, strict=strict)
            if verb == "delete":
                policy = query.get("propagationPolicy") or body.get("propagationPolicy", "Orphan")
                return double.delete(plural, name, policy)
            if verb == "get":
                return double.read(plural, name)
            found = double.find(
                plural, query.get("labelSelector", ""), query.get("fieldSelector", "")
            )
            return {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": found}

        def _send(self, status: int, body: Any) -> None:
            data = double.answer_instead.get(urlsplit(self.path).path) or json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, name: str, query: dict[str, str]) -> None:
            pod = double.read("pods", name)
            if pod.get("status", {}).get("phase") == "Pending" or name not in double.logs:
                raise Refusal(400, f'container in pod "{name}" is waiting to start')
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            log, position, sent = double.logs[name], 0, 0
            room = double.cut_logs_after_bytes.pop(0) if double.cut_logs_after_bytes else None
            if "tailLines" in query:
                position = max(0, len(log.lines) - int(query["tailLines"]))
            while True:
                with double.changed:
                    fresh = log.lines[position:]
                    ended = log.ended or query.get("follow") != "true"
                    if not fresh and not ended:
                        double.changed.wait(0.05)
                        continue
                position += len(fresh)
                data = b"".join(_line(each, query) for each in fresh)
                if room is not None and sent + len(data) >= room:
                    data = data[: max(0, room - sent)]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if data else b"")
                    self.close_connection = True  # without the last chunk: the stream broke
                    return
                sent += len(data)
                if data:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    self.wfile.flush()
                if ended and position == len(log.lines):
                    self.wfile.write(b"0\r\n\r\n")
                    return

    return Handler


def _line(line: tuple[int, str], query: dict[str, str]) -> bytes:
    nanoseconds, text = line
    if query.get("timestamps") != "true":
        return f"{text}\n".encode()
    seconds, rest = divmod(nanoseconds, 10**9)
    base = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    # As Go prints it: without zeros at the end.
    fraction = f".{rest:09d}".rstrip("0").rstrip(".")
    return f"{base}{fraction}Z {text}\n".encode()
