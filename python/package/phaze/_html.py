"""Answers as static HTML and SVG: notebooks are shown where scripts are stripped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from ._results import Placement, Validation
    from ._run import Launch, RunPlan
    from ._table import Table

_STYLE = "font-variant-numeric:tabular-nums;border-collapse:collapse"

#: Blue and orange that people with any colour vision tell apart.
_MAIN, _OTHER, _FAINT = "#0072B2", "#D55E00", "#999999"


def _row(cells: Iterable[Any], tag: str = "td") -> str:
    shown = (f'<{tag} align="{"right" if isinstance(c, (int, float)) and not isinstance(c, bool) else "left"}">{escape(said(c))}</{tag}>' for c in cells)
    return f"<tr>{''.join(shown)}</tr>"


def said(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def rows(heading: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A plain table."""
    return f'<table style="{_STYLE}" cellpadding="3"><thead>{_row(heading, "th")}</thead><tbody>{"".join(map(_row, lines))}</tbody></table>'


def scatter(points: Sequence[Tuple[float, float, str]], winner: Optional[int], labels: Tuple[str, str]) -> str:
    """Points in a plane, the winner in another colour; each tells itself when it is pointed at."""
    if not points:
        return ""
    width, height, left, bottom, top = 460, 250, 70, 40, 34
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    low_x, high_x, low_y, high_y = min(xs), max(xs), min(ys), max(ys)

    def at(value: float, low: float, high: float, size: float) -> float:
        return size / 2 if high == low else (value - low) / (high - low) * size

    marks: List[str] = []
    # The winner last, so that nothing lies over it.
    for place, (x, y, title) in sorted(enumerate(points), key=lambda found: found[0] == winner):
        cx = left + at(x, low_x, high_x, width - left - 20)
        cy = height - bottom - at(y, low_y, high_y, height - bottom - top)
        colour, radius = (_OTHER, 6) if place == winner else (_MAIN, 3.5)
        marks.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{radius}" fill="{colour}"><title>{escape(title)}</title></circle>')
    one_x, one_y = low_x == high_x, low_y == high_y
    middle_x, middle_y = (left + width - 20) / 2, (height - bottom + top) / 2
    x_ends = [(middle_x, low_x)] if one_x else [(left, low_x), (width - 20, high_x)]
    y_ends = [(middle_y, low_y)] if one_y else [(height - bottom, low_y), (top, high_y)]
    axis = (
        f'<line x1="{left - 10}" y1="{height - bottom + 10}" x2="{width - 10}" y2="{height - bottom + 10}" stroke="{_FAINT}"/>'
        f'<line x1="{left - 10}" y1="{top - 8}" x2="{left - 10}" y2="{height - bottom + 10}" stroke="{_FAINT}"/>'
        + "".join(f'<text x="{x:.0f}" y="{height - 16}" font-size="11" text-anchor="middle">{said(value)}</text>' for x, value in x_ends)
        + "".join(f'<text x="{left - 14}" y="{y + 4:.0f}" font-size="11" text-anchor="end">{said(value)}</text>' for y, value in y_ends)
        + f'<text x="{middle_x:.0f}" y="{height - 3}" font-size="11" text-anchor="middle">{escape(labels[0])}</text>'
        f'<text x="4" y="12" font-size="11">{escape(labels[1])}</text>'
    )
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" font-family="sans-serif" fill="currentColor">'
    return f'{svg}{axis}{"".join(marks)}</svg>'


