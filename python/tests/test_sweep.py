"""Sweeps and parts of a space: as the command line does them."""

from __future__ import annotations

import pathlib
from typing import Any, Dict

import phaze
import pytest
from conftest import CHIPS

#: A handful of designs.
FEW: Dict[str, Any] = {
    "space": "published", "global_batch": 64, "micro_batches": [1], "hbm_gib": 32, "glb_mib": 32, "depth": 64, "width": 128,
    "tensor_cores": [32, 64],
}
FILE = """
[request]
model = [{ name = "bert-large" }]
[request.job]
global_batch = 64
micro_batches = [1]
[request.space]
name = "published"
hbm_gib = 32
glb_mib = 32
depth = 64
width = 128
tensor_cores = [32, 64]
[vary]
job.devices = [8, 16]
"""


def test_a_sweep_is_that_of_the_command_line(command: Any, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(FILE)
    ended = command("sweep", str(file), "--out", str(tmp_path / "theirs"))
    assert ended.returncode == 0, ended.stderr
    written = (tmp_path / "theirs/sweep.csv").read_text()
    found = phaze.sweep(file, out=tmp_path / "ours")
    keys = phaze.sweep(vary={"devices": [8, 16]}, model="bert-large", out=tmp_path / "keys", **FEW)
    assert found.to_csv() == written == keys.to_csv() == (tmp_path / "keys/sweep.csv").read_text()
    assert len(found) == 2 and all(result.proof.complete for result in found)
    assert (tmp_path / "theirs/1/outcome.json").read_bytes() == found[0].to_json() == keys.results[0].to_json()
    assert found.table["job.devices"] == [8, 16] and len(found.to_pandas()) == 2
    assert found.report(tmp_path / "page.html").read_bytes() == (tmp_path / "theirs/sweep.html").read_bytes()
    html = found._repr_html_()
    assert html.startswith("<div>") and "<script" not in html and "design." not in html


def test_what_is_done_is_taken_as_it_is_and_models_vary_too(tmp_path: pathlib.Path) -> None:
    told = []
    vary: Dict[str, Any] = {"model": ["bert-large", phaze.Model.builtin("bert-large")], "job.devices": [8]}
    first = phaze.sweep(vary=vary, out=tmp_path / "x", progress=told.append, **FEW)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "x").rglob("outcome.json")}
    again = phaze.sweep(vary=vary, out=tmp_path / "x", **FEW)
    assert first.to_csv() == again.to_csv() and len(before) == 2
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "x").rglob("outcome.json")}
    one, other = first.table["value"]
    assert one == other


def test_parts_of_a_space_are_merged_to_the_answer_of_the_whole(tmp_path: pathlib.Path) -> None:
    parts = [tmp_path / str(number) for number in range(1, 4)]
    told = [phaze.shard("bert-large", part=f"{place.name}/3", out=place, share=tmp_path / "share", **{**FEW, "devices": 8}) for place in parts]
    whole = phaze.search("bert-large", **{**FEW, "devices": 8})
    assert sum(one.designs for one in told) == len(whole.designs)
    merged = phaze.merge(parts, out=tmp_path / "merged")
    assert merged == whole and phaze.load(tmp_path / "merged") == whole and merged.check()
    with pytest.raises(ValueError, match="missing"):
        phaze.merge(parts[1:], out=tmp_path / "lacking")


def test_parts_of_a_grid_of_chips_are_merged_to_the_answer_of_the_whole(tmp_path: pathlib.Path) -> None:
    whole = phaze.search("bert-large", **CHIPS)
    parts = [tmp_path / str(number) for number in (1, 2)]
    told = [phaze.shard("bert-large", part=f"{at + 1}/2", out=out, **CHIPS) for at, out in enumerate(parts)]
    assert sum(one.designs for one in told) == whole.proof.points
    merged = phaze.merge(parts, out=tmp_path / "merged")
    assert merged.over_chips and merged.winner == whole.winner and merged.check()
    assert phaze.load(tmp_path / "merged").winner == whole.winner


def test_a_sweep_over_chips_has_a_row_for_each_budget(tmp_path: pathlib.Path) -> None:
    few = {key: value for key, value in CHIPS.items() if key != "tensor_cores"}
    found = phaze.sweep(vary={"tensor_cores": [8, 16]}, model="bert-large", out=tmp_path / "swept", **few)
    assert found.table["status"] == ["proved", "proved"]
    assert found.table["design.tensor_cores"] == [8, 16]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: phaze.sweep(), "give a file, or vary"),
        (lambda: phaze.sweep(vary={"devices": [8]}, model="bert-large", **FEW), "out is missing"),
        (lambda: phaze.sweep(vary={"devics": [8]}, model="bert-large", out="x", **FEW), "did you mean `devices`?"),
        (lambda: phaze.sweep(vary={"devices": []}, model="bert-large", out="x", **FEW), "has no value"),
        (lambda: phaze.sweep("nowhere.toml"), "nowhere.toml: cannot be read"),
        (lambda: phaze.sweep("sweep.toml", devices=3), "a file says all of it"),
        (lambda: phaze.shard("bert-large", part="4/3", out="x", **FEW), "part: "),
        (lambda: phaze.shard("bert-large", part="1/3", out="x", round_="alone", **FEW), "round_: there is one model"),
        (lambda: phaze.shard("bert-large", part="1/3", out="x", round_="near"), "after: "),
        (lambda: phaze.merge([], out="x"), "shard"),
    ],
)
def test_bad_input_is_a_value_error_with_our_words(call: Any, said: str) -> None:
    with pytest.raises(ValueError) as raised:
        call()
    assert said in str(raised.value)
