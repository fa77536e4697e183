"""Time stamps, durations and epoch numbers as PM sources really write them, to UTC milliseconds.

Sources leave the colon out of an offset, put seconds into it, leave the offset out altogether,
write 24:00 for midnight, and put milliseconds where microseconds are due. Every function here
returns plain integers and raises `ValueError` with what was expected; the readers add the file's
name.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAY_MS = 86_400_000
LONGEST_PERIOD_MS = 366 * DAY_MS
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_EARLIEST_EPOCH_MS = 631_152_000_000
_LATEST_EPOCH_MS = 4_102_444_800_000
_UNITS_PER_MS = (0.001, 1.0, 1_000.0, 1_000_000.0)

_STAMP = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,12}))?)?"
    r" ?(?:([Zz])|(?:UTC|GMT)?([+-])(\d\d)(?::?(\d\d)(?::?(\d\d)(?:\.0+)?)?)?)?",
    re.ASCII,
)
_DURATION = re.compile(
    r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d+))?S)?)?", re.ASCII
)
_FILE_NAME = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{1,2}(\d{8})\.(\d{4})([+_-]\d{4})?-(?:(\d{8})\.)?(\d{4})([+_-]\d{4})?(?!\d)",
    re.ASCII,
)


def parse_zone(name: str) -> ZoneInfo:
    """The IANA zone of that name.

    Raises:
        ValueError: There is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"expected an IANA time zone such as 'Europe/Madrid', got {name!r}"
        ) from error


def parse_time(text: str, zone: ZoneInfo) -> int:
    """Milliseconds since 1970-01-01T00:00Z of a time stamp.

    Takes ISO 8601 with the liberties that PM files take: `+0100`, `+01`, `+01:00`, `-05:00:00`,
    `Z`, a space for the T, 24:00 as the end of the day, a leap second. Without an offset the stamp
    is in `zone`; of an hour that a clock change repeats the first one is meant, an hour that it
    skips is moved on by the change. Digits below a millisecond are cut off.

    Args:
        text: The stamp; a bare number of ten digits or more is an epoch number, see `parse_epoch`.
        zone: Zone of stamps without an offset.

    Raises:
        ValueError: It is no time stamp, or no day of the calendar.
    """
    wall_ms, is_utc = parse_wall(text)
    return wall_ms if is_utc else wall_ms - 1000 * offset_seconds(wall_ms // 1000, zone)


def parse_wall(text: str) -> tuple[int, bool]:
    """A time stamp as milliseconds since 1970-01-01T00:00, and whether that is UTC.

    Where it is not, the stamp had no offset and the number is local wall time.

    Raises:
        ValueError: As `parse_time`.
    """
    stamp = text.strip()
    match = _STAMP.fullmatch(stamp)
    if match is None:
        if stamp.isascii() and stamp.isdecimal() and 9 <= len(stamp) <= 19:
            return parse_epoch(int(stamp)), True
        raise ValueError(f"expected a time such as 2026-11-29T15:00:00+01:00, got {_short(stamp)}")
    year, month, day, hour, minute = (int(part) for part in match.group(1, 2, 3, 4, 5))
    second = int(match[6] or 0)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)):
        raise ValueError(f"expected an hour of the day, got {_short(stamp)}")
    try:
        days = date(year, month, day).toordinal() - _EPOCH_ORDINAL
    except ValueError as error:
        raise ValueError(f"expected a day of the calendar, got {_short(stamp)}") from error
    offset = int(match[10] or 0) * 3600 + int(match[11] or 0) * 60 + int(match[12] or 0)
    if offset > 18 * 3600:
        raise ValueError(f"expected an offset of at most 18 hours, got {_short(stamp)}")
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    seconds += offset if match[9] == "-" else -offset
    millisecond = int((match[7] or "")[:3].ljust(3, "0"))
    return seconds * 1000 + millisecond, bool(match[8] or match[9])


def offset_seconds(local_seconds: int, zone: ZoneInfo, fold: int = 0) -> int:
    """Offset of `zone` from UTC at a local wall time given as seconds since 1970-01-01T00:00 local.

    Args:
        local_seconds: The wall time.
        zone: The zone.
        fold: 1 for the second of the two passes where a clock change repeats the time.
    """
    try:
        wall = datetime(1970, 1, 1) + timedelta(seconds=local_seconds)
        offset = wall.replace(tzinfo=zone, fold=fold).utcoffset()
    except (OverflowError, ValueError) as error:
        raise ValueError(
            f"expected a time from year 1 to 9999, got {local_seconds} s from 1970"
        ) from error
    return round(offset.total_seconds()) if offset is not None else 0


def parse_epoch(number: float) -> int:
    """Milliseconds since 1970-01-01T00:00Z of an epoch number of unknown unit.

    The unit (s, ms, us or ns) is the one that puts the time between 1990 and 2100; the ranges do
    not overlap.

    Raises:
        ValueError: No unit does, so that the sender's clock or the field is wrong.
    """
    units = epoch_units_per_ms(number)
    return int(number // int(units)) if units >= 1 else round(number * 1000)


def epoch_units_per_ms(number: float) -> float:
    """How many units of an epoch number make a millisecond: 0.001, 1, 1 000 or 1 000 000.

    Raises:
        ValueError: As `parse_epoch`.
    """
    for units in _UNITS_PER_MS:
        if _EARLIEST_EPOCH_MS * units <= number < _LATEST_EPOCH_MS * units:
            return units
    raise ValueError(
        f"expected seconds, milli-, micro- or nanoseconds since 1970 of a time between 1990 and "
        f"2100, got {_short(str(number))}"
    )


def parse_duration(text: str) -> int:
    """Milliseconds of an ISO 8601 duration such as PT900S, PT15M, PT1H or P1D.

    A bare number is seconds, as some vendors write it.

    Raises:
        ValueError: It is no duration of weeks to seconds, is not positive, or exceeds a year.
    """
    duration = text.strip()
    match = _DURATION.fullmatch(f"PT{duration}S" if duration[:1].isdecimal() else duration)
    if match is None or len(duration) > 64:
        raise ValueError(f"expected a duration such as PT900S, got {_short(duration)}")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.group(1, 2, 3, 4, 5))
    millisecond = int((match[6] or "")[:3].ljust(3, "0"))
    total = (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds
    total = total * 1000 + millisecond
    if not 0 < total <= LONGEST_PERIOD_MS:
        raise ValueError(f"expected more than zero and at most 366 days, got {_short(duration)}")
    return total


def file_name_period(name: str, zone: ZoneInfo) -> tuple[int, int] | None:
    """Begin and end that a TS 32.432 file name states, or None where it states none.

    Vendors deviate from the pattern, so this is a last resort only. An underscore may stand for the
    sign of an offset, where the real one is illegal in names; it counts as plus.
    """
    match = _FILE_NAME.search(name)
    if match is None:
        return None
    day, begin, begin_offset, end_day, end, end_offset = match.groups()
    try:
        start_ms = parse_time(f"{day}T{begin}{_signed(begin_offset)}", zone)
        end_ms = parse_time(f"{end_day or day}T{end}{_signed(end_offset or begin_offset)}", zone)
    except ValueError:
        return None
    if end_ms <= start_ms and end_day is None:
        end_ms += DAY_MS
    return (start_ms, end_ms) if end_ms > start_ms else None


def to_text(time_ms: int) -> str:
    """ISO 8601 in UTC of a time, for messages."""
    stamp = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    return stamp.isoformat(timespec="seconds").replace("+00:00", "Z")


def _signed(offset: str | None) -> str:
    return (offset or "").replace("_", "+")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
