"""Settings of the service, from the environment (`RANCAST_…`) or from keyword arguments.

Each setting's description is what `docs/operations.md` prints. A variable that starts with the
prefix and is no setting is an error, because it is nearly always a misspelt one; the variables that
Kubernetes sets for a Service called `rancast` are let pass.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from model.code_cache import CACHE_VARIABLE, FLAGS_VARIABLE, ISA_VARIABLE
from model.errors import ModelError
from model.holidays import check_country
from model.inference_path import PrecisionChoice
from service.access.settings import AccessSettings
from service.budget import PROFILE_BOUNDS, BudgetBounds, BudgetPolicy, Profile
from service.errors import SettingsError
from service.models.reference import parse_reference
from service.models.routing import Routing
from service.timestamps import is_time_zone

PREFIX = "RANCAST_"
_SERVICE_LINK = re.compile(
    r"RANCAST(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)"
)

_OF_JOBS = ("RANCAST_IMAGE", "RANCAST_JOB_BACKEND", "RANCAST_JOBS_DIR")
"""Variables of `rancast job`, which may be said in the same shell or pod."""

LogLevel = Literal["debug", "info", "warning", "error"]


class Compiled(StrEnum):
    """What is done to have compiled code."""

    AUTO = "auto"
    CACHED = "cached"
    OFF = "off"


class Settings(AccessSettings):
    """What an operator can choose; frozen once made."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    profile: Profile = Field(
        Profile.NEAR_RT,
        description="Control loop that is served; decides the default latency budget "
        "(near-rt 100 ms, non-rt 5000 ms) and its bounds.",
    )
    budget_default_ms: float | None = Field(
        None, gt=0, description="Latency budget of requests that state none; unset: the profile's."
    )
    budget_most_ms: float | None = Field(
        None, gt=0, description="Largest budget that a request may state; unset: the profile's."
    )
    model_path: Path | None = Field(
        None,
        description="Checkpoint to serve: a file (.safetensors), or the name of one that ships, "
        "unset: rancast-small.",
    )
    models_directory: Path | None = Field(
        None,
        description="Directory of further checkpoints (.safetensors), at any depth: what appears "
        "or changes is loaded, what goes is unloaded, without a restart; unset: none.",
    )
    models_limit: int = Field(
        8, ge=1, description="Models in service at a time; a file beyond it is refused."
    )
    default_model: str | None = Field(
        None,
        description="Who answers requests that name no model: NAME (its highest version) or "
        "NAME@VERSION; unset: the checkpoint of RANCAST_MODEL_PATH.",
    )
    canary_model: str | None = Field(
        None,
        description="Who answers a share of them instead: NAME or NAME@VERSION; unset: nobody.",
    )
    canary_share: float = Field(
        0.0, ge=0, le=1, description="That share, from 0 to 1; each request is drawn by itself."
    )
    catalogue_files: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="KPI catalogues (TOML) that extend the built-in one, separated by commas; "
        "later ones win.",
    )
    time_zone: str = Field(
        "UTC",
        description="IANA zone of the network's local time: for calendar features where a request "
        "names none, and for stamps without offset in files.",
    )
    holiday_country: str | None = Field(
        None,
        description="Country whose public holidays forecasts count where a request names none, as "
        "in ES or ES-CT (ISO 3166); unset: no holidays.",
    )
    short_context_steps: int | None = Field(
        None,
        ge=1,
        description="Samples of context of the rung short, which answers where there is no time "
        "for all of it; unset: a quarter of the model's.",
    )
    threads: int = Field(1, ge=1, le=256, description="Threads of one inference.")
    compiled: Compiled = Field(
        Compiled.AUTO,
        description="Compiled forward pass: auto takes it from the cache, and makes it in the "
        "background where it is missing and a C++ compiler is at hand; cached makes nothing; off "
        "runs the model as it is.",
    )
    precision: PrecisionChoice = Field(
        PrecisionChoice.AUTO,
        description="Products of the compiled forward pass: auto takes bfloat16 where the "
        "processor has instructions for it and the checkpoint's self-test holds; float32; "
        "bfloat16.",
    )
    queue_limit: int = Field(
        128,
        ge=1,
        description="Requests that may wait for the model, and as many for the store; more are "
        "refused with 429.",
    )
    max_series_per_request: int = Field(
        10_000, ge=1, description="Series in one request; more are refused with 413."
    )
    max_kpis: int = Field(
        16,
        ge=1,
        le=1024,
        description="KPIs of one series, and of a stored cell; at most half of a stored cell's are "
        "ones that the catalogue does not hold.",
    )
    max_body_bytes: int = Field(
        64 * 1024 * 1024,
        ge=1024,
        description="Bytes of one body, as sent and decompressed; more are refused with 413. All "
        "bodies over 256 KiB that are in work may have twice as many together, all from 16 KiB to "
        "256 KiB as many; more are refused with 429.",
    )
    body_seconds: float = Field(
        120.0,
        gt=0,
        description="Time that a client has to send one body; a slower one is let go, as is one "
        "that sends nothing for 30 s.",
    )
    max_cells: int = Field(
        10_000, ge=1, description="Cells that the store holds; new ones beyond it are refused."
    )
    history_steps: int = Field(
        1_440, ge=1, description="Samples that the store keeps of each cell and KPI."
    )
    snap_tolerance_ratio: float = Field(
        0.5,
        gt=0,
        le=0.5,
        description="How far from the grid a period may end and still be taken, as a share of the "
        "period.",
    )
    keep_suspect: bool = Field(
        False, description="Use values that the network itself marks as suspect."
    )
    journal_path: Path | None = Field(
        None,
        description="SQLite journal behind the store; unset: what is stored ends with the process.",
    )
    ingest_directory: Path | None = Field(
        None, description="Directory to watch for PM files and tables; unset: none."
    )
    ingest_poll_seconds: float = Field(
        2.0, gt=0, description="Time between two looks into that directory."
    )
    ingest_kpis: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="KPIs to take from files, by name or alias, separated by commas; unset: all.",
    )
    ingest_unknown: bool = Field(
        True,
        description="Take KPIs from files that the catalogue does not hold; false where a network "
        "reports hundreds of counters for a cell.",
    )
    accuracy_bytes: int = Field(
        64 * 1024 * 1024,
        ge=0,
        description="Memory of forecasts that are kept until their observations arrive; the oldest "
        "make room. 0 keeps none.",
    )
    accuracy_days: int = Field(
        7,
        ge=1,
        le=366,
        description="Recent past of realised accuracy, in days of the data's own time.",
    )
    drain_seconds: float = Field(
        20.0, ge=0, description="Time that accepted requests have to be answered after SIGTERM."
    )
    log_level: LogLevel = Field("info", description="Least level of the lines that are logged.")

    @field_validator("port", mode="before")
    @classmethod
    def _ignore_service_link(cls, value: object) -> object:
        # Kubernetes sets RANCAST_PORT=tcp://… in every pod beside a Service called rancast.
        if isinstance(value, str) and value.startswith(("tcp://", "udp://", "sctp://")):
            return 8080
        return value

    @field_validator("catalogue_files", "ingest_kpis", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator(
        "budget_default_ms",
        "budget_most_ms",
        "holiday_country",
        "short_context_steps",
        "model_path",
        "models_directory",
        "default_model",
        "canary_model",
        "journal_path",
        "ingest_directory",
        mode="before",
    )
    @classmethod
    def _blank_is_unset(cls, value: object) -> object:
        # Charts and compose files set a variable to nothing where they mean not to set it.
        return None if value == "" else value

    @field_validator("default_model", "canary_model")
    @classmethod
    def _is_reference(cls, value: str | None) -> str | None:
        if value is not None:
            parse_reference(value)
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if not is_time_zone(value):
            raise ValueError("expected an IANA name such as Europe/Madrid")
        return value

    @field_validator("holiday_country")
    @classmethod
    def _known_country(cls, value: str | None) -> str | None:
        try:
            check_country(value)
        except ModelError as error:
            raise ValueError(str(error)) from error
        return value

    @model_validator(mode="after")
    def _bounds_agree(self) -> Settings:
        self.budget_bounds()
        if self.canary_share > 0 and self.canary_model is None:
            raise ValueError(
                f"RANCAST_CANARY_SHARE={self.canary_share:g} has no model: set "
                "RANCAST_CANARY_MODEL to NAME or NAME@VERSION as well"
            )
        return self

    def routing(self) -> Routing:
        """Who answers requests that name no model, as long as nobody changes it."""
        return Routing(
            default=None if self.default_model is None else parse_reference(self.default_model),
            canary=None if self.canary_model is None else parse_reference(self.canary_model),
            canary_share=self.canary_share,
        )

    def budget_bounds(self) -> BudgetBounds:
        """Default budget and hard bounds: the profile's, with what the operator changed."""
        profile = PROFILE_BOUNDS[self.profile]
        default_ms = self.budget_default_ms or profile.default_ms
        return BudgetBounds(
            default_ms=default_ms,
            least_ms=min(profile.least_ms, default_ms),
            most_ms=self.budget_most_ms or max(profile.most_ms, default_ms),
        )

    def budget_policy(self) -> BudgetPolicy:
        """What turns a request's stated budget into its deadline."""
        return BudgetPolicy(self.profile, self.budget_bounds())


def load_settings(**overrides: Any) -> Settings:
    """Settings from the environment; `overrides` (command-line options, by field name) win.

    Raises:
        SettingsError: A variable is unknown or a value cannot be used; the message names every one.
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    known |= {CACHE_VARIABLE, ISA_VARIABLE, FLAGS_VARIABLE, *_OF_JOBS}
    complaints = [
        _unknown(name, known)
        for name in sorted(os.environ)
        # In small letters too: one setting spelt in two ways would be whichever came last.
        if name.upper().startswith(PREFIX)
        and name not in known
        and not _SERVICE_LINK.fullmatch(name)
    ]
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        complaints += [_bad_value(fault, overrides) for fault in error.errors(include_url=False)]
    if complaints:
        raise SettingsError("; ".join(complaints))
    return settings


def _unknown(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.8)
    hint = f"did you mean {close[0]}?" if close else "unset it"
    return f"{name} is no setting; {hint}"


def _bad_value(fault: Any, overrides: Mapping[str, Any]) -> str:
    if not fault["loc"]:
        return str(fault["msg"])
    name = str(fault["loc"][0])
    label = name if name in overrides else PREFIX + name.upper()
    return f"{label}={fault['input']}: {fault['msg']}"
