"""What verbs answer: immutable objects made from the same facts as the JSON."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import webbrowser
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _phaze
from ._facts import Facts, many
from ._html import facts_html, placement_html, text_html, validation_html
from ._progress import Progress, Shown
from ._search_html import entry_html, search_html
from ._table import Table

PathLike = Union[str, "os.PathLike[str]"]


class Design(Facts):
    """An accelerator in figures: sizes in bytes, areas in µm², rates per second."""

    __slots__ = ()

    @property
    def index(self) -> Optional[int]:
        """Its row in `designs`; None outside the space."""
        found: Optional[int] = self._facts.get("index")
        return found

    @property
    def tensor_cores(self) -> int:
        """Number of tensor cores."""
        return int(self._facts["tensor_cores"])

    @property
    def width(self) -> int:
        """Width of each array."""
        return int(self._facts["width"])

    @property
    def depth(self) -> int:
        """Depth of each array."""
        return int(self._facts["depth"])

    @property
    def vector_cores(self) -> int:
        """Number of vector cores."""
        return int(self._facts["vector_cores"])

    @property
    def area_um2(self) -> float:
        """Silicon, in µm²."""
        return float(self._facts["area_um2"])


class Training(Facts):
    """The best way to train one model on a design."""

    __slots__ = ()

    @property
    def model(self) -> str:
        """Which model."""
        return str(self._facts["model"])

    @property
    def strategy(self) -> str:
        """The strategy in a line; `degrees` has its numbers."""
        return str(self._facts["strategy"]["sentence"])

    @property
    def degrees(self) -> Facts:
        """The degrees of parallelism and the rest of the strategy."""
        return Facts(self._facts["strategy"]["degrees"])

    @property
    def time_per_batch_s(self) -> float:
        """Seconds of a batch."""
        return float(self._facts["time_per_batch_s"])

    @property
    def throughput_sequences_per_s(self) -> float:
        """Sequences per second."""
        return float(self._facts["throughput_sequences_per_s"])

    @property
    def plan(self) -> "Placement":
        """The plan in full."""
        return Placement.of_plan(json.dumps(self._facts["plan"]))


class Entry(Facts):
    """A design with the best way to train each model on it."""

    __slots__ = ()

    @property
    def design(self) -> Design:
        """The design; of a search over chips, its knobs and figures side by side."""
        chip = self._facts.get("chip")
        if chip is None:
            return Design(self._facts["design"])
        figures = {key: value for key, value in chip.items() if key != "knobs"}
        return Design({**chip["knobs"], **figures, "area_um2": 1e6 * chip["die_mm2"]})

    @property
    def value(self) -> float:
        """Its value by the objective."""
        return float(self._facts["value"])

    @property
    def results(self) -> Tuple[Training, ...]:
        """One for each model."""
        return many(Training, self._facts["results"])

    @property
    def strategy(self) -> str:
        """How to train, in a line; several models one after another."""
        return "; ".join(result.strategy for result in self.results)

    def __repr__(self) -> str:
        design = self.design
        return (
            f"Entry({design.tensor_cores} tensor cores {design.width}x{design.depth}, {design.vector_cores} vector "
            f"cores, {design.area_um2 / 1e6:.1f} mm²: {self.strategy})"
        )

    def _repr_html_(self) -> str:
        return entry_html(self)


class Proof(Facts):
    """Why the winner is believed to be the best."""

    __slots__ = ()

    @property
    def complete(self) -> bool:
        """Whether nothing was left open."""
        return bool(self._facts["complete"])

    @property
    def statement(self) -> str:
        """The whole proof in a sentence."""
        return str(self._facts["statement"])

    @property
    def gap(self) -> float:
        """How much better than the winner something unknown could be, at the most; 0 where it is proved."""
        if "gap" in self._facts:
            return float(self._facts["gap"])
        return max((float(size["gap"]) for size in self._facts.get("by_hbm", ())), default=0.0)


class NearWinner(Facts):
    """A chip nearly as good as the winner that takes less."""

    __slots__ = ()

    @property
    def least(self) -> str:
        """What it is of those nearly as good: the smallest, the coolest or the cheapest."""
        return str(self._facts["least"])

    @property
    def within(self) -> float:
        """By how much its value may be worse than that of the winner."""
        return float(self._facts["within"])

    @property
    def entry(self) -> Entry:
        """The chip and how to train on it."""
        return Entry(self._facts["entry"])


class Verdict(Facts):
    """Whether an answer holds; it is true where it does.

    >>> bool(Verdict({"holds": False, "lie": "winner.value is said to be 3"}))
    False
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(self._facts["holds"])

    @property
    def lie(self) -> Optional[str]:
        """The first claim that is false, with what was found instead."""
        found: Optional[str] = self._facts.get("lie")
        return found

    def __repr__(self) -> str:
        return "Verdict(holds)" if self else f"Verdict(does not hold: {self.lie})"

    def _repr_html_(self) -> str:
        return text_html(repr(self))


