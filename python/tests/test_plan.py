"""Runs: planned, launched, saved, checked, as the command line does it."""

from __future__ import annotations

import json
import pathlib
import pickle
from typing import Any, Dict

import phaze
import pytest

ASKED: Dict[str, Any] = {"gpus": "64xh100-sxm", "tokens": "100G", "price": 2.5}
WORDS = ("plan", "llama3-8b", "--gpus", "64xh100-sxm", "--tokens", "100G", "--price", "2.5")


@pytest.fixture(scope="module")
def run() -> phaze.RunPlan:
    return phaze.plan("llama3-8b", for_="megatron", **ASKED)


def test_a_run_is_that_of_the_command_line(run: phaze.RunPlan, command: Any, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    ended = command(*WORDS, "--for", "megatron", "--json", "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == run.to_dict()
    assert {path.name: path.read_text() for path in out.iterdir()} == run.files


def test_a_run_says_how_long_it_takes_and_what_it_costs(run: phaze.RunPlan) -> None:
    assert run.feasible and run.reason is None and run.strategy == run.plan.strategy
    assert run.device_hours == pytest.approx(run.days * 24 * 64)
    assert run.dollars == pytest.approx(2.5 * run.device_hours)
    assert run.next and run.what_if and run.curve is None and run.timeline()
    assert run.plan.check() and repr(run).startswith("RunPlan(llama3-8b")


def test_the_files_that_launch_it_are_those_of_the_framework(run: phaze.RunPlan, command: Any, tmp_path: pathlib.Path) -> None:
    own = run.launch("megatron")
    assert own.to_dict() == run.launch().to_dict() and own.framework == "megatron"
    assert "--tensor-model-parallel-size" in own["run.sh"] and "run.sh" in str(own)
    other = run.launch("torchtitan")
    ended = command(*WORDS, "--for", "torchtitan", "--out", str(tmp_path / "other"))
    assert ended.returncode == 0, ended.stderr
    place = other.save(tmp_path / "saved")
    assert [path.name for path in place.iterdir()] == list(other)
    for name, text in other.items():
        assert (tmp_path / "other" / name).read_text() == text == (place / name).read_text()
    with pytest.raises(ValueError, match="did you mean `maxtext`"):
        run.launch("maxtex")


def test_a_configuration_is_planned_as_a_path_and_from_memory(tmp_path: pathlib.Path) -> None:
    text = (pathlib.Path(__file__).resolve().parents[2] / "inputs/models/llama3-8b.json").read_text()
    path = tmp_path / "config.json"
    path.write_text(text)
    from_path = phaze.plan(str(path), gpus="16xh100-sxm", tokens="10G")
    from_memory = phaze.plan(json.loads(text), gpus="16xh100-sxm", tokens="10G")
    assert from_path.launch("megatron")["run.sh"] and from_path.days == from_memory.days
    assert from_memory.check() and from_memory.launch("torchtitan").version


def test_a_run_is_saved_loaded_and_checked(run: phaze.RunPlan, command: Any, tmp_path: pathlib.Path) -> None:
    place = run.save(tmp_path / "saved")
    again = phaze.load(place)
    assert isinstance(again, phaze.RunPlan)
    assert again.to_dict() == run.to_dict() and again.files == run.files and again.check() and phaze.check(place)
    assert command("check", str(place)).returncode == 0
    with pytest.raises(ValueError, match="was saved for megatron"):
        again.launch("maxtext")
    assert pickle.loads(pickle.dumps(run)).launch("nemo")
    (place / "run.sh").write_text(run.files["run.sh"].replace("--micro-batch-size 1", "--micro-batch-size 2") + "#")
    verdict = phaze.check(place)
    assert not verdict and "run.sh" in str(verdict.lie)
    page = run.report(tmp_path / "page.html")
    assert page.read_text() == run.files["plan.html"]


def test_numbers_of_devices_are_compared(command: Any) -> None:
    run = phaze.plan("llama3-8b", gpus="16..64xh100-sxm", tokens="100G", deadline="60d", progress=lambda _: None)
    assert run.curve is not None and [point.devices for point in run.curve.points] == [16, 32, 64]
    words = ("--gpus", "16..64xh100-sxm", "--tokens", "100G", "--deadline", "60d", "--json")
    assert json.loads(command("plan", "llama3-8b", *words).stdout) == run.to_dict()
    assert "<svg" in run._repr_html_()


def test_a_run_of_ones_own_is_read(run: phaze.RunPlan, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "mine.sh"
    script.write_text(run.launch("megatron")["run.sh"])
    mine = phaze.plan(from_=script, gpus="64xh100-sxm")
    assert mine.plan.time_per_batch == pytest.approx(run.plan.time_per_batch, rel=1e-3)
    assert any("mine.sh: megatron runs" in remark for remark in mine.remarks)


def test_that_nothing_fits_is_an_answer_with_ways_out() -> None:
    nothing = phaze.plan("llama3-405b", gpus="8xh100-sxm")
    assert not nothing.feasible and nothing.reason and nothing.ways_out
    assert "nothing fits" in repr(nothing) and nothing.ways_out[0].command in nothing._repr_html_().replace("&#x27;", "'")
    for call in (nothing.launch, nothing.check, lambda: nothing.days, lambda: nothing.save("nowhere"), lambda: nothing.launch("megatron")):
        with pytest.raises(ValueError, match="nothing fits"):
            call()


def test_a_run_shows_itself_without_scripts(run: phaze.RunPlan) -> None:
    for html in (run._repr_html_(), run.launch()._repr_html_()):
        assert html.startswith("<div>") and "<script" not in html and "javascript:" not in html


def test_traces_for_simulators_are_those_of_the_command_line(run: phaze.RunPlan, command: Any, tmp_path: pathlib.Path) -> None:
    place = run.plan.chakra(tmp_path / "traces")
    ended = command(*WORDS, "--for", "megatron", "--chakra", str(tmp_path / "other"))
    assert ended.returncode == 0, ended.stderr
    written = {path.name: path.read_bytes() for path in place.iterdir()}
    assert written and written == {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()}
