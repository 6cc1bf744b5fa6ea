"""What the binding costs: a search and a placement beside the command line, and a million rows into pandas.

Searches are compared by the time of all processors, which other work on the machine does not change; a placement
and the table by the clock, with the processors' time beside. `PHAZE` names the command, else it is looked for in target/release.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time
from typing import Any, Callable, Dict, List

import phaze

SPACE: Dict[str, Any] = {
    "space": "published",
    "devices": 1024,
    "hbm_gib": 32,
    "depth": 64,
    "glb_mib": 32,
}


def seconds(call: Callable[[], Any], times: int) -> float:
    """The median of several calls."""
    taken: List[float] = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def processor(call: Callable[[], Any], whose: int, times: int) -> float:
    """The median of the processors' time of several calls, here or of processes that were started."""
    taken: List[float] = []
    for _ in range(times):
        before = resource.getrusage(whose)
        call()
        after = resource.getrusage(whose)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


def request() -> str:
    """The same search as a file."""
    where = dict(phaze._phaze.search_keys())
    tables: Dict[str, List[str]] = {}
    for key, value in SPACE.items():
        table, name = (where[key], key) if key != "space" else ("space", "name")
        if key == "space" and where.get("name") != "space":
            continue
        tables.setdefault(str(table), []).append(f"{name} = {json.dumps(value)}")
    return "[[model]]\nname = 'bert-large'\n" + "".join(f"[{t}]\n" + "\n".join(k) + "\n" for t, k in tables.items())


def main() -> None:
    program = os.environ.get("PHAZE", str(pathlib.Path(__file__).resolve().parents[1] / "target/release/phaze"))
    with tempfile.TemporaryDirectory() as folder:
        file, out = pathlib.Path(folder) / "request.toml", str(pathlib.Path(folder) / "out")
        file.write_text(request(), encoding="utf-8")
        words = [program, "search", str(file), "--out", out, "--force"]
        started = lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)  # noqa: E731
        command = processor(started, resource.RUSAGE_CHILDREN, 5)
        binding = processor(lambda: phaze.search(request=file), resource.RUSAGE_SELF, 5)
        print(f"search: command line {command:.2f} s, import phaze {binding:.2f} s of processors ({binding / command - 1:+.1%})")
    # What the library itself takes is what a placement takes without its objects: the native call.
    given = json.dumps({"design": "a100-80g", "devices": 8, "strategy": "t=1,p=1,d=8,zero=1,recompute=none"})
    whole = seconds(lambda: phaze.place("bert-large", **json.loads(given)), 50)
    words = [program, "place", "bert-large", "--design", "a100-80g", "--devices", "8", "--json"]
    words += ["--strategy", "t=1,p=1,d=8,zero=1,recompute=none"]
    placed = lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)  # noqa: E731
    version = lambda: subprocess.run([program, "--version"], check=True, stdout=subprocess.DEVNULL)  # noqa: E731
    command, start = seconds(placed, 20), seconds(version, 20)
    children, here = resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF
    theirs = processor(placed, children, 20) - processor(version, children, 20)
    ours = processor(lambda: phaze.place("bert-large", **json.loads(given)), here, 50)
    print(
        f"place: command line {1e3 * (command - start):.2f} ms without the start of its process, import phaze "
        f"{1e3 * whole:.2f} ms ({1e3 * (whole - command + start):+.2f} ms; of processors {1e3 * (ours - theirs):+.2f} ms)"
    )
    text = phaze.search(**{**SPACE, "tensor_cores": [32, 64]}, model="bert-large", global_batch=256).to_csv().decode()
    header, *rows = text.splitlines()
    many = [row for _ in range(1_000_000 // len(rows) + 1) for row in rows][:1_000_000]
    table = phaze.Table(phaze._phaze.table("\n".join([header, *many]) + "\n"))
    taken, busy = seconds(table.to_pandas, 3), processor(table.to_pandas, here, 3)
    print(f"table: {len(table):,} rows of {len(table.columns)} columns into pandas in {taken:.2f} s, {busy:.2f} s of processors")


if __name__ == "__main__":
    main()