class SearchResult:
    """The answer of a search: the winner, what it is compared with, and the proof.

    It holds the bytes of `outcome.json` and `designs.csv` as the command line writes them.
    """

    __slots__ = ("_outcome", "_csv", "_facts", "_table", "_name")

    def __init__(self, outcome: bytes, designs: bytes, name: str = "result", table: Optional[Table] = None) -> None:
        self._outcome = outcome
        self._csv = designs
        self._facts: Dict[str, Any] = json.loads(outcome)
        self._table = table
        self._name = name

    @property
    def winner(self) -> Optional[Entry]:
        """The best design and how to train on it; None where nothing fits."""
        found = self._facts["winner"]
        return None if found is None else Entry(found)

    @property
    def infeasible_reason(self) -> Optional[str]:
        """Why nothing fits; None where something does."""
        found: Optional[str] = self._facts["infeasible_reason"]
        return found

    @property
    def proof(self) -> Proof:
        """Why the winner is believed."""
        return Proof(self._facts["proof"])

    @property
    def models(self) -> Tuple[Facts, ...]:
        """What is trained."""
        return many(Facts, self._facts["models"])

    @property
    def pareto(self) -> Tuple[Entry, ...]:
        """Designs that no other beats in throughput, area and energy at once; `pareto=True` finds all.

        Of a search over chips see `front`.
        """
        return many(Entry, self._facts.get("pareto", {}).get("entries", []))

    @property
    def front(self) -> Tuple[Entry, ...]:
        """Of a search over chips with `pareto=True`: those that none beats in tokens/s, dollars and watts.

        All three are rounded up to steps of `resolution_percent`; the fastest comes first.
        """
        front = self._facts.get("front") or {}
        return many(Entry, [point["entry"] for point in front.get("points", [])])

    @property
    def top(self) -> Tuple[Entry, ...]:
        """The best designs; `top=N` finds the N best exactly."""
        top = self._facts["top"]
        return many(Entry, top if isinstance(top, list) else top["entries"])

    @property
    def near_winners(self) -> Tuple[NearWinner, ...]:
        """Of a search over chips: the smallest, coolest and cheapest of those nearly as good."""
        return many(NearWinner, self._facts.get("near_winners", []))

    @property
    def binds(self) -> Tuple[Facts, ...]:
        """Of a search over chips: what refuses more of each knob of the winner."""
        return many(Facts, self._facts.get("binds", []))

    @property
    def baselines(self) -> Tuple[Facts, ...]:
        """What the winner is compared with."""
        return many(Facts, self._facts.get("baselines", []))

    @property
    def sensitivities(self) -> Tuple[Facts, ...]:
        """What turning one knob of the winner would bring."""
        return many(Facts, self._facts.get("sensitivities", []))

    @property
    def request(self) -> Facts:
        """The whole question, with all defaults."""
        return Facts(self._facts["request"])

    @property
    def designs(self) -> Table:
        """Every design of the space, one row each; of chips, which are too many to list, the boxes of the proof."""
        if self._table is None:
            self._table = Table(_phaze.table(self._csv.decode()))
        return self._table

    def to_dict(self) -> Dict[str, Any]:
        """The content of outcome.json."""
        found: Dict[str, Any] = json.loads(self._outcome)
        return found

    def to_json(self) -> bytes:
        """The bytes of outcome.json, as the command line writes them."""
        return self._outcome

    def to_csv(self) -> bytes:
        """The bytes of designs.csv (boxes.csv of a search over chips), as the command line writes them."""
        return self._csv

    @property
    def over_chips(self) -> bool:
        """Whether whole chips were searched, and not the published space."""
        return bool(self._facts["schema"] == "phaze-chip-outcome")

    def save(self, directory: PathLike) -> pathlib.Path:
        """Writes the files that `phaze search` writes into a directory, and says where."""
        place = pathlib.Path(directory)
        _phaze.save(place, self._outcome, self._csv, self.over_chips)
        return place

    def check(self, deep: bool = False, progress: Union[bool, Callable[[Progress], Any]] = False) -> Verdict:
        """Judges every claim from the request alone; `deep` has the solvers evaluate designs once more."""
        with Shown(progress) as shown:
            lie, counts = _phaze.check_outcome(self._outcome.decode(), self._csv.decode(), deep=deep, tell=shown.tell)
        return Verdict({"holds": lie is None, "lie": lie, **dict(counts)})

    def report(
        self, path: Optional[PathLike] = None, open: bool = False, compare: Optional["SearchResult"] = None
    ) -> pathlib.Path:
        """Writes the full page, into a temporary file where no path is given.

        With `compare` it is the page that sets the two results side by side.
        """
        own = self._name, (self._outcome.decode(), self._csv.decode())
        if compare is None:
            return show_page(_phaze.outcome_page(own[0], *own[1]), path, open)
        name = compare._name if compare._name != self._name else f"{compare._name} (other)"
        other = name, (compare._outcome.decode(), compare._csv.decode())
        return show_page(_phaze.comparison_page(own, other), path, open)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SearchResult) and (self._outcome, self._csv) == (other._outcome, other._csv)

    def __hash__(self) -> int:
        return hash((self._outcome, self._csv))

    def __reduce__(self) -> Tuple[Any, ...]:
        return SearchResult, (self._outcome, self._csv, self._name)

    def __str__(self) -> str:
        return _phaze.outcome_text(self._outcome.decode())

    def __repr__(self) -> str:
        names = ", ".join(model.name for model in self.models)
        if self.winner is None:
            return f"SearchResult({names}: nothing fits: {self.infeasible_reason})"
        return f"SearchResult({names}: {self.winner!r}, {'proved' if self.proof.complete else 'unproved'})"

    def _repr_html_(self) -> str:
        return search_html(self)


