"""The backtest as a page: what a manager asks first, then what an engineer needs.

One self-contained HTML file: answer in words, a line a KPI, then for each KPI scores, charts and
the cells that are hard to forecast; examples; who was compared; what the words mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from kpi.catalogue import Catalogue
from model.accuracy import shown
from model.fan_chart import shown_unit
from training.backtest import BacktestResult, Score, WorstCell
from training.report.charts import (
    coverage_by_lead,
    embedded,
    error_by_lead,
    errors_by_hour,
    examples,
    library,
)
from training.report.words import (
    Verdict,
    band_sentence,
    counted,
    gain_words,
    headline,
    steps_word,
    verdicts,
)

SHOWN_KPIS = 30
"""A browser draws three charts for each of them."""
SHOWN_WORST = 10
SHOWN_SKIPPED = 20

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2430; max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-bottom: 2px solid #e3e6ea; }
h3 { margin: 1.5rem 0 .3rem; font-size: 1.05rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .95rem; }
th, td { text-align: right; padding: .3rem .7rem; border-bottom: 1px solid #e3e6ea;
  font-variant-numeric: tabular-nums; }
th { color: #5a6675; font-weight: 600; }
td { white-space: nowrap; }
th.text, td.text { text-align: left; white-space: normal; overflow-wrap: anywhere;
  min-width: 8rem; }
small { color: #5a6675; font-weight: 400; display: block; }
tr.own td { background: #eef4fc; font-weight: 600; }
.lead { font-size: 1.2rem; } .note { color: #5a6675; font-size: .95rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(30rem, 1fr)); gap: 1rem; }
.charts > div { min-width: 0; }
@media (max-width: 34rem) { .charts { grid-template-columns: 1fr; } }
details { margin: .5rem 0 1rem; } summary { cursor: pointer; color: #1f5fbf; }
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}</style>{library}</head><body>
<h1>{title}</h1>
{body}
</body></html>
"""

GLOSSARY = (
    (
        "WAPE",
        "mean absolute error of the median forecast, relative to the mean value. 12 % "
        "means: off by an eighth of the usual value.",
    ),
    (
        "WQL",
        "weighted quantile loss: the error of the whole band, median and width together, "
        "relative to the mean value. The fairest single number; lower is better.",
    ),
    (
        "MASE",
        "error of the median, relative to repeating the day before within the history. Below "
        "1 is better than that.",
    ),
    (
        "Coverage",
        "share of values that fell between the lowest and the highest quantile. It should equal "
        "the distance of the two.",
    ),
    (
        "Width",
        "mean distance between the lowest and the highest quantile, in the KPI's unit and "
        "relative to the mean value. Of two bands that keep their word the narrower is better.",
    ),
)


