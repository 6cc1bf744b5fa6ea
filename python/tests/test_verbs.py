"""The verbs: the same answers as the command line, and refusals with its words."""

from __future__ import annotations

import json
import pathlib
import pickle
from typing import Any, List

import phaze
import pytest
from conftest import CHIPS, SMALL, as_request


def test_a_search_is_byte_for_byte_that_of_the_command_line(found: phaze.SearchResult, command: Any, tmp_path: pathlib.Path) -> None:
    request = tmp_path / "request.toml"
    request.write_text(as_request(SMALL, "bert-large"))
    out = tmp_path / "out"
    ended = command("search", str(request), "--table", "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    assert (out / "outcome.json").read_bytes() == found.to_json()
    assert (out / "designs.csv").read_bytes() == found.to_csv()
    assert phaze.search(request=request).to_json() == found.to_json()


def test_a_plan_is_that_of_the_command_line(command: Any, tmp_path: pathlib.Path) -> None:
    plan = phaze.place("llama2-7b", design="a100-80g", devices=64)
    path = tmp_path / "plan.json"
    ended = command("place", "llama2-7b", "--design", "a100-80g", "--devices", "64", "--json", "--out", str(path))
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == plan.to_dict()
    assert path.read_text() == plan.plan_json


def test_an_inspection_an_estimate_and_a_schedule_are_those_of_the_command_line(command: Any) -> None:
    said = json.loads(command("inspect", "llama3-8b", "--tensor-parallel", "8", "--json").stdout)
    assert phaze.inspect("llama3-8b", tensor_parallel=8).to_dict() == said
    said = json.loads(command("estimate", "--matmul", "1x512x1024x1024", "--design", "tpuv4", "--json").stdout)
    assert phaze.estimate(matmul=(1, 512, 1024, 1024), design="tpuv4").to_dict() == said
    said = json.loads(command("estimate", "--model", "bert-large", "--json").stdout)
    assert phaze.estimate("bert-large").to_dict() == said
    lines = command("schedule", "bert-large", "--json").stdout.splitlines()
    assert [one.to_dict() for one in phaze.schedule("bert-large")] == [json.loads(line) for line in lines]
    said = json.loads(command("models", "--json").stdout)
    assert [model.to_dict() for model in phaze.models()] == said
    said = json.loads(command("designs", "--design", "h100-sxm", "--json").stdout)
    assert phaze.designs("h100-sxm").to_dict() == said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: phaze.search("bert-large", devics=3), "search: unknown keyword `devics` (did you mean `devices`?)"),
        (lambda: phaze.search("bert-larg"), "did you mean `bert-large`?"),
        (lambda: phaze.search("bert-large", devices="many"), "search: "),
        (lambda: phaze.search("bert-large", devices=0), "`job.devices = 0` is out of range"),
        (lambda: phaze.search("bert-large", time_limit=-1), "time_limit"),
        (lambda: phaze.search("bert-large", tdp_w=float("inf")), "`tdp_w = inf` is no number of a request"),
        (lambda: phaze.search("bert-large", threads=0), "threads: allowed are 1 to 1024"),
        (lambda: phaze.search("bert-large", threads=-1), "threads: allowed are 1 to 1024"),
        (lambda: phaze.search([]), "give at least one model"),
        (lambda: phaze.load(pathlib.Path(__file__).parent), "holds neither outcome.json nor plan.json"),
        (lambda: phaze.Model.from_config(3), "3 is no configuration"),
        (lambda: phaze.search("bert-large", resume=True), "resume=directory"),
        (lambda: phaze.search(3.5), "is no model"),
        (lambda: phaze.place("llama2-7b"), "design is missing: name an accelerator"),
        (lambda: phaze.place("llama2-7b", design="a100-80"), "did you mean `a100-80g`?"),
        (lambda: phaze.place("llama2-7b", design="a100-80g", tensor_paralel=2), "did you mean `tensor_parallel`?"),
        (lambda: phaze.place("llama2-7b", design="a100-80g", micro_batches=[3]), "does not divide the batch"),
        (lambda: phaze.place("llama2-7b", design="a100-80g", micro_batches=[]), "give at least one number"),
        (lambda: phaze.place("llama2-7b", design="a100-80g", devices=0), "allowed are 1 to"),
        (lambda: phaze.place("llama2-7b", design="a100-80g", devices=1, nodes=1), "say the same twice"),
        (lambda: phaze.place("llama2-7b", design="a100-80g", zero=4), "none of 0, 1, 2 and 3"),
        (lambda: phaze.place("llama2-7b", design="a100-80g", reserve=6), "reserve 6 is out of range"),
        (lambda: phaze.place("llama2-7b", design="a100-80g", recompute="some"), "unknown `recompute` `some`"),
        (lambda: phaze.place(), "give a model or a profile"),
        (lambda: phaze.plan("llama3-8b"), "give gpus, such as 256xh100-sxm"),
        (lambda: phaze.plan(gpus="8xh100-sxm"), "give a model, or from_"),
        (lambda: phaze.plan("llama3-8b", gpus="8xh100-sxm", token=3), "did you mean `tokens`?"),
        (lambda: phaze.plan("llama3-8b", gpus="8xh100-sxm", tokens="many"), "is no number of tokens"),
        (lambda: phaze.plan("llama3-8b", gpus="8xh100", tokens="2T"), "did you mean"),
        (lambda: phaze.plan("llama3-8b", gpus="8xh100-sxm", for_="megatrom"), "did you mean `megatron`?"),
        (lambda: phaze.plan(from_="missing.sh", gpus="8xh100-sxm"), "missing.sh: cannot be read"),
        (lambda: phaze.search("llama3-8b", max_area_mm2=900), "`space.max_area_mm2 = 900` is out of range; allowed are 1 to 858"),
        (lambda: phaze.inspect("llama3-8b", tensor_parallel=3), "legal widths are"),
        (lambda: phaze.inspect({"model_type": "nothing"}), "nothing"),
        (lambda: phaze.estimate(matmul=(1, 0, 1, 1)), "`matmul.m = 0` is out of range"),
        (lambda: phaze.estimate(), "give one of matmul, jobs and model"),
        (lambda: phaze.schedule({"operators": 3}), "graph: "),
        (lambda: phaze.schedule("bert-large", graph={}), "give a model or a graph"),
        (lambda: phaze.schedule("bert-large", layer="heads"), "unknown layer `heads`"),
        (lambda: phaze.designs("tpuv4", tensor_cores=0), "outside its range"),
        (lambda: phaze.validate("missing.csv"), "missing.csv: cannot be read"),
        (lambda: phaze.calibrate([]), "give a file of measured runs"),
        (lambda: phaze.load("nowhere"), "nowhere"),
        (lambda: phaze.load(3), "load: `path = 3` is no path"),
        (lambda: phaze.load(__file__), "test_verbs.py: line 1: not a plan"),
        (lambda: phaze.search(""), "unknown model ``; known are"),
        (lambda: phaze.search("bert-large", devices=-3), "expected a whole number, 0 or more in `job.devices`"),
        (lambda: phaze.search("bert-large", space=3), "expected a table in `space`"),
        (lambda: phaze.search("bert-large", progress=3), "neither true, false nor a function"),
        (lambda: phaze.search("bert-large", time_limit="x"), "`time_limit = 'x'` is no time"),
        (lambda: phaze.search("bert-large", request=3), "`request = 3` is no path"),
        (lambda: phaze.place(profile=3), "`profile = 3` is no path"),
        (lambda: phaze.estimate(matmul=3), "`matmul = 3` is no matmul"),
        (lambda: phaze.estimate(matmul=(1.5, 2, 3, 4)), "not four whole numbers"),
        (lambda: phaze.estimate(jobs=[3]), "jobs are a path, or a list of dictionaries"),
        (lambda: phaze.validate(3), "`runs[0] = 3` is no path"),
        (lambda: phaze.sweep(vary=3), "`vary = 3` is no table"),
        (lambda: phaze.Model("x", 3), "a model is a name and its text"),
    ],
)
def test_bad_input_is_a_value_error_with_our_words(call: Any, said: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError)) as raised:
        call()
    assert said in str(raised.value)


