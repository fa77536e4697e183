"""The verdict in words: what stands in a control loop here, what does not, and by how much."""

from __future__ import annotations

from collections.abc import Sequence

from service.plan.numbers import duration
from service.plan.placement import Placement, ProfileFit, Question, RungTime


def verdicts(placement: Placement, question: Question) -> tuple[str, ...]:
    """One a control loop, in the order of the question."""
    return tuple(verdict(each, question.cells, placement) for each in placement.profiles)


def verdict(profile: ProfileFit, cells: int, placement: Placement) -> str:
    """What fits into one control loop.

    Args:
        profile: Which one.
        cells: Cells of the larger request.
        placement: For what one request may hold within the budget.
    """
    head = f"{profile.profile.value}, {duration(profile.budget_ms)}"
    one = _request("one cell", profile.one_cell)
    if all(time.spare_ms < 0 for time in profile.one_cell):
        return f"{head}: does not fit. {_sentence(one)}"
    best = profile.one_cell[0]
    word = "fits" if best.spare_ms >= 0 else f"fits without {best.rung.value}"
    said = [_sentence(one)]
    if cells > 1:
        said.append(_sentence(_request(f"{cells:,} cells", profile.cells)))
        said.append(_context(profile, cells, placement))
    elif best.spare_ms < 0:
        said.append(_context(profile, cells, placement))
    return " ".join([f"{head}: {word}.", *(words for words in said if words)])


def _request(what: str, times: Sequence[RungTime]) -> str:
    """What becomes of a request: the best rung, and the first that is in time where it is not."""
    best = times[0]
    words = f"{what} by {best.rung.value} in {duration(best.answer_ms)}, {_spare(best)}"
    if best.spare_ms >= 0:
        return words
    fitting = next((time for time in times if time.spare_ms >= 0), None)
    if fitting is None:
        least = min(times, key=lambda time: time.answer_ms)
        if least is best:
            return words
        return f"{words}; by {least.rung.value} in {duration(least.answer_ms)}, {_spare(least)}"
    return f"{words}; by {fitting.rung.value} in {duration(fitting.answer_ms)}, {_spare(fitting)}"


def _context(profile: ProfileFit, cells: int, placement: Placement) -> str:
    """Where the longest context does not fit, which one does."""
    most = placement.contexts[-1].context_steps
    pairs = [("one cell fits", profile.longest_context_one)]
    if cells > 1 and profile.longest_context_one is not None:
        pairs.append((f"{cells:,} cells fit", profile.longest_context_cells))
    said = [
        f"{what} with {steps:,} samples of context at most"
        if steps is not None
        else f"{what} with no context that was measured"
        for what, steps in pairs
        if steps != most
    ]
    return _sentence("; ".join(said)) if said else ""


def _spare(time: RungTime) -> str:
    return f"{duration(abs(time.spare_ms))} {'to spare' if time.spare_ms >= 0 else 'too late'}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
