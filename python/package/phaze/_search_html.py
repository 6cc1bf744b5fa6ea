"""The answer of a search as static HTML: headline, chip, what it is compared with, what is nearly as good, the front."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from ._html import bars, rows, said, scatter

if TYPE_CHECKING:
    from ._results import Entry, SearchResult


def search_html(result: "SearchResult") -> str:
    """Headline, chip, baselines, what is nearly as good, and the front of a search."""
    names = ", ".join(model.name for model in result.models)
    if result.winner is None:
        return f"<div><b>{escape(names)}</b>: nothing fits: {escape(str(result.infeasible_reason))}</div>"
    head = f"{_headline(result, result.winner)}<div>{escape(result.proof.statement)}</div>"
    chip = rows(("the best chip", ""), chip_rows(result.winner.design.to_dict()))
    of_space = _chips(result, result.winner) if result.over_chips else _designs(result, result.winner)
    return f"<div>{head}{chip}{_baselines(result)}{of_space}</div>"


def entry_html(entry: "Entry") -> str:
    """A chip and how to train on it."""
    return f"<div>{rows(('chip', ''), chip_rows(entry.design.to_dict()))}<div>{escape(entry.strategy)}</div></div>"


def _headline(result: "SearchResult", winner: "Entry") -> str:
    lines = [
        f"<div><b>{escape(one.model)}</b>: {said(one.throughput_sequences_per_s)} sequences/s, {said(one.tokens_per_s)} tokens/s on "
        f"{one.to_dict()['strategy']['devices_used']:,} of {result.request.devices:,} devices, MFU {one.mfu:.1%}<br>{escape(one.strategy)}</div>"
        for one in winner.results
    ]
    return "".join(lines)


def chip_rows(design: Dict[str, Any]) -> List[Tuple[str, str]]:
    """A chip in the units that people use."""
    found = [
        ("tensor cores", f"{design['tensor_cores']:,} of {design['width']} x {design['depth']}, {_size(design['local_tensor_bytes'])} local each"),
        ("vector cores", f"{design['vector_cores']:,} of {design['vector_width']:,} lanes, {_size(design['local_vector_bytes'])} local each"),
        ("global buffer", f"{_size(_buffer(design))}, {design['glb_bytes_per_cycle']:,} bytes per cycle"),
        ("memory", f"{_size(design['hbm_bytes'])} at {design['hbm_bytes_per_s'] / 1e12:.4g} TB/s{_stacks(design)}"),
        ("clock", f"{design.get('clock_hz', 1e6 * design.get('clock_mhz', 0)) / 1e9:.4g} GHz"),
        ("peak", f"{design['peak_flops_per_s'] / 1e12:,.4g} TFLOP/s"),
        ("silicon", f"{design['area_um2'] / 1e6:,.1f} mm²"),
    ]
    figures = [("links", "links", "GB/s per direction"), ("design power", "tdp_w", "W"), ("cost to make", "cost_usd", "$"), ("to build and own", "ownership_usd", "$")]
    return found + [(name, f"{design[key]:,.0f} {unit}") for name, key, unit in figures if design.get(key) is not None]


def _buffer(design: Dict[str, Any]) -> int:
    return int(design["glb_bytes"] if "glb_bytes" in design else design["glb_mib"] * 2**20)


def _stacks(design: Dict[str, Any]) -> str:
    return f" in {design['stacks']} stacks" if "stacks" in design else ""


def _size(count: float) -> str:
    """Bytes in the largest unit that leaves at least one."""
    for unit, least in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= least:
            return f"{count / least:.4g} {unit}"
    return f"{count:.4g} bytes"


def _baselines(result: "SearchResult") -> str:
    """So many times better than each baseline, or why there is no such ratio."""
    lines: List[Tuple[str, Any]] = []
    for one in result.baselines:
        facts = one.to_dict()
        ratio = facts["winner_is"]["by_objective"] if facts.get("winner_is") else facts.get("winner_ratio")
        lines.append((facts["name"], f"{ratio:.4g} x" if ratio is not None else facts.get("reason")))
    if not lines:
        return ""
    return f"<details open><summary>so many times better than</summary>{rows(('by the objective', ''), lines)}</details>"


def _designs(result: "SearchResult", winner: "Entry") -> str:
    """Of the published space: the best designs and the front."""
    heading = ("design", "tensor cores", "array", "vector cores", "mm²", "value")
    near = [
        (str(e.design.index), e.design.tensor_cores, f"{e.design.width}x{e.design.depth}", e.design.vector_cores, e.design.area_um2 / 1e6, e.value)
        for e in result.top[:10]
    ]
    points = [(e.design.area_um2 / 1e6, e.results[0].throughput_sequences_per_s, f"design {e.design.index}") for e in result.pareto]
    best = next((i for i, e in enumerate(result.pareto) if e.design == winner.design), None)
    front = scatter(points, best, ("area in mm²", "sequences/s"))
    return f"<details open><summary>best designs</summary>{rows(heading, near)}</details>{front}"


def _chips(result: "SearchResult", winner: "Entry") -> str:
    """Of whole chips: where mm², watts and dollars go, what binds, and those nearly as good."""
    facts = winner.to_dict()["chip"]
    figures = [("mm²", "die"), ("W", "power"), ("$", "cost")]
    parts = "".join(
        f"<details><summary>where the {unit} go</summary>{bars([(part['what'], part['amount']) for part in facts[key]], unit)}</details>"
        for unit, key in figures
    )
    binds = rows(("knob", "", "more of it"), [(bind.knob, facts["knobs"][bind.knob], _bound(bind)) for bind in result.binds])
    near = [("winner", winner), *((one.least, one.entry) for one in result.near_winners)]
    lines = [(name, e.design.die_mm2, e.design.tdp_w, e.design.cost_usd, e.value, e.strategy) for name, e in near]
    heading = ("", "mm²", "W", "$", "value", "strategy")
    near += [(f"place {place}", entry) for place, entry in enumerate(result.top[1:], 2)]
    points = [(entry.design.die_mm2, entry.results[0].throughput_sequences_per_s, name) for name, entry in near]
    front = scatter(points, 0, ("die in mm²", "sequences/s"))
    return (
        f"{parts}<details><summary>what binds</summary>{binds}</details>"
        f"<details open><summary>nearly as good</summary>{rows(heading, lines)}</details>{front}{_front(result)}"
    )


def _front(result: "SearchResult") -> str:
    """The front over tokens per second, dollars and watts, where it was asked for."""
    if not result.front:
        return ""
    heading = ("tokens/s", "$ to own", "W", "strategy")
    lines = [(e.results[0].tokens_per_s, e.design.ownership_usd, e.design.tdp_w, e.strategy) for e in result.front]
    points = [(e.design.ownership_usd, e.results[0].tokens_per_s, f"{e.design.tdp_w:.0f} W") for e in result.front]
    picture = scatter(points, None, ("dollars to own one chip", "tokens/s"))
    return f"<details><summary>the front: {len(lines)} chips</summary>{rows(heading, lines)}</details>{picture}"


def _bound(bind: Any) -> str:
    if bind.by == "nothing":
        return "fits, and is not worth it"
    return "the list ends" if bind.by == "space" else f"{said(bind.next)} is refused by {bind.by}"
