"""What the binding costs: a search and a placement beside the command line, and a million rows into pandas.

Searches are compared by the time of all processors, a placement and the table by the clock with the processors' time
beside. Command and call take turns and the least of several is taken, because other work on a machine only adds to
either. `PHAZE` names the command, else it is looked for in target/release.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

import phaze

PROGRAM = os.environ.get("PHAZE", str(pathlib.Path(__file__).resolve().parents[1] / "target/release/phaze"))

SPACE: Dict[str, Any] = {
    "space": "published",
    "devices": 1024,
    "hbm_gib": 32,
    "depth": 64,
    "glb_mib": 32,
}


def clock(_whose: int) -> float:
    """Seconds by the clock."""
    return time.perf_counter()


def processors(whose: int) -> float:
    """Seconds of all processors, of this process or of those that it started."""
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


#: What is measured, and whose time it takes.
Call = Tuple[Callable[[], Any], int]
HERE, STARTED = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN


def least(times: int, calls: Sequence[Call], by: Callable[[int], float] = clock) -> List[float]:
    """The least seconds of each of some calls that take turns."""
    found = [float("inf")] * len(calls)
    for _ in range(times):
        for place, (call, whose) in enumerate(calls):
            start = by(whose)
            call()
            found[place] = min(found[place], by(whose) - start)
    return found


def program_runs(*words: str) -> Call:
    """A run of the command line."""
    return (lambda: subprocess.run([PROGRAM, *words], check=True, stdout=subprocess.DEVNULL)), STARTED


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


def search() -> None:
    """A search beside that of the command line, with all threads and files."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = pathlib.Path(folder) / "request.toml", str(pathlib.Path(folder) / "out")
        file.write_text(request(), encoding="utf-8")
        command = program_runs("search", str(file), "--out", out, "--force")
        call: Call = lambda: phaze.search(request=file, out=out, force=True), HERE
        theirs, ours = least(7, [command, call], processors)
    print(f"search: command line {theirs:.2f} s, import phaze {ours:.2f} s of processors ({ours / theirs - 1:+.1%})")


def place() -> None:
    """A placement beside that of the command line, whose process has to start first."""
    strategy = "t=1,p=1,d=8,zero=1,recompute=none"
    command = program_runs("place", "bert-large", "--design", "a100-80g", "--devices", "8", "--json", "--strategy", strategy)
    call: Call = lambda: phaze.place("bert-large", design="a100-80g", devices=8, strategy=strategy), HERE
    calls = [command, program_runs("--version"), call]
    theirs, start, ours = (1e3 * taken for taken in least(40, calls))
    busy = [1e3 * taken for taken in least(40, calls, processors)]
    print(
        f"place: command line {theirs - start:.2f} ms without the start of its process, import phaze {ours:.2f} ms "
        f"({ours - theirs + start:+.2f} ms; of processors {busy[2] - busy[0] + busy[1]:+.2f} ms)"
    )


def table() -> None:
    """A million rows of designs into pandas."""
    text = phaze.search(**{**SPACE, "tensor_cores": [32, 64]}, model="bert-large", global_batch=256).to_csv().decode()
    header, *rows = text.splitlines()
    many = [row for _ in range(1_000_000 // len(rows) + 1) for row in rows][:1_000_000]
    found = phaze.Table(phaze._phaze.table("\n".join([header, *many]) + "\n"))
    (taken,), (busy,) = least(5, [(found.to_pandas, HERE)]), least(5, [(found.to_pandas, HERE)], processors)
    print(f"table: {len(found):,} rows of {len(found.columns)} columns into pandas in {taken:.2f} s, {busy:.2f} s of processors")


if __name__ == "__main__":
    search()
    place()
    table()
