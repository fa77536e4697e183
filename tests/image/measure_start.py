"""Runs inside the image: how long the service takes to start, and what memory it then has.

Prints one JSON object. The standard library only, because nothing of the tests is in the image.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time

POLL_S = 0.02
PATIENCE_S = 300


def answers(port: int, path: str) -> bool:
    """Whether the service says 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def seconds_until(port: int, path: str, service: subprocess.Popen[bytes], since_s: float) -> float:
    """Seconds from a moment of the monotonic clock until a path answers 200."""
    while not answers(port, path):
        waited_s = time.monotonic() - since_s
        if service.poll() is not None or waited_s > PATIENCE_S:
            raise SystemExit(f"no 200 of {path} after {waited_s:.0f} s, status {service.poll()}")
        time.sleep(POLL_S)
    return time.monotonic() - since_s


def memory_mib(pid: int, field: str) -> float:
    """A field of the kernel's account of a process, which it states in KiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        (found,) = (line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return int(found) / 1024


def main() -> int:
    """Start the service of this environment, measure and stop it."""
    port = int(os.environ["RANCAST_PORT"])
    since_s = time.monotonic()
    service = subprocess.Popen(["rancast", "serve"], stdout=sys.stderr)
    try:
        figures = {
            "healthy_s": seconds_until(port, "/healthz", service, since_s),
            "ready_s": seconds_until(port, "/readyz", service, since_s),
            "resident_mib": memory_mib(service.pid, "VmRSS"),
            "peak_mib": memory_mib(service.pid, "VmHWM"),
            "anonymous_mib": memory_mib(service.pid, "RssAnon"),
        }
    finally:
        service.send_signal(signal.SIGTERM)
        status = service.wait()
    sys.stdout.write(json.dumps(figures) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