class Placement(Facts):
    """The best way to train a model on an accelerator, or why nothing fits.

    Times are seconds and sizes bytes, or the units of a profile.
    """

    __slots__ = ("_plan",)
    _plan: Optional[str]

    def __init__(self, facts: Dict[str, Any], plan: Optional[str] = None) -> None:
        super().__init__(facts)
        object.__setattr__(self, "_plan", plan)

    @classmethod
    def of_plan(cls, plan: str) -> "Placement":
        """What a saved plan says."""
        return cls(json.loads(_phaze.plan_value(plan)), plan)

    @property
    def feasible(self) -> bool:
        """Whether something fits."""
        return bool(self._facts["feasible"])

    @property
    def name(self) -> str:
        """What is placed."""
        return str(self._facts["name"])

    @property
    def reason(self) -> Optional[str]:
        """Why nothing fits; None where something does."""
        found: Optional[str] = self._facts.get("reason")
        return found

    @property
    def strategy(self) -> str:
        """How to train, in a line; empty where nothing fits."""
        return str(self._facts.get("strategy", ""))

    @property
    def time_per_batch(self) -> float:
        """Seconds of a batch, or the unit of a profile."""
        return float(self._fact("time_per_batch"))

    @property
    def units(self) -> Tuple[str, str]:
        """The names of the units of times and sizes: `s` and `byte`, or what a profile calls them."""
        units = json.loads(self.plan_json)["units"]
        return str(units["time"]), str(units["size"])

    @property
    def stages(self) -> Tuple[Facts, ...]:
        """The stages of the pipeline."""
        return many(Facts, self._fact("stages"))

    @property
    def ranks(self) -> Tuple[Facts, ...]:
        """What each rank holds."""
        return many(Facts, self._fact("ranks"))

    def _fact(self, key: str) -> Any:
        if key not in self._facts:
            raise ValueError(f"{self.name}: nothing fits: {self.reason}")
        return self._facts[key]

    @property
    def plan_json(self) -> str:
        """The text of plan.json."""
        if self._plan is None:
            raise ValueError(f"{self.name}: nothing fits: {self.reason}")
        return self._plan

    def timeline(self) -> List[Dict[str, Any]]:
        """The passes of a batch as events that ui.perfetto.dev opens."""
        trace = _phaze.timeline(self.plan_json)
        if trace is None:
            raise ValueError(f"{self.name}: a batch has too many passes to show")
        found = json.loads(trace)
        events: List[Dict[str, Any]] = found["traceEvents"] if isinstance(found, dict) else found
        return events

    def chakra(self, directory: PathLike) -> pathlib.Path:
        """Writes Chakra execution traces into a directory, one for each distinct rank; ASTRA-sim takes them."""
        place = pathlib.Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        for device, trace in _phaze.chakra(self.plan_json):
            (place / f"trace.{device}.et").write_bytes(trace)
        return place

    def check(self, deep: bool = False) -> Verdict:
        """Judges every claim of the plan from its own question."""
        lie = _phaze.check_plan(self.plan_json, deep=deep)
        return Verdict({"holds": lie is None, "lie": lie})

    def save(self, path: PathLike) -> pathlib.Path:
        """Writes plan.json, which `phaze.load` and `phaze check` take, and the page beside it."""
        place = pathlib.Path(path)
        place.write_text(self.plan_json, encoding="utf-8")
        place.with_suffix(".html").write_bytes(_phaze.plan_page(place.name, self.plan_json))
        return place

    def report(self, path: Optional[PathLike] = None, open: bool = False) -> pathlib.Path:
        """Writes the page of the plan, into a temporary file where no path is given."""
        return show_page(_phaze.plan_page("plan.json", self.plan_json), path, open)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Placement, (self._facts, self._plan)

    def __str__(self) -> str:
        return _phaze.plan_text(self.plan_json) if self._plan else repr(self)

    def __repr__(self) -> str:
        if not self.feasible:
            return f"Placement({self.name}: nothing fits: {self.reason})"
        return f"Placement({self.name}: {self.strategy}, {self.time_per_batch:.4g} {self.units[0]} for a batch)"

    def _repr_html_(self) -> str:
        return placement_html(self)


