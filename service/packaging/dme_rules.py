"""What is wrong with the data that a CSAR asks for and offers.

The manager sends these files as they are to the information coordinator (DME), so a file of
`infoconsumers` is the body of an information job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from service.packaging.csar_contents import CsarContents, at, json_document
from service.packaging.errors import PackageError
from service.packaging.finding import Finding
from service.packaging.web_address import is_web_address

PRODUCED_TYPES = "Files/Dme/producerinfotypes/"
CONSUMED_TYPES = "Files/Dme/consumerinfotypes/"
PRODUCERS = "Files/Dme/infoproducers/"
CONSUMERS = "Files/Dme/infoconsumers/"
DME_FOLDERS = (PRODUCED_TYPES, CONSUMED_TYPES, PRODUCERS, CONSUMERS)
_CALLBACKS = ("info_job_callback_url", "info_producer_supervision_callback_url")
# What the producer of PM data takes in a job (nonrtric-plt-ranpm, pmproducer,
# typeSchemaPmData.json), which the coordinator holds jobs to.
_PM_TYPE = "PmData"
_PM_KEYS = {
    "filter": {
        *("sourceNames", "measObjInstIds", "measuredEntityDns", "measTypeSpecs"),
        *("pmRopStartTime", "pmRopEndTime"),
    },
    "deliveryInfo": {"topic", "bootStrapServers"},
}
_URIS = ("job_result_uri", "status_notification_uri")


def check_dme(contents: CsarContents) -> Iterator[Finding]:
    """What is wrong with information types, producers and jobs."""
    for folder, check in (
        (PRODUCED_TYPES, _type),
        (CONSUMED_TYPES, _type),
        (PRODUCERS, _producer),
        (CONSUMERS, _job),
    ):
        for name in contents.below(folder):
            try:
                document = json_document(contents, name)
            except PackageError as error:
                yield Finding(name, str(error))
                continue
            yield from check(name, document)


def _type(name: str, document: Any) -> Iterator[Finding]:
    if not isinstance(at(document, "info_job_data_schema"), dict):
        yield Finding(name, "expected info_job_data_schema, a JSON Schema, got none")


def _producer(name: str, document: Any) -> Iterator[Finding]:
    types = at(document, "supported_info_types")
    if not isinstance(types, list) or not types:
        yield Finding(name, "expected supported_info_types, got none")
    for key in _CALLBACKS:
        if not is_web_address(at(document, key)):
            yield Finding(name, f"expected an absolute address as {key}, got {at(document, key)!r}")


def _job(name: str, document: Any) -> Iterator[Finding]:
    for key in ("info_type_id", "job_owner"):
        if not at(document, key):
            yield Finding(name, f"expected {key}, got none")
    definition = at(document, "job_definition")
    if not isinstance(definition, dict):
        yield Finding(name, "expected a job_definition, got none")
    elif "deliveryInfo" in definition and not at(definition, "deliveryInfo", "topic"):
        yield Finding(name, "expected a topic in job_definition/deliveryInfo, got none")
    if at(document, "info_type_id") == _PM_TYPE:
        yield from _pm_job(name, definition)
    for key in _URIS:
        value = at(document, key)
        if value and not is_web_address(value):
            yield Finding(name, f"expected an absolute address as {key}, got {value!r}")


def _pm_job(name: str, definition: Any) -> Iterator[Finding]:
    for group, known in _PM_KEYS.items():
        stated = at(definition, group)
        if unknown := sorted(set(stated) - known) if isinstance(stated, dict) else []:
            yield Finding(
                name,
                f"expected {', '.join(sorted(known))} in job_definition/{group}, got "
                f"{', '.join(unknown)}: the coordinator refuses the job",
            )
    wanted = at(definition, "filter")
    if at(wanted, "pmRopStartTime") and not at(wanted, "sourceNames"):
        yield Finding(
            name,
            "expected sourceNames beside pmRopStartTime, got none: stored files are replayed of "
            "named sources alone",
        )
