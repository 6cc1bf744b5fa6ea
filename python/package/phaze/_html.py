"""Answers as static HTML and SVG: notebooks are shown where scripts are stripped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from ._results import Entry, Placement, SearchResult
    from ._run import Launch, RunPlan
    from ._table import Table

_STYLE = "font-variant-numeric:tabular-nums;border-collapse:collapse"

#: Blue and orange that people with any colour vision tell apart.
_MAIN, _OTHER, _FAINT = "#0072B2", "#D55E00", "#999999"


def _row(cells: Iterable[Any], tag: str = "td") -> str:
    shown = (f'<{tag} align="{"right" if isinstance(c, (int, float)) else "left"}">{escape(_said(c))}</{tag}>' for c in cells)
    return f"<tr>{''.join(shown)}</tr>"


def _said(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
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
    width, height, left, bottom = 460, 240, 64, 40
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    low_x, high_x, low_y, high_y = min(xs), max(xs), min(ys), max(ys)

    def at(value: float, low: float, high: float, size: float) -> float:
        return size / 2 if high == low else (value - low) / (high - low) * size

    marks: List[str] = []
    for place, (x, y, said) in enumerate(points):
        cx = left + at(x, low_x, high_x, width - left - 20)
        cy = height - bottom - at(y, low_y, high_y, height - bottom - 20)
        colour, radius = (_OTHER, 6) if place == winner else (_MAIN, 3.5)
        marks.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{radius}" fill="{colour}"><title>{escape(said)}</title></circle>')
    axis = (
        f'<line x1="{left}" y1="{height - bottom + 10}" x2="{width - 10}" y2="{height - bottom + 10}" stroke="{_FAINT}"/>'
        f'<line x1="{left - 10}" y1="10" x2="{left - 10}" y2="{height - bottom}" stroke="{_FAINT}"/>'
        f'<text x="{left}" y="{height - 14}" font-size="11">{_said(low_x)}</text>'
        f'<text x="{width - 10}" y="{height - 14}" font-size="11" text-anchor="end">{_said(high_x)}</text>'
        f'<text x="{(left + width) / 2}" y="{height - 2}" font-size="11" text-anchor="middle">{escape(labels[0])}</text>'
        f'<text x="{left - 14}" y="{height - bottom}" font-size="11" text-anchor="end">{_said(low_y)}</text>'
        f'<text x="{left - 14}" y="20" font-size="11" text-anchor="end">{_said(high_y)}</text>'
        f'<text x="4" y="10" font-size="11">{escape(labels[1])}</text>'
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">{axis}{"".join(marks)}</svg>'


def bars(parts: Sequence[Tuple[str, float]], unit: str) -> str:
    """Parts of a whole, one bar each."""
    whole = sum(value for _, value in parts) or 1.0
    shown = [(name, value) for name, value in parts if value > 0]
    height = 20 * len(shown) + 4
    lines = "".join(
        f'<text x="168" y="{20 * i + 15}" font-size="11" text-anchor="end">{escape(name)}</text>'
        f'<rect x="174" y="{20 * i + 4}" width="{max(1.0, 200 * value / whole):.1f}" height="14" fill="{_MAIN}"/>'
        f'<text x="{180 + 200 * value / whole:.1f}" y="{20 * i + 15}" font-size="11">{_said(float(value))} {escape(unit)}</text>'
        for i, (name, value) in enumerate(shown)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="460" height="{height}" role="img">{lines}</svg>'


def search_html(result: "SearchResult") -> str:
    """Headline, chip, what is nearly as good, and the front of a search."""
    names = ", ".join(model.name for model in result.models)
    if result.winner is None:
        return f"<div><b>{escape(names)}</b>: nothing fits: {escape(str(result.infeasible_reason))}</div>"
    winner = result.winner
    head = (
        f"<div><b>{escape(names)}</b>: {escape(winner.strategy)}</div>"
        f"<div>{escape(result.proof.statement)}</div>"
    )
    design = winner.design.to_dict()
    if result.over_chips:
        return f"<div>{head}{_chip(result, winner)}</div>"
    chip = rows(("chip", ""), [(key, value) for key, value in design.items() if isinstance(value, (int, float, str))])
    heading = ("", "tensor cores", "array", "vector cores", "value")
    near = [
        ("" if e.design.index is None else str(e.design.index), e.design.tensor_cores, f"{e.design.width}x{e.design.depth}", e.design.vector_cores, e.value)
        for e in result.top[:10]
    ]
    points = [
        (e.design.area_um2 / 1e6, e.results[0].throughput_sequences_per_s, f"design {e.design.index}")
        for e in result.pareto
    ]
    best = next((i for i, e in enumerate(result.pareto) if e.design == winner.design), None)
    front = scatter(points, best, ("area in mm²", "sequences/s"))
    return f"<div>{head}{chip}<details open><summary>best designs</summary>{rows(heading, near)}</details>{front}</div>"


def _chip(result: "SearchResult", winner: "Entry") -> str:
    """A searched chip: its knobs, where mm², watts and dollars go, what binds it, and those nearly as good."""
    facts = winner.to_dict()["chip"]
    knobs = rows(("chip", "", "more of it"), [(bind.knob, facts["knobs"][bind.knob], _bound(bind)) for bind in result.binds])
    figures = [("die", "mm²", "die"), ("power", "W", "power"), ("cost to make", "$", "cost")]
    parts = "".join(
        f"<details><summary>{name}</summary>{bars([(part['what'], part['amount']) for part in facts[key]], unit)}</details>"
        for name, unit, key in figures
    )
    near = [("winner", winner), *((one.least, one.entry) for one in result.near_winners)]
    lines = [(name, entry.design.die_mm2, entry.design.tdp_w, entry.design.cost_usd, entry.value, entry.strategy) for name, entry in near]
    heading = ("", "mm²", "W", "$", "value", "strategy")
    points = [(entry.design.die_mm2, entry.results[0].throughput_sequences_per_s, name) for name, entry in near]
    points += [
        (entry.design.die_mm2, entry.results[0].throughput_sequences_per_s, f"place {place}")
        for place, entry in enumerate(result.top[1:], 2)
    ]
    front = scatter(points, 0, ("die in mm²", "sequences/s"))
    return f"{knobs}{parts}<details open><summary>nearly as good</summary>{rows(heading, lines)}</details>{front}"


def _bound(bind: Any) -> str:
    if bind.by == "nothing":
        return "fits, and is not worth it"
    return "the list ends" if bind.by == "space" else f"{_said(bind.next)} is refused by {bind.by}"


#: What tells a part of a batch once more, in parts of its own.
_PARTS_OF_PARTS = ("exchanges_by_axis", "fill_and_drain", "imbalance")


def placement_html(placement: "Placement") -> str:
    """Headline, where the time goes, and the ranks of a plan."""
    if not placement.feasible:
        return f"<div><b>{escape(placement.name)}</b>: nothing fits: {escape(str(placement.reason))}</div>"
    facts = placement.to_dict()
    head = f"<div><b>{escape(placement.name)}</b>: {escape(placement.strategy)}</div>"
    unit = "s"
    parts = [
        (key.replace("_", " "), value["exposed"] if isinstance(value, dict) else value)
        for key, value in facts["breakdown"].items()
        if key not in _PARTS_OF_PARTS
    ]
    memory = [(i, rank["memory"] / 2**30, facts["memory_limit"] / 2**30) for i, rank in enumerate(facts["ranks"])]
    ranks = rows(("rank", "memory, GiB", "limit, GiB"), memory[:16])
    return f"<div>{head}<div>{_said(placement.time_per_batch)} s for a batch</div>{bars(parts, unit)}{ranks}</div>"


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
    return f"<div>{head}{rows(('run', ''), lines)}{where}{curve}<details><summary>beside it</summary>{table}</details></div>"


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
    return f"<div>{len(table):,} designs, {len(table.columns)} columns{body}</div>"


def facts_html(title: str, pairs: Iterable[Tuple[str, Any]]) -> str:
    """Names and values."""
    plain = [(key, value) for key, value in pairs if not isinstance(value, (dict, list))]
    return f"<div><b>{escape(title)}</b>{rows(('', ''), plain)}</div>"
