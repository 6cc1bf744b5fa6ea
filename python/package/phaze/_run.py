"""A run that can be started: what a plan means for who pays and waits, and the files that launch it."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import _phaze
from ._facts import Facts, many
from ._html import launch_html, run_html
from ._results import Placement, Verdict, show_page

PathLike = Union[str, "os.PathLike[str]"]

#: The files of every plan; the rest start it.
PLAN, PAGE, ADVICE = "plan.json", "plan.html", "advice.json"


class Asked(NamedTuple):
    """What was asked, as the native module takes it: enough to ask for another framework."""

    model: str
    keywords: Dict[str, Any]
    texts: Dict[str, str]
    own: Optional[pathlib.Path]


class Launch(Mapping[str, str]):
    """The files that start a run, by name."""

    __slots__ = ("_facts",)

    def __init__(self, facts: Dict[str, Any]) -> None:
        self._facts = facts

    @property
    def framework(self) -> str:
        """What they are written for."""
        return str(self._facts["for"])

    @property
    def version(self) -> str:
        """The version of the framework that knows these options."""
        return str(self._facts["version"])

    def to_dict(self) -> Dict[str, str]:
        """The texts by name."""
        return dict(self._facts["files"])

    def save(self, directory: PathLike) -> pathlib.Path:
        """Writes the files into a directory."""
        place = pathlib.Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        for name, text in self.items():
            (place / name).write_text(text, encoding="utf-8")
        return place

    def __getitem__(self, name: str) -> str:
        return str(self._facts["files"][name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts["files"])

    def __len__(self) -> int:
        return len(self._facts["files"])

    def __str__(self) -> str:
        return "\n".join(f"# {name}\n{text}" for name, text in self.items())

    def __repr__(self) -> str:
        return f"Launch({self.framework} {self.version}: {', '.join(self)})"

    def _repr_html_(self) -> str:
        return launch_html(self)


class RunPlan(Facts):
    """A run that can be started: whether it fits, how fast it is, how long it takes, what it costs, what is beside it.

    The facts are those of `phaze plan --json`; docs/plan.md documents them.
    """

    __slots__ = ("_files", "_asked", "_said")
    _files: Dict[str, str]
    _asked: Optional[Asked]
    _said: Tuple[str, ...]

    def __init__(
        self,
        facts: Dict[str, Any],
        files: Dict[str, str],
        asked: Optional[Asked] = None,
        said: Tuple[str, ...] = (),
    ) -> None:
        super().__init__(facts)
        object.__setattr__(self, "_files", files)
        object.__setattr__(self, "_asked", asked)
        object.__setattr__(self, "_said", said)

    @classmethod
    def of_directory(cls, directory: pathlib.Path) -> "RunPlan":
        """What `save` or `phaze plan --out` wrote."""
        files = {name: (directory / name).read_text(encoding="utf-8") for name in (PLAN, PAGE, ADVICE)}
        facts: Dict[str, Any] = json.loads(files[ADVICE])
        for name in (facts.get("launch") or {}).get("files") or {}:
            # The name is of a file beside it: what leads elsewhere is not read.
            files[name] = (directory / pathlib.PurePath(name).name).read_text(encoding="utf-8")
        facts.pop("request", None)
        if facts.get("curve") is None:
            facts.pop("curve", None)
        return cls(facts, files)

    @property
    def feasible(self) -> bool:
        """Whether something fits."""
        return bool(self._facts["feasible"])

    @property
    def reason(self) -> Optional[str]:
        """Why nothing fits; None where something does."""
        found: Optional[str] = self._facts.get("reason")
        return found

    @property
    def ways_out(self) -> Tuple[Facts, ...]:
        """Where nothing fits: what was tried and does."""
        return many(Facts, self._facts.get("ways_out", []))

    @property
    def plan(self) -> Placement:
        """The plan itself."""
        return Placement(self._fact("plan"), self._file(PLAN))

    @property
    def strategy(self) -> str:
        """How to train, in a line."""
        return self.plan.strategy

    @property
    def days(self) -> float:
        """How long the run takes, failures and restarts among it."""
        return float(self._fact("run")["seconds"]) / 86_400

    @property
    def device_hours(self) -> float:
        """Hours of all devices at hand."""
        return float(self._fact("run")["device_hours"])

    @property
    def dollars(self) -> Optional[float]:
        """What they cost; None where no price is known."""
        found: Optional[float] = self._fact("run")["dollars"]
        return found

    @property
    def next(self) -> Tuple[Facts, ...]:
        """The next best choices, each with its command."""
        return many(Facts, self._fact("next"))

    @property
    def what_if(self) -> Tuple[Facts, ...]:
        """What would be if, each with its command."""
        return many(Facts, self._fact("what_if"))

    @property
    def curve(self) -> Optional[Facts]:
        """Where numbers of devices were compared: each with its plan, the knee, the cheapest in time."""
        found = self._facts.get("curve")
        return None if found is None else Facts(found)

    @property
    def remarks(self) -> Tuple[str, ...]:
        """What was read of a run of one's own, and how the answer differs from what was asked."""
        return self._said + tuple(self._facts.get("remarks", ()))

    @property
    def files(self) -> Dict[str, str]:
        """Every file of the plan by name, as `phaze plan --out` writes them."""
        return dict(self._files)

    def launch(self, framework: Optional[str] = None) -> Launch:
        """The files that start the run: megatron, bridge, nemo, torchtitan or maxtext.

        Without a framework those that the plan was made for; with another one, those of the best plan that it
        accepts.
        """
        if framework is not None and self._asked is not None and self._launch_facts().get("for") != framework:
            asked = self._asked
            kept = {key: one for key, one in asked.keywords.items() if key not in ("for", "launchable")}
            given = json.dumps({**kept, "for": framework})
            return Launch(json.loads(_phaze.launch(asked.model, given, asked.texts, own=asked.own)))
        found = self._launch_facts()
        if not found:
            raise ValueError(f"nothing fits: {self.reason}")
        if framework is not None and found["for"] != framework:
            raise ValueError(f"the plan was saved for {found['for']}; ask phaze.plan for {framework}")
        if "files" not in found:
            raise ValueError(f"{found['for']} cannot start it: {found['refused']}")
        return Launch(found)

    def _launch_facts(self) -> Dict[str, Any]:
        found: Dict[str, Any] = self._facts.get("launch") or {}
        return found

    def save(self, directory: PathLike) -> pathlib.Path:
        """Writes plan, page and the files that start it into a directory; `phaze check` checks all of it."""
        self._file(PLAN)
        place = pathlib.Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        for name, text in self._files.items():
            (place / name).write_text(text, encoding="utf-8")
        return place

    def report(self, path: Optional[PathLike] = None, open: bool = False) -> pathlib.Path:
        """Writes the page of the plan, into a temporary file where no path is given."""
        return show_page(self._file(PAGE).encode(), path, open)

    def timeline(self) -> List[Dict[str, Any]]:
        """The passes of a batch as events that ui.perfetto.dev opens."""
        return self.plan.timeline()

    def check(self, deep: bool = False) -> Verdict:
        """Judges the plan from its own question, and every file beside it."""
        self._file(PLAN)
        lie = _phaze.check_run(self._files, deep=deep)
        return Verdict({"holds": lie is None, "lie": lie})

    def _fact(self, key: str) -> Any:
        if not self.feasible:
            raise ValueError(f"nothing fits: {self.reason}")
        return self._facts[key]

    def _file(self, name: str) -> str:
        if name not in self._files:
            raise ValueError(f"nothing fits: {self.reason}")
        return self._files[name]

    def __reduce__(self) -> Tuple[Any, ...]:
        return RunPlan, (self._facts, self._files, self._asked, self._said)

    def __repr__(self) -> str:
        if not self.feasible:
            return f"RunPlan(nothing fits: {self.reason})"
        cost = "" if self.dollars is None else f", ${self.dollars:,.0f}"
        return f"RunPlan({self.plan.name}: {self.strategy}, {self.days:.1f} days, {self.device_hours:,.0f} device-hours{cost})"

    def _repr_html_(self) -> str:
        return run_html(self)
