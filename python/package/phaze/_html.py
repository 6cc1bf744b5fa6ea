"""Answers as static HTML and SVG: notebooks are shown where scripts are stripped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from ._results import Placement, SearchResult
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
    """Headline, chip, near-winners and Pareto front of a search."""
    names = ", ".join(model.name for model in result.models)
    if result.winner is None:
        return f"<div><b>{escape(names)}</b>: nothing fits: {escape(str(result.infeasible_reason))}</div>"
    winner = result.winner
    head = (
        f"<div><b>{escape(names)}</b>: {escape(winner.strategy)}</div>"
        f"<div>{escape(result.proof.statement)}</div>"
    )
    design = winner.design.to_dict()
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
    ]
    memory = [(i, rank["memory"] / 2**30, facts["memory_limit"] / 2**30) for i, rank in enumerate(facts["ranks"])]
    ranks = rows(("rank", "memory, GiB", "limit, GiB"), memory[:16])
    return f"<div>{head}<div>{_said(placement.time_per_batch)} s for a batch</div>{bars(parts, unit)}{ranks}</div>"


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
