"""What the first page of the documentation shows, word for word but for a limit of time."""

from __future__ import annotations

import json
import pathlib
import webbrowser
from typing import Any, List

import phaze
import pytest

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "inputs/models/llama3-8b.json"


def test_a_chip_is_searched_looked_at_kept_and_checked(tmp_path: pathlib.Path, capsys: Any) -> None:
    r = phaze.search("llama3-8b", devices=1024, max_area_mm2=600, progress=True, time_limit=3.0)
    assert capsys.readouterr().err
    assert r.winner is not None and r.over_chips and r.request.space.max_area_nm2 == 600 * 10**12
    assert r.winner.design.tensor_cores >= 1 and r.winner.design.die_mm2 <= 600 and r.winner.strategy
    # The time may also end what is told besides, when the winner is proved already.
    assert r.proof.complete or r.proof.stopped_by == "the time limit"
    assert "<svg" in r._repr_html_() and "mm²" in str(r) and repr(r).startswith("SearchResult(llama3-8b")
    assert len(r.designs) > 0 and len(r.designs.to_pandas()) == len(r.designs)
    r.save(tmp_path / "results/x")
    assert phaze.load(tmp_path / "results/x").check()


def test_a_placement_has_stages_and_a_timeline() -> None:
    p = phaze.place("llama3-70b", design="h100-sxm", devices=256)
    assert p.stages and p.timeline()


def test_a_configuration_becomes_a_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pathlib.Path("config.json").write_text(CONFIG.read_text())
    files = phaze.plan("config.json", gpus="256xh100-sxm", tokens="2T").launch("megatron")
    assert "torchrun" in files["run.sh"]


def test_the_small_verbs_answer() -> None:
    assert phaze.inspect(json.loads(CONFIG.read_text())).parameters == 8_030_261_248
    found = phaze.estimate(matmul=(1, 2048, 12288, 12288), design="tpuv4")
    assert isinstance(found, phaze.Estimate) and found.fraction_of_peak > 0
    graph = {"tensor_cores": 1, "vector_cores": 1, "edges": [], "operators": [{"id": "a", "core": "tensor", "alone": 2}]}
    assert phaze.schedule(graph)[0].makespan == 2


def test_a_page_is_opened_where_that_is_asked_for(found: phaze.SearchResult, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: List[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = found.report(open=True)
    assert opened == [page.resolve().as_uri()]
    page.unlink()