def test_refusals_name_keywords_and_not_options(found: phaze.SearchResult, tmp_path: pathlib.Path) -> None:
    found.save(tmp_path)
    with pytest.raises(ValueError, match="choose another out, or force=True to write over it"):
        phaze.search("bert-large", out=tmp_path, **{**SMALL, "tensor_cores": 32})
    with pytest.raises(ValueError, match="search with part 1/3"):
        phaze.merge([shard_of(tmp_path / "parts", part) for part in ("2/3", "3/3")], out=tmp_path / "merged")


def shard_of(place: pathlib.Path, part: str) -> pathlib.Path:
    out = place / part.replace("/", "-")
    phaze.shard("bert-large", part=part, out=out, **{**SMALL, "tensor_cores": 32, "width": 64})
    return out


def test_that_nothing_fits_is_an_answer_with_a_reason() -> None:
    plan = phaze.place("llama3-405b", design="h100-sxm", devices=8)
    assert not plan.feasible and "needs" in str(plan.reason) or "devices" in str(plan.reason)
    with pytest.raises(ValueError, match="nothing fits"):
        plan.stages
    nothing = phaze.search("gpt3-175b", **{**SMALL, "devices": 1, "global_batch": 1, "micro_batches": [1]})
    assert nothing.winner is None and nothing.infeasible_reason
    assert "nothing fits" in repr(nothing) and "nothing fits" in nothing._repr_html_()