def write_report(result: BacktestResult, path: Path, title: str, catalogue: Catalogue) -> None:
    """Write the page to `path`; the catalogue knows the units."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = PAGE.format(
        title=escape(title),
        style=STYLE,
        library=library(),
        body="\n".join(_body(result, catalogue)),
    )
    path.write_text(text, encoding="utf-8")


def _body(result: BacktestResult, catalogue: Catalogue) -> Iterable[str]:
    found = verdicts(result)
    steps = steps_word(result)
    yield f'<p class="lead">{escape(headline(result))}</p>'
    if len(found) == 1:
        sentence = band_sentence(found[0], result.config.nominal_coverage, steps)
        yield f'<p class="lead">{escape(sentence)}</p>'
    yield f'<p class="note">{escape(_what_was_tested(result))}</p>'
    if note := result.notes.get(result.model):
        yield f'<p class="note">{escape(result.model)}: {escape(note)}.</p>'
    if len(found) > 1:
        yield _summary(found, result, steps)
    for verdict in found[:SHOWN_KPIS]:
        yield from _kpi_section(verdict, result, catalogue)
    if len(found) > SHOWN_KPIS:
        yield (
            f'<p class="note">Charts of the first {SHOWN_KPIS} of {len(found):,} KPIs; the table '
            "above has all of them. --kpi takes those that you want to see, --csv writes the "
            "scores of all.</p>"
        )
    yield f"<h2>Examples of {escape(result.model)}</h2>"
    yield embedded(examples(result, catalogue))
    yield "<h2>Time taken and series given up</h2>"
    yield _forecasters(result)
    yield from _skipped(result)
    yield "<h2>What the words mean</h2><dl>"
    yield "".join(f"<dt><b>{word}</b></dt><dd>{meaning}</dd>" for word, meaning in GLOSSARY)
    yield "</dl>"


def _what_was_tested(result: BacktestResult) -> str:
    config = result.config
    steps = ", ".join(f"{seconds:g} s" for seconds in result.step_seconds)
    text = (
        f"{counted(result.cells, 'cell')}, {counted(result.origins, 'origin')} in the last "
        f"{config.test_ratio:.0%} of each history, {config.horizon} steps of {steps} each. Every "
        "forecast was made from the samples before its origin."
    )
    if len(result.step_seconds) > 1:
        text += " The cells report at different steps, and the scores mix them."
    return text


def _summary(found: Sequence[Verdict], result: BacktestResult, steps: str) -> str:
    rows = [
        [
            _text(verdict.kpi),
            _number(shown(verdict.own.accuracy.wape, ".0%")),
            _text(gain_words(verdict)),
            _text(band_sentence(verdict, result.config.nominal_coverage, steps)),
        ]
        for verdict in found
    ]
    head = [_head("KPI"), "<th>off by</th>", _head("error"), _head("does the band keep its word?")]
    return _table(head, rows)


def _kpi_section(verdict: Verdict, result: BacktestResult, catalogue: Catalogue) -> Iterable[str]:
    kpi, unit = verdict.kpi, catalogue.resolve(verdict.kpi).unit
    yield f"<h2>{escape(kpi)}</h2>"
    yield _by_model([line for line in result.overall() if line.kpi == kpi], unit, result)
    figures = [error_by_lead(result, kpi), coverage_by_lead(result, kpi)]
    if (result.model, kpi) in result.hours:
        figures.append(errors_by_hour(result.hours[result.model, kpi], unit))
    yield embedded(figures)
    worst = [cell for cell in result.worst if cell.kpi == kpi][:SHOWN_WORST]
    if len(worst) > 1:
        yield "<h3>Where most of the error is</h3>"
        yield _worst(worst)
    yield f"<details><summary>Scores of {escape(result.model)} by steps ahead</summary>"
    by_lead = result.by_lead(result.model, kpi)
    yield _scores("steps ahead", [_text(line.leads) for line in by_lead], by_lead, unit)
    yield "</details>"


def _by_model(lines: Sequence[Score], unit: str, result: BacktestResult) -> str:
    """One line a forecaster, that under test marked; what has to be known of it below its name."""
    names = []
    for line in lines:
        note = result.notes.get(line.model)
        words = f"<small>{escape(note)}</small>" if note else ""
        names.append(f'<td class="text">{escape(line.model)}{words}</td>')
    marked = [place for place, line in enumerate(lines) if line.model == result.model]
    return _scores("forecaster", names, lines, unit, marked)


def _scores(
    first: str,
    names: Sequence[str],
    lines: Sequence[Score],
    unit: str,
    marked: Sequence[int] = (),
) -> str:
    """Scores, one line each, after a column of cells headed `first`."""
    titles = ("WQL", "MASE", "WAPE", "coverage", "width", "relative width", "values")
    rows = []
    for name, line in zip(names, lines, strict=True):
        scores = line.accuracy
        rows.append(
            [
                name,
                _number(shown(scores.wql, ".3f")),
                _number(shown(scores.mase, ".3f")),
                _number(shown(scores.wape, ".1%")),
                _number(shown(scores.coverage, ".1%")),
                _number(f"{shown(scores.mean_width, ',.4g')} {shown_unit(unit)}".strip()),
                _number(shown(scores.relative_width, ".1%")),
                _number(f"{scores.targets:,}"),
            ]
        )
    return _table([_head(first), *(f"<th>{title}</th>" for title in titles)], rows, marked)


def _worst(cells: Sequence[WorstCell]) -> str:
    head = [_head("cell")]
    head += [f"<th>{name}</th>" for name in ("share of all error", "WQL", "WAPE", "coverage")]
    head += [_head("best there"), "<th>its WQL</th>"]
    rows = [
        [
            _text(cell.cell),
            _number(shown(cell.error_ratio, ".1%")),
            _number(shown(cell.accuracy.wql, ".3f")),
            _number(shown(cell.accuracy.wape, ".1%")),
            _number(shown(cell.accuracy.coverage, ".1%")),
            _text(cell.best_model),
            _number(shown(cell.best_wql, ".3f")),
        ]
        for cell in cells
    ]
    return _table(head, rows)


def _forecasters(result: BacktestResult) -> str:
    names = ("gave up", "learning", "a forecast of one series")
    head = [_head("forecaster"), *(f"<th>{name}</th>" for name in names)]
    rows = []
    for model in result.models:
        failed = result.fallbacks.get(model, 0)
        fit = result.fit_seconds.get(model)
        per_series = result.predict_seconds.get(model, 0.0) / max(result.series, 1)
        rows.append(
            [
                _text(model),
                _number(f"{failed:,} of {result.series:,}" if failed else "-"),
                _number("-" if fit is None else f"{fit:,.0f} s"),
                _number(f"{per_series * 1000:,.1f} ms"),
            ]
        )
    table = _table(head, rows, [0])
    return table + (
        '<p class="note">Gave up: series that a forecaster could not forecast; its score there is '
        "that of the last value. Times are those of one core and of this run.</p>"
    )


def _skipped(result: BacktestResult) -> Iterable[str]:
    if not result.skipped:
        return
    yield "<h2>What could not be tested</h2><ul>"
    for entry in result.skipped[:SHOWN_SKIPPED]:
        yield f"<li>{escape(entry.cell)}: {escape(entry.reason)}</li>"
    if len(result.skipped) > SHOWN_SKIPPED:
        yield f"<li>and {len(result.skipped) - SHOWN_SKIPPED:,} more cells</li>"
    yield "</ul>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[int] = ()) -> str:
    lines = [
        f"<tr{' class=own' if place in marked else ''}>{''.join(cells)}</tr>"
        for place, cells in enumerate(rows)
    ]
    return f'<div class="wide"><table><tr>{"".join(head)}</tr>{"".join(lines)}</table></div>'


def _head(name: str) -> str:
    return f'<th class="text">{escape(name)}</th>'


def _text(words: str) -> str:
    return f'<td class="text">{escape(words)}</td>'


def _number(digits: str) -> str:
    return f"<td>{escape(digits)}</td>"
