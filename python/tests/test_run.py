"""Ctrl-C, callbacks, threads, forks, limits and going on."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, List

import phaze
import pytest
from conftest import CHIPS, LONG, SMALL

#: Searches that take minutes, by their space.
SPACES: Dict[str, Dict[str, Any]] = {"published": LONG, "chips": {"devices": 1024}}

#: A search is told to stop within this.
PROMPT = 0.2


def interrupted_after(seconds: float, call: Any, when: Callable[[], bool] = lambda: True) -> float:
    """How long after Ctrl-C, which is pressed after so many seconds and when a condition holds, the call ends."""
    pressed: List[float] = []
    ended = threading.Event()

    def press() -> None:
        over = ended.wait(seconds)
        while not over and not when():
            over = ended.wait(0.005)
        if not over:
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        return time.monotonic() - pressed[0]
    finally:
        ended.set()
        presser.join()


@pytest.mark.parametrize("space", SPACES)
def test_an_interrupt_ends_a_search_at_once(space: str) -> None:
    taken = [interrupted_after(seconds, lambda: phaze.search("gpt2-xl", **SPACES[space])) for seconds in (0.1, 0.5, 1.0, 2.0)]
    # A machine that is busy with other things may be late once.
    assert sorted(taken)[2] <= PROMPT, taken


def test_an_interrupted_search_goes_on_where_it_was(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    keywords = {**SMALL, "tensor_cores": [16, 32, 64, 128], "width": [32, 64, 128], "depth": [32, 64, 128], "exhaustive": True}
    journal = out / "journal.jsonl"

    def knows_something() -> bool:
        return journal.exists() and journal.read_bytes().count(b"\n") > 2

    interrupted_after(0.0, lambda: phaze.search("bert-large", out=out, **keywords), knows_something)
    with pytest.raises(ValueError, match="unfinished search"):
        phaze.search("bert-large", out=out, **keywords)
    found = phaze.search("bert-large", resume=out, **keywords)
    assert found.proof.complete and found == phaze.search("bert-large", **keywords)
    assert not journal.exists()


@pytest.mark.parametrize("space", SPACES)
def test_an_exception_of_a_callback_ends_the_search_and_is_raised(space: str) -> None:
    class Enough(Exception):
        pass

    told: List[phaze.Progress] = []

    def callback(progress: phaze.Progress) -> None:
        told.append(progress)
        raise Enough

    start = time.monotonic()
    with pytest.raises(Enough):
        phaze.search("gpt2-xl", progress=callback, **SPACES[space])
    assert len(told) == 1 and time.monotonic() - start < 5.0


@pytest.mark.parametrize("space", SPACES)
def test_progress_is_told(space: str) -> None:
    told: List[phaze.Progress] = []
    phaze.search("gpt2-xl", progress=told.append, time_limit=2.0, **SPACES[space])
    assert told and all(isinstance(one.what, str) for one in told)
    assert [one.seconds for one in told] == sorted(one.seconds for one in told)


def test_a_bar_or_a_line_is_shown(capsys: Any, monkeypatch: Any) -> None:
    phaze.search("gpt2-xl", progress=True, time_limit=1.0, **LONG)
    assert capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    phaze.search("gpt2-xl", progress=True, time_limit=1.0, **LONG)
    said = capsys.readouterr().err
    assert "designs bounded" in said or "evaluated" in said


@pytest.mark.parametrize("space", SPACES)
def test_a_time_limit_ends_with_a_gap(space: str) -> None:
    start = time.monotonic()
    found = phaze.search("gpt2-xl", time_limit=1.0, **SPACES[space])
    assert not found.proof.complete and time.monotonic() - start < 60
    assert found.proof.stopped_by


@pytest.mark.parametrize("space", [SMALL, CHIPS], ids=list(SPACES))
def test_two_searches_run_in_two_threads(space: Dict[str, Any]) -> None:
    found = phaze.search("bert-large", **space)
    answers: List[phaze.SearchResult] = []
    threads = [threading.Thread(target=lambda: answers.append(phaze.search("bert-large", **space))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [found, found]


def test_other_threads_run_meanwhile() -> None:
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    phaze.search("gpt2-xl", time_limit=1.0, **LONG)
    stop.set()
    thread.join()
    assert counted > 50


def test_the_number_of_threads_changes_nothing(found: phaze.SearchResult) -> None:
    assert phaze.search("bert-large", threads=1, **SMALL) == found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("space", SPACES)
def test_a_forked_process_searches_too(space: str) -> None:
    few = SMALL if space == "published" else CHIPS
    found = phaze.search("bert-large", **few)
    # Also while a search that was interrupted is still ending.
    interrupted_after(0.5, lambda: phaze.search("gpt2-xl", **SPACES[space]))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, b"same" if phaze.search("bert-large", **few) == found else b"else")
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"same"
    assert os.waitpid(child, 0)[1] == 0
