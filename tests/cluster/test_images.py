from __future__ import annotations

import pytest

from tests.cluster.images import UNKNOWN, Image, image_of_dockerfile, service_image
from tests.cluster.pod_runner import Images

DOCKERFILE = """\
ARG BASE=python
FROM ${BASE} AS build
RUN make
FROM --platform=linux ${BASE} AS runtime
# A remark \\
RUN true \\
    && install -d -o 1 -m 0770 /var/lib/app /var/cache/app
ENV PATH=/opt/bin:/bin \\
    APP_HOST=0.0.0.0 TEXT="two words"
ENTRYPOINT ["app"]
CMD ["serve"]
FROM runtime AS other
ENV APP_HOST=::
CMD ["compile"]
FROM runtime AS service
"""


def test_stage_says_what_its_processes_get() -> None:
    image = image_of_dockerfile(DOCKERFILE, "service")
    assert image.entrypoint == ("app",)
    assert image.command == ("serve",)
    assert image.environment == {"APP_HOST": "0.0.0.0", "TEXT": "two words"}
    assert image.folders == ("/var/lib/app", "/var/cache/app")


def test_stage_has_what_the_one_below_it_has_where_it_says_nothing_else() -> None:
    other = image_of_dockerfile(DOCKERFILE, "other")
    assert (other.entrypoint, other.command) == (("app",), ("compile",))
    assert other.environment["APP_HOST"] == "::"
    assert image_of_dockerfile(DOCKERFILE, "build") == UNKNOWN


def test_service_is_what_the_dockerfile_starts() -> None:
    image = service_image()
    assert image.words({}) == ["rancast", "serve"]
    assert image.environment["RANCAST_PORT"] == "8080"
    assert "/var/lib/rancast" in image.folders


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({}, ["app", "serve"]),
        ({"args": ["train"]}, ["app", "train"]),
        ({"args": []}, ["app"]),
        ({"command": ["sh"]}, ["sh"]),
        ({"command": ["sh"], "args": ["-c", "true"]}, ["sh", "-c", "true"]),
    ],
)
def test_command_of_a_container_replaces_all_of_the_images(
    container: dict[str, list[str]], words: list[str]
) -> None:
    assert Image(("app",), ("serve",)).words(container) == words


@pytest.mark.parametrize(
    "name",
    [
        "app",
        "app:1",
        "host.example:5000/ran/app:1.2",
        "host.example/app@sha256:00",
        "ran/app:1@x:0",
    ],
)
def test_image_is_known_by_its_last_name(name: str) -> None:
    image = Image(("app",))
    assert Images({"app": image}).find(name) is image


def test_image_of_another_name_is_unknown() -> None:
    assert Images({"app": Image(("app",))}).find("app-compiler:1") is UNKNOWN