class Inspection(Facts):
    """What training a model computes, keeps and exchanges; docs/model.md documents the keys."""

    __slots__ = ()

    @property
    def model(self) -> str:
        """Which model."""
        return str(self._facts["model"])

    @property
    def parameters(self) -> int:
        """Parameters, exactly."""
        return int(self._facts["parameters"])

    def _repr_html_(self) -> str:
        return facts_html(self.model, self._facts.items())


class Estimate(Facts):
    """How long a matmul, or the operators of a model, take."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return facts_html("estimate", self._facts.items())


class Schedule(Facts):
    """An order of operators on cores, with its proof."""

    __slots__ = ()

    @property
    def makespan(self) -> float:
        """When the last operator ends: seconds, or the unit of a graph of one's own."""
        return float(self._facts["makespan"])

    def _repr_html_(self) -> str:
        return facts_html(str(self._facts.get("name") or "schedule"), self._facts.items())


class Validation(Facts):
    """How close predictions are to the measured runs of one set."""

    __slots__ = ()

    @property
    def set(self) -> str:
        """Which runs."""
        return str(self._facts["set"])

    @property
    def fitted_on(self) -> str:
        """What the scalars were fitted to."""
        return str(self._facts["fitted_on"])

    @property
    def mean_error(self) -> Optional[float]:
        """Mean of |predicted / measured − 1| of times; None where nothing could be fitted."""
        time = self._facts["time"]
        return None if time is None else float(time["mean"])

    @property
    def runs(self) -> Tuple[Facts, ...]:
        """Run by run."""
        return many(Facts, self._facts["runs"])

    def __repr__(self) -> str:
        mean = "nothing to fit on" if self.mean_error is None else f"{self.mean_error:.1%} off in the mean"
        return f"Validation({self.set}, fitted on {self.fitted_on}: {mean})"

    def _repr_html_(self) -> str:
        return validation_html(self)


class Calibration(Facts):
    """An accelerator whose efficiency is fitted to measured runs; give it as `design` or `hardware`."""

    __slots__ = ()

    @property
    def scalars(self) -> Dict[str, int]:
        """The fitted scalars in thousandths (microseconds where their name says so)."""
        return dict(self._facts["scalars"])

    @property
    def hardware_file(self) -> str:
        """The text of the hardware file."""
        return str(self._facts["hardware_file"])

    def save(self, path: PathLike) -> pathlib.Path:
        """Writes the hardware file."""
        place = pathlib.Path(path)
        place.write_text(self.hardware_file, encoding="utf-8")
        return place

    def __str__(self) -> str:
        return str(self._facts["told"])

    def __repr__(self) -> str:
        return f"Calibration({self.scalars})"

    def _repr_html_(self) -> str:
        return text_html(str(self))


def show_page(page: bytes, path: Optional[PathLike], open: bool) -> pathlib.Path:
    """Writes a page, into a temporary file where no path is given, and opens it where that is asked for."""
    if path is None:
        handle, name = tempfile.mkstemp(prefix="phaze-", suffix=".html")
        os.close(handle)
        path = name
    place = pathlib.Path(path)
    place.write_bytes(page)
    if open:
        webbrowser.open(place.resolve().as_uri())
    return place