def test_results_cannot_be_changed(found: phaze.SearchResult) -> None:
    assert found.winner is not None
    for facts in (found.winner, found.winner.design, found.proof, phaze.inspect("bert-large")):
        with pytest.raises(AttributeError):
            facts.value = 3
        with pytest.raises(AttributeError):
            del facts.value
    copy = found.winner.to_dict()
    copy["value"] = 0
    assert found.winner.value != 0
    assert pickle.loads(pickle.dumps(found)) == found
    assert pickle.loads(pickle.dumps(found.winner)) == found.winner
    assert hash(found.winner) == hash(found.top[0]) if found.top[0] == found.winner else True


def test_a_result_is_saved_loaded_and_checked(found: phaze.SearchResult, tmp_path: pathlib.Path) -> None:
    assert found.check()
    place = found.save(tmp_path / "x")
    again = phaze.load(place)
    assert again == found and phaze.check(place)
    assert (place / "report.html").read_bytes()[:15].lower() == b"<!doctype html>"
    lie = found.to_json().replace(b'"value":', b'"value":1', 1)
    (place / "outcome.json").write_bytes(lie)
    verdict = phaze.check(place)
    assert not verdict and verdict.lie


def test_a_plan_is_saved_loaded_and_checked(tmp_path: pathlib.Path) -> None:
    plan = phaze.place("llama2-7b", design="a100-80g", devices=16)
    path = plan.save(tmp_path / "plan.json")
    again = phaze.load(path)
    assert isinstance(again, phaze.Placement)
    assert again.to_dict() == plan.to_dict() and again.check() and again.check(deep=True)
    assert len(plan.stages) >= 1 and plan.timeline()
    assert path.with_suffix(".html").exists()


def test_configurations_come_from_memory() -> None:
    config = json.loads((pathlib.Path(__file__).resolve().parents[2] / "inputs/models/llama3-8b.json").read_text())

    class LlamaConfig:
        def to_dict(self) -> Any:
            return config

    expected = phaze.inspect("llama3-8b").parameters
    assert phaze.inspect(config).parameters == expected
    assert phaze.inspect(LlamaConfig()).parameters == expected
    assert phaze.Model.from_config(config).parameters == expected
    model = phaze.Model.builtin("llama3-8b")
    own = phaze.place(model, design="h100-sxm", devices=8)
    assert own.time_per_batch == phaze.place("llama3-8b", design="h100-sxm", devices=8).time_per_batch


def test_runs_are_validated_and_calibrated() -> None:
    runs = pathlib.Path(__file__).resolve().parents[2] / "inputs/runs/published.csv"
    validations = phaze.validate(runs)
    assert [repr(one) for one in validations] == [repr(one) for one in phaze.validate()]
    assert any(one.mean_error is not None and one.mean_error < 0.25 for one in validations)
    fitted = phaze.calibrate(runs, hardware="a100-80g")
    assert 0 < fitted.scalars["matmul"] <= 1000
    plan = phaze.place("megatron-22b", design=fitted, devices=8, global_batch=4)
    assert plan.feasible and plan.check()