def bars(parts: Sequence[Tuple[str, float]], unit: str) -> str:
    """Parts of a whole, one bar each."""
    whole = sum(value for _, value in parts) or 1.0
    shown = [(name, value) for name, value in parts if value > 0]
    height = 20 * len(shown) + 4
    lines = "".join(
        f'<text x="168" y="{20 * i + 15}" font-size="11" text-anchor="end">{escape(name)}</text>'
        f'<rect x="174" y="{20 * i + 4}" width="{max(1.0, 200 * value / whole):.1f}" height="14" fill="{_MAIN}"/>'
        f'<text x="{180 + 200 * value / whole:.1f}" y="{20 * i + 15}" font-size="11">{said(float(value))} {escape(unit)}</text>'
        for i, (name, value) in enumerate(shown)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="460" height="{height}" role="img" font-family="sans-serif" fill="currentColor">{lines}</svg>'


#: What tells a part of a batch once more, in parts of its own.
_PARTS_OF_PARTS = ("exchanges_by_axis", "fill_and_drain", "imbalance")


def placement_html(placement: "Placement") -> str:
    """Headline, where the time goes, and the ranks of a plan."""
    if not placement.feasible:
        return f"<div><b>{escape(placement.name)}</b>: nothing fits: {escape(str(placement.reason))}</div>"
    facts = placement.to_dict()
    head = f"<div><b>{escape(placement.name)}</b>: {escape(placement.strategy)}</div>"
    time, size = placement.units
    scale, size = (2**30, "GiB") if size == "byte" else (1, size)
    parts = [
        (key.replace("_", " "), value["exposed"] if isinstance(value, dict) else value)
        for key, value in facts["breakdown"].items()
        if key not in _PARTS_OF_PARTS
    ]
    memory = [(i, rank["memory"] / scale, facts["memory_limit"] / scale) for i, rank in enumerate(facts["ranks"])]
    ranks = rows(("rank", f"memory, {size}", f"limit, {size}"), memory[:16])
    more = f"<div>and {len(memory) - 16} more ranks</div>" if len(memory) > 16 else ""
    tokens = f", {said(facts['tokens_per_second'])} tokens/s" if "tokens_per_second" in facts else ""
    batch = f"<div>{said(placement.time_per_batch)} {escape(time)} for a batch{tokens}</div>"
    return f"<div>{head}{batch}<div>{bars(parts, time)}</div>{ranks}{more}</div>"


def run_html(run: "RunPlan") -> str:
    """Headline, figures of the run, where the time goes, what is beside it, and the curve where there is one."""
    if not run.feasible:
        tried = [(way.title, way.command) for way in run.ways_out]
        return f"<div>nothing fits: {escape(str(run.reason))}{rows(('what does', 'command'), tried)}</div>"
    facts = run.to_dict()
    figures = facts["run"]
    head = f"<div><b>{escape(run.plan.name)}</b>: {escape(run.strategy)}</div>"
    lines = [
        ("days", run.days),
        ("device-hours", run.device_hours),
        ("dollars", run.dollars),
        ("MWh", None if figures["kwh"] is None else figures["kwh"] / 1e3),
        ("t CO2e", None if figures["kg_co2e"] is None else figures["kg_co2e"] / 1e3),
    ]
    where = bars([(name.replace("_", " "), seconds) for name, seconds in facts["where_s"].items()], "s")
    beside = [
        (row["title"], found["strategy"], found["run"]["seconds"] / 86_400, found["run"]["dollars"])
        for row in [*facts["next"], *facts["what_if"]]
        if (found := row["found"]) is not None
    ]
    points = [
        (float(point["devices"]), found["run"]["seconds"] / 86_400, found["strategy"])
        for point in (facts.get("curve") or {}).get("points", [])
        if (found := point["found"]) is not None
    ]
    mark = next((i for i, point in enumerate(points) if point[0] == run.plan.devices), None)
    curve = scatter(points, mark, ("devices", "days"))
    table = rows(("beside it", "strategy", "days", "dollars"), beside)
    return f"<div>{head}{rows(('run', ''), lines)}<div>{where}</div><div>{curve}</div><details><summary>beside it</summary>{table}</details></div>"


def launch_html(launch: "Launch") -> str:
    """The files that start a run, each to be opened."""
    files = "".join(
        f"<details open><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>" for name, text in launch.items()
    )
    return f"<div><b>{escape(launch.framework)}</b> {escape(launch.version)}{files}</div>"


def table_html(table: "Table") -> str:
    """The first rows of a table."""
    names = table.columns[:12]
    columns = [table[name][:10] for name in names]
    body = rows(names, zip(*columns))
    return f"<div>{len(table):,} rows, {len(table.columns)} columns{body}</div>"


def facts_html(title: str, pairs: Iterable[Tuple[str, Any]]) -> str:
    """Names and values."""
    plain = [(key.replace("_", " "), value) for key, value in pairs if not isinstance(value, (dict, list))]
    return f"<div><b>{escape(title)}</b>{rows(('', ''), plain)}</div>"


def text_html(text: str) -> str:
    """What is told in lines, as it is."""
    return f"<div><pre>{escape(text)}</pre></div>"


def validation_html(validation: "Validation") -> str:
    """How far predictions are off, and run by run."""
    lines = [
        (run.model, run.hardware, run.devices, run.strategy, run.measured_s, run.predicted_s, _off(run.predicted_s, run.measured_s))
        for run in validation.runs
    ]
    heading = ("model", "hardware", "devices", "strategy", "measured, s", "predicted, s", "off by")
    return f"<div><b>{escape(repr(validation)[11:-1])}</b>{rows(heading, lines)}</div>"


def _off(predicted: Optional[float], measured: Optional[float]) -> Optional[str]:
    return None if not predicted or not measured else f"{predicted / measured - 1:+.1%}"
