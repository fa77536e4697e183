"""Names of PM files as TS 32.432 builds them.

`<type><date>.<begin±hhmm>-[<end date>.]<end±hhmm>[_-<job>]_<unique id>[_-_<repeat count>]`: type A
is one element and one period, type C one element and several periods; only type C states the date
of the end. Times are local with their offset from UTC; the colon is not used, since file systems
refuse it.
"""

from __future__ import annotations

from dataclasses import dataclass

from training.simulate.report import Report

_MINUTE = "%H%M%z"


@dataclass(frozen=True, slots=True)
class NameStyle:
    """How one vendor fills the parts of the name.

    Attributes:
        suffix: File suffix with its point.
        unique_id: Template of the unique id; `{gnb}` stands for the element.
        job_id: Measurement job, empty where the name does not state it.
        end_date_always: The end date is also in the name of a type A file, as one vendor writes it.
    """

    suffix: str = ".xml"
    unique_id: str = "{gnb}"
    job_id: str = ""
    end_date_always: bool = False


def file_name(report: Report, style: NameStyle) -> str:
    """The name of a report's file, without a suffix for compression."""
    kind = "A" if report.count == 1 else "C"
    begin, end = report.begin(), report.end()
    end_date = f"{end:%Y%m%d}." if kind == "C" or style.end_date_always else ""
    job = f"_-{style.job_id}" if style.job_id else ""
    unique_id = style.unique_id.format(gnb=report.gnb.name)
    repeat = f"_-_{report.repeat}" if report.repeat > 1 else ""
    return (
        f"{kind}{begin:%Y%m%d}.{begin.strftime(_MINUTE)}-{end_date}{end.strftime(_MINUTE)}"
        f"{job}_{unique_id}{repeat}{style.suffix}"
    )