def test_everything_shows_itself_without_scripts(found: phaze.SearchResult) -> None:
    assert found.winner is not None
    plan = phaze.place("llama2-7b", design="a100-80g", devices=16)
    shown: List[Any] = [found, found.winner, found.designs, plan, phaze.inspect("bert-large"), phaze.schedule("bert-large")[0]]
    shown += [found.proof, found.request, found.check(), found.baselines[0], plan.stages[0], phaze.Model.builtin("bert-large")]
    shown += [phaze.Calibration({"told": "a < b", "scalars": {}}), phaze.models()[0], phaze.designs("tpuv4")]
    run = {"model": "a<b", "hardware": "h", "devices": 8, "strategy": "t8", "measured_s": 1.0, "predicted_s": None}
    shown += [phaze.Validation({"set": "<own>", "fitted_on": "none", "time": None, "runs": [run]})]
    for one in shown:
        html = one._repr_html_()
        assert html.startswith("<div>") and "<script" not in html and "javascript:" not in html
        assert repr(one)
    assert "<svg" in found._repr_html_() or not found.pareto
    assert '<td align="left">complete</td><td align="left">yes</td>' in found.proof._repr_html_()
    assert "<svg" in plan._repr_html_()


def test_a_page_is_written_where_it_is_asked_for(found: phaze.SearchResult, tmp_path: pathlib.Path) -> None:
    page = found.report(tmp_path / "page.html")
    assert page.read_bytes()[:15].lower() == b"<!doctype html>"
    other = found.report()
    assert other.exists()
    other.unlink()


def test_whole_chips_are_searched_saved_and_checked(command: Any, tmp_path: pathlib.Path) -> None:
    found = phaze.search("bert-large", **CHIPS)
    assert found.over_chips and found.proof.complete and found.proof.gap == 0
    assert found.winner is not None and found.winner.design.tensor_cores in (8, 16)
    assert found.check()
    near = {one.least: one.entry.design for one in found.near_winners}
    assert set(near) == {"smallest", "coolest", "cheapest"}
    winner = found.winner.design
    assert near["smallest"].die_mm2 <= winner.die_mm2 and near["coolest"].tdp_w <= winner.tdp_w
    assert near["cheapest"].cost_usd <= winner.cost_usd
    html = found._repr_html_()
    assert "<svg" in html and "<script" not in html and ("refused by" in html or "not worth it" in html)
    place = found.save(tmp_path / "x")
    assert phaze.load(place) == found and phaze.check(place)
    assert sorted(file.name for file in place.iterdir()) == ["boxes.csv", "outcome.json", "report.html"]
    request = tmp_path / "request.toml"
    request.write_text(as_request(CHIPS, "bert-large"))
    ended = command("search", str(request), "--out", str(tmp_path / "out"))
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "out/outcome.json").read_bytes() == found.to_json()
    assert (tmp_path / "out/boxes.csv").read_bytes() == found.to_csv()
    # The page is that of the command line, from the directory or from the answer in memory.
    page = (tmp_path / "out/report.html").read_bytes()
    assert phaze.load(tmp_path / "out").report(tmp_path / "page.html").read_bytes() == page
    assert found.report(tmp_path / "own.html").read_bytes().startswith(page[:1000])


def test_two_results_are_set_side_by_side(found: phaze.SearchResult, command: Any, tmp_path: pathlib.Path) -> None:
    other = phaze.search("bert-large", **{**SMALL, "tensor_cores": 32})
    one, two = found.save(tmp_path / "one"), other.save(tmp_path / "two")
    ended = command("report", "--compare", str(one), str(two), "--out", str(tmp_path / "theirs.html"))
    assert ended.returncode == 0, ended.stderr
    loaded = phaze.load(one)
    beside = phaze.load(two)
    assert isinstance(loaded, phaze.SearchResult) and isinstance(beside, phaze.SearchResult)
    ours = loaded.report(tmp_path / "ours.html", compare=beside)
    assert ours.read_bytes() == (tmp_path / "theirs.html").read_bytes()
    with pytest.raises(ValueError, match="compare results of the same kind"):
        found.report(compare=phaze.search("bert-large", **CHIPS))


def test_a_result_over_the_other_space_is_written_over(found: phaze.SearchResult, tmp_path: pathlib.Path) -> None:
    chips = phaze.search("bert-large", **CHIPS)
    for one in (found, chips, found):
        one.save(tmp_path / "x")
        assert phaze.load(tmp_path / "x") == one and phaze.check(tmp_path / "x")
