"""RFC 3339 stamps and time zones at the edge; milliseconds since 1970 inside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

EARLIEST_MS = 0
LATEST_MS = (datetime(2200, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970-01-01T00:00Z of an aware date."""
    return (moment - _EPOCH) // _MILLISECOND


@lru_cache(maxsize=4096)  # the cells of a request mostly have their stamps in common
def to_rfc3339(moment_ms: int) -> str:
    """The stamp in UTC with `Z`; a fraction appears only where there is one."""
    moment = _EPOCH + moment_ms * _MILLISECOND
    digits = "seconds" if moment_ms % 1000 == 0 else "milliseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def age_seconds(moment_ms: int, now_ms: int) -> float:
    """Seconds since a moment; 0 where it lies ahead of the wall clock, which may step back."""
    return max(0, now_ms - moment_ms) / 1000


@lru_cache(maxsize=1024)
def is_time_zone(name: str) -> bool:
    """Whether `name` is an IANA time zone of this machine's database."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
