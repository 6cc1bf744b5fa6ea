"""Which accelerator to build and how to train a large language model on it, with a proof.

Keywords are the keys of a request file, its tables flattened; what is not known raises a `ValueError` with
the closest name. That nothing fits is an answer with a reason.

>>> import phaze
>>> plan = phaze.place("llama2-7b", design="a100-80g", devices=64)
>>> plan.feasible, plan.check()
(True, Verdict(holds))
>>> phaze.place("llama2-7b", design="a100-80g", devics=64)
Traceback (most recent call last):
    ...
ValueError: place: unknown keyword `devics` (did you mean `devices`?); known are ...
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _phaze
from ._facts import Facts, many
from ._keywords import (
    Texts,
    dumps,
    hardware_text,
    matmul_of,
    maybe_path,
    model_name,
    models_of,
    path_of,
    seconds_of,
    threads_of,
)
from ._model import Model
from ._phaze import __version__
from ._picture import Picture, scatter
from ._progress import Progress, Shown
from ._results import (
    Calibration,
    Design,
    Entry,
    Estimate,
    Inspection,
    NearWinner,
    Placement,
    Proof,
    Schedule,
    SearchResult,
    Training,
    Validation,
    Verdict,
)
from ._run import Asked, Launch, RunPlan
from ._sweep import Sweep
from ._table import Table

__all__ = [
    "Calibration",
    "Design",
    "Entry",
    "Estimate",
    "Facts",
    "Inspection",
    "Launch",
    "Model",
    "NearWinner",
    "Picture",
    "Placement",
    "Progress",
    "Proof",
    "RunPlan",
    "Schedule",
    "SearchResult",
    "Sweep",
    "Table",
    "Training",
    "Validation",
    "Verdict",
    "__version__",
    "calibrate",
    "check",
    "designs",
    "estimate",
    "inspect",
    "load",
    "merge",
    "models",
    "place",
    "plan",
    "scatter",
    "schedule",
    "search",
    "shard",
    "sweep",
    "validate",
]

PathLike = Union[str, "os.PathLike[str]"]


def search(
    model: Any = None,
    *,
    progress: Union[bool, Callable[[Progress], Any]] = False,
    time_limit: Optional[float] = None,
    threads: Optional[int] = None,
    request: Optional[PathLike] = None,
    out: Optional[PathLike] = None,
    resume: Union[bool, PathLike] = False,
    force: bool = False,
    **keywords: Any,
) -> SearchResult:
    """Finds the best accelerator of a space and the best way to train on it, with proof.

    `model` is a built-in name, a path, a configuration, a `phaze.Model`, or a list of them; keywords are the
    keys of a request file (`devices`, `global_batch`, `objective`, `top`, `max_area_mm2`, `tdp_w`, the knobs of the
    space as a number, a list or `{"from": 2, "to": 64}` ...), and `sequence` the tokens of every model. Whole
    chips are searched, or the published space with `space="published"`.

    `progress` shows a bar (tqdm where it is installed), or is called with a `phaze.Progress`. After
    `time_limit` seconds the best so far is answered, with its gap. `out` is a directory for the files of the
    result; what an interrupted search into it knows is used again with `resume=True`, or `resume=directory`.
    Ctrl-C raises `KeyboardInterrupt` at once. The answer does not depend on `threads`.

    >>> found = phaze.search("bert-large", space="published", devices=8, global_batch=64, width=128,
    ...                      depth=[64, 128], glb_mib=32, hbm_gib=32)
    >>> found.winner.design.width, found.proof.complete, found.proof.gap
    (128, True, 0.0)
    >>> len(found.designs) == found.proof.designs
    True
    """
    texts: Texts = {}
    models = [] if model is None else models_of(model, texts)
    given = dumps(hardware_text(keywords, texts))
    if not isinstance(resume, bool):
        out, resume = resume, True
    if resume and out is None:
        raise ValueError("search: resume goes on with the search of a directory; give it as resume=directory")
    with Shown(progress) as shown:
        raw = _phaze.search(
            dumps_list(models),
            given,
            texts,
            request=maybe_path("search", "request", request),
            out=maybe_path("search", "out", out),
            resume=resume,
            force=force,
            time_limit=seconds_of("search", time_limit),
            threads=threads_of(threads),
            tell=shown.tell,
        )
    name = "result" if out is None else str(out)
    return SearchResult(raw.outcome, raw.designs, name, Table(raw.table()))


def sweep(
    file: Optional[PathLike] = None,
    *,
    vary: Optional[Mapping[str, Sequence[Any]]] = None,
    model: Any = None,
    out: Optional[PathLike] = None,
    progress: Union[bool, Callable[[Progress], Any]] = False,
    time_limit: Optional[float] = None,
    threads: Optional[int] = None,
    force: bool = False,
    **keywords: Any,
) -> Sweep:
    """Searches every combination of some keys of a request: one table, one page of curves.

    `file` is a sweep file; without one, `vary` has the keys that vary, each with the list of its values, and the
    other keywords are those of `search`, common to all. Searches
    that are done in `out` are taken as they are, so that an interrupted sweep goes on when it is called again;
    `force` searches all of them again. `time_limit` is that of each search.

    >>> import tempfile
    >>> found = phaze.sweep(vary={"devices": [8, 16]}, model="bert-large", out=tempfile.mkdtemp(), space="published",
    ...                     global_batch=64, width=128, depth=64, glb_mib=32, hbm_gib=32, tensor_cores=[32, 64])
    >>> found.table["job.devices"], found.table["status"]
    ([8, 16], ['proved', 'proved'])
    >>> found[1].winner.design.width
    128
    """
    if (file is None) == (vary is None):
        raise ValueError("sweep: give a file, or vary, the keys that vary with their values")
    if vary is not None and not isinstance(vary, Mapping):
        raise ValueError(f"sweep: `vary = {vary!r}` is no table; give keys with the lists of their values")
    texts: Texts = {}
    varied = dict(vary or {})
    if "model" in varied:
        varied["model"] = models_of(list(varied["model"]), texts)
    models = [] if model is None else models_of(model, texts)
    if file is not None and (keywords or models):
        raise ValueError("sweep: a file says all of it; give its keys there")
    given = dumps(hardware_text(keywords, texts))
    with Shown(progress) as shown:
        directory, csv, folders = _phaze.sweep(
            maybe_path("sweep", "file", file),
            dumps_list(models),
            given,
            dumps(varied),
            texts,
            out=maybe_path("sweep", "out", out),
            force=force,
            time_limit=seconds_of("sweep", time_limit),
            threads=threads_of(threads),
            tell=shown.tell,
        )
    return Sweep(pathlib.Path(directory), csv, tuple(folders))


def shard(
    model: Any = None,
    *,
    part: str,
    out: PathLike,
    share: Optional[PathLike] = None,
    round_: Optional[str] = None,
    after: Sequence[PathLike] = (),
    progress: Union[bool, Callable[[Progress], Any]] = False,
    threads: Optional[int] = None,
    resume: bool = False,
    force: bool = False,
    **keywords: Any,
) -> Facts:
    """Searches one part of a space, such as `part="3/64"`, into a directory; `merge` joins all of them.

    Parts may be searched by other processes and machines, with the same build. Through the directory `share` they
    hear of each other's best; the merged answer does not depend on it. Several models are searched in two rounds:
    `round_="alone"` in all parts, then `round_="together"` with `after`, the directories of the first. Over chips
    those nearly as good may be a round of their own, `round_="near"`, after all others; `merge` searches them otherwise.
    `designs` are then the chips of the part.
    Other keywords are those of `search`.

    >>> import tempfile
    >>> asked = dict(model="bert-large", space="published", devices=8, global_batch=64, width=128, depth=[64, 128],
    ...              glb_mib=32, hbm_gib=32)
    >>> parts = [tempfile.mkdtemp() for _ in range(2)]
    >>> sum(phaze.shard(**asked, part=f"{i + 1}/2", out=out).designs for i, out in enumerate(parts))
    99
    >>> phaze.merge(parts, out=tempfile.mkdtemp()) == phaze.search(**asked)
    True
    """
    texts: Texts = {}
    models = [] if model is None else models_of(model, texts)
    with Shown(progress) as shown:
        designs_, evaluated = _phaze.shard(
            dumps_list(models),
            dumps(hardware_text(keywords, texts)),
            texts,
            str(part),
            path_of("shard", "out", out),
            share=maybe_path("shard", "share", share),
            round=round_,
            after=[path_of("shard", "after", one) for one in after],
            resume=resume,
            force=force,
            threads=threads_of(threads),
            tell=shown.tell,
        )
    return Facts({"part": part, "designs": designs_, "evaluated": evaluated})


def merge(
    shards: Sequence[PathLike],
    *,
    out: PathLike,
    progress: Union[bool, Callable[[Progress], Any]] = False,
    threads: Optional[int] = None,
    force: bool = False,
) -> SearchResult:
    """Joins the shards of all parts of a space into the answer of the whole, with its proof: see `shard`."""
    with Shown(progress) as shown:
        places = [path_of("merge", "shards", one) for one in shards]
        raw = _phaze.merge(places, path_of("merge", "out", out), force=force, threads=threads_of(threads), tell=shown.tell)
    return SearchResult(raw.outcome, raw.designs, str(out), Table(raw.table()))


def dumps_list(models: Sequence[Any]) -> str:
    """Models as JSON."""
    return json.dumps(list(models))


def place(model: Any = None, *, profile: Optional[Union[PathLike, Mapping[str, Any]]] = None, **keywords: Any) -> Placement:
    """Finds the best way to train a model on an accelerator, or says why nothing fits.

    Keywords: `design` and its knobs, `devices` or `nodes`, `global_batch` or `batch_tokens`, `sequence`,
    `micro_batches`, `tensor_parallel`, `context_parallel`, `zero`, `recompute`, `reserve` (a part of memory),
    `launchable`, `optimizer`, `time_model`, `strategy`, `precision`, `attention`, `sequence_parallel`,
    `ideal`, `fit`, `published`. `profile` places layers of one's own instead of a model.

    >>> plan = phaze.place("llama3-70b", design="h100-sxm", devices=256)
    >>> plan.degrees.tensor_parallel * plan.degrees.pipeline * plan.degrees.data_parallel <= 256
    True
    >>> phaze.place("llama3-405b", design="h100-sxm", devices=8).feasible
    False
    """
    if profile is not None:
        if model is not None:
            raise ValueError("place: give a model or a profile")
        text = dumps(profile) if isinstance(profile, Mapping) else path_of("place", "profile", profile).read_text(encoding="utf-8")
        value, plan = _phaze.place_profile(text, dumps(keywords))
        return Placement(json.loads(value), plan)
    if model is None:
        raise ValueError("place: give a model or a profile")
    texts: Texts = {}
    name = model_name(model, texts)
    value, plan = _phaze.place(name, dumps(hardware_text(keywords, texts)), texts)
    return Placement(json.loads(value), plan)


def plan(
    model: Any = None,
    *,
    from_: Optional[PathLike] = None,
    progress: Union[bool, Callable[[Progress], Any]] = False,
    **keywords: Any,
) -> RunPlan:
    """Plans a run: whether a model fits, how to launch it, how fast it is, how long it takes, what it costs.

    Keywords: `gpus` (`"256xh100-sxm"`, or `"8..1024xh100-sxm"` to compare), or `devices` and `design`; `tokens`,
    `batch_tokens` or `global_batch`, `sequence`, `precision`, `attention`, `efficiency`, `imbalance`, `mtp`, `strategy`,
    `for_` (what shall start it) or `launchable`, `price` (dollars of a device and hour), `deadline` (`"30d"`), `watts`,
    `host_watts`, `pue`, `carbon`, and as parts `goodput` and `reserve`. `from_` is a run of one's own: a Megatron script,
    a recipe or a configuration, of which it says what is better.

    >>> run = phaze.plan("llama3-8b", gpus="64xh100-sxm", tokens="100G", price=2.5)
    >>> run.feasible, run.days < 30, run.check()
    (True, True, Verdict(holds))
    >>> run.launch("megatron")
    Launch(megatron Megatron-LM ...: run.sh)
    """
    if "for_" in keywords:
        keywords["for"] = keywords.pop("for_")
    if model is None and from_ is None:
        raise ValueError("plan: give a model, or from_, a run of your own")
    texts: Texts = {}
    name = "" if model is None else model_name(model, texts)
    keywords = hardware_text(keywords, texts)
    own = maybe_path("plan", "from_", from_)
    given = dumps(keywords)
    with Shown(progress) as shown:
        value, files, said = _phaze.plan(name, given, texts, own=own, tell=shown.tell)
    return RunPlan(json.loads(value), dict(files), Asked(name, json.loads(given), texts, own), tuple(said))


def inspect(model: Any, **keywords: Any) -> Inspection:
    """Shows what training a model computes, keeps and exchanges.

    Keywords: `sequence`, `attention`, `sequence_parallel`, `micro_batch`, `tensor_parallel`,
    `context_parallel`, `context_kind`, `repeat`, `causal`, `element_bytes`, `optimizer`, `published`.

    >>> phaze.inspect("llama3-8b").parameters
    8030261248
    """
    texts: Texts = {}
    name = model_name(model, texts)
    return Inspection(json.loads(_phaze.inspect(name, dumps(keywords), texts)))


@overload
def estimate(model: Any = None, *, matmul: Optional[Union[str, Sequence[int]]] = None, jobs: None = None, **keywords: Any) -> Estimate: ...
@overload
def estimate(
    model: None = None, *, matmul: None = None, jobs: Union[PathLike, Sequence[Mapping[str, Any]]], **keywords: Any
) -> Tuple[Estimate, ...]: ...
def estimate(
    model: Any = None,
    *,
    matmul: Optional[Union[str, Sequence[int]]] = None,
    jobs: Optional[Union[PathLike, Sequence[Mapping[str, Any]]]] = None,
    **keywords: Any,
) -> Union[Estimate, Tuple[Estimate, ...]]:
    """Estimates how long a matmul (batch, rows, inner, columns), points, or all operators of a model take.

    >>> found = phaze.estimate(matmul=(1, 2048, 12288, 12288), design="tpuv4")
    >>> 0 < found.fraction_of_peak <= 1
    True
    """
    texts: Texts = {}
    given = hardware_text(dict(keywords), texts)
    if matmul is not None:
        given["matmul"] = matmul_of(matmul)
    if jobs is not None:
        if isinstance(jobs, (str, os.PathLike)):
            given["jobs"] = pathlib.Path(jobs).read_text(encoding="utf-8")
        elif isinstance(jobs, (list, tuple)) and all(isinstance(job, Mapping) for job in jobs):
            given["jobs"] = "\n".join(map(dumps, jobs))
        else:
            raise ValueError("estimate: jobs are a path, or a list of dictionaries, one for each point (docs/estimate.md)")
    if model is not None:
        given["model"] = model_name(model, texts)
    found = json.loads(_phaze.estimate(dumps(given), texts))
    return many(Estimate, found) if isinstance(found, list) else Estimate(found)


def schedule(
    what: Any = None,
    *,
    graph: Optional[Union[PathLike, Mapping[str, Any]]] = None,
    time_limit: Optional[float] = None,
    **keywords: Any,
) -> Tuple[Schedule, ...]:
    """Finds the fastest order of a layer's operators, forward and backward, or of a graph of one's own.

    `what` is a model, or a graph (a dictionary with `operators`, see docs/schedule.md); keywords are `layer`, `pass_`,
    `rule`, `solver`, `node_limit`, `design` and its knobs, and those of `inspect`.

    >>> graph = {"tensor_cores": 2, "vector_cores": 1, "edges": [["a", "c"], ["b", "c"]], "operators": [
    ...     {"id": "a", "core": "tensor", "alone": 4}, {"id": "b", "core": "tensor", "alone": 4},
    ...     {"id": "c", "core": "vector", "alone": 1}]}
    >>> phaze.schedule(graph)[0].makespan
    5.0
    """
    if isinstance(what, Mapping) and "model_type" not in what and "format" not in what:
        what, graph = None, what
    if (what is None) == (graph is None):
        raise ValueError("schedule: give a model or a graph")
    if "pass_" in keywords:
        keywords["pass"] = keywords.pop("pass_")
    texts: Texts = {}
    own: Optional[str] = None
    name: Optional[str] = None
    if graph is not None:
        own = dumps(graph) if isinstance(graph, Mapping) else path_of("schedule", "graph", graph).read_text(encoding="utf-8")
    else:
        name = model_name(what, texts)
    given = dumps(hardware_text(keywords, texts))
    found = _phaze.schedule(name, own, given, texts, time_limit=seconds_of("schedule", time_limit))
    return many(Schedule, [json.loads(one) for one in found])


def _runs(runs: Any, texts: Texts) -> List[pathlib.Path]:
    if runs is None:
        return []
    several = runs if isinstance(runs, (list, tuple)) else [runs]
    paths = []
    for place, one in enumerate(several):
        to_csv = getattr(one, "to_csv", None)
        if callable(to_csv):
            # A frame of pandas.
            texts[f"runs-{place}.csv"] = to_csv(index=False)
            paths.append(pathlib.Path(f"runs-{place}.csv"))
        else:
            paths.append(path_of("runs", f"runs[{place}]", one))
    return paths


def validate(runs: Any = None, **keywords: Any) -> Tuple[Validation, ...]:
    """Compares predictions with measured runs: paths of runs.csv or frames, or those that come with phaze.

    Keywords: `from_`, `on`, `scalars`, `without`. docs/fidelity.md documents the columns of runs.
    """
    if "from_" in keywords:
        keywords["from"] = keywords.pop("from_")
    texts: Texts = {}
    paths = _runs(runs, texts)
    found = json.loads(_phaze.validate(paths, dumps(keywords), texts))
    return many(Validation, found["validations"])


def calibrate(runs: Any, **keywords: Any) -> Calibration:
    """Fits what hardware and software reach of the data sheet to measured runs.

    Keywords: `hardware`, `stack`, `precision`, `scalars`, `date`.
    """
    texts: Texts = {}
    paths = _runs(runs, texts)
    told, text, scalars = _phaze.calibrate(paths, dumps(keywords), texts)
    return Calibration({"told": told, "hardware_file": text, "scalars": dict(scalars)})


def models() -> Tuple[Facts, ...]:
    """The built-in models.

    >>> any(model.name == "llama3-8b" for model in phaze.models())
    True
    """
    return many(Facts, json.loads(_phaze.models()))


@overload
def designs() -> Tuple[str, ...]: ...
@overload
def designs(design: Any = None, **keywords: Any) -> Facts: ...
def designs(design: Any = None, **keywords: Any) -> Union[Tuple[str, ...], Facts]:
    """The names of the built-in accelerators, or one of them with its knobs turned.

    >>> "h100-sxm" in phaze.designs()
    True
    >>> phaze.designs("tpuv4", tensor_cores=4).tensor_cores
    4
    """
    if design is None and not keywords:
        return tuple(_phaze.design_names())
    texts: Texts = {}
    given = hardware_text({**keywords, **({} if design is None else {"design": design})}, texts)
    return Facts(json.loads(_phaze.designs(dumps(given), texts)))


def load(path: PathLike) -> Union[SearchResult, Placement, RunPlan]:
    """Reads a result directory, that of a run, or a saved plan; `load(path).check()` verifies it.

    >>> import tempfile
    >>> plan = phaze.place("bert-large", design="a100-80g", devices=8)
    >>> saved = plan.save(pathlib.Path(tempfile.mkdtemp()) / "plan.json")
    >>> phaze.load(saved) == plan, phaze.load(saved).check()
    (True, Verdict(holds))
    """
    place_ = path_of("load", "path", path)
    if place_.is_dir() and (place_ / "outcome.json").exists():
        outcome, designs_text = _phaze.load(place_)
        return SearchResult(outcome.encode(), designs_text.encode(), str(place_))
    if place_.is_dir() and (place_ / "advice.json").exists():
        return RunPlan.of_directory(place_)
    if place_.is_dir() and (place_ / "plan.json").exists():
        place_ = place_ / "plan.json"
    if place_.name == "outcome.json":
        return load(place_.parent)
    if place_.is_dir():
        raise ValueError(f"{place_}: holds neither outcome.json nor plan.json; name a directory that was saved")
    text = place_.read_text(encoding="utf-8", errors="replace")
    try:
        return Placement.of_plan(text)
    except ValueError as wrong:
        raise ValueError(str(wrong).replace("plan.json", str(place_), 1)) from None


def check(answer: Union[SearchResult, Placement, RunPlan, PathLike], deep: bool = False) -> Verdict:
    """Judges an answer, or a saved one, from first principles; `deep` asks the solvers once more.

    >>> plan = phaze.place("bert-large", design="a100-80g", devices=8)
    >>> phaze.check(plan)
    Verdict(holds)
    """
    found = answer if isinstance(answer, (SearchResult, Placement, RunPlan)) else load(answer)
    return found.check(deep=deep)
