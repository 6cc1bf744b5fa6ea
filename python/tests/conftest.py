"""What tests share: a small search that takes a second, and the command line beside."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any, Callable, Dict, List

import phaze
import pytest

#: A handful of designs.
SMALL: Dict[str, Any] = {
    "devices": 64,
    "global_batch": 256,
    "micro_batches": [1, 2],
    "space": "published",
    "hbm_gib": 32,
    "depth": 64,
    "glb_mib": 32,
    "width": [64, 128],
    "tensor_cores": [32, 64, 128],
}

#: A few chips: every knob but two is fixed.
CHIPS: Dict[str, Any] = {
    "space": "chips", "devices": 64, "global_batch": 256, "tensor_cores": [8, 16], "width": 128, "depth": 128,
    "vector_cores": 16, "stacks": [2, 4], "links": 450, "strategy": "c=1,v=1,zero=0,t=1",
}

#: A search that takes minutes, to be interrupted.
LONG: Dict[str, Any] = {"space": "published", "devices": 1024}


@pytest.fixture(scope="session")
def found() -> phaze.SearchResult:
    return phaze.search("bert-large", **SMALL)


@pytest.fixture(scope="session")
def command() -> Callable[..., "subprocess.CompletedProcess[bytes]"]:
    """Runs `phaze` of the same build; PHAZE names it, else it is looked for in target/release."""
    root = pathlib.Path(__file__).resolve().parents[2]
    known: List[str] = [os.environ.get("PHAZE", ""), str(root / "target/release/phaze"), shutil.which("phaze") or ""]
    program = next((name for name in known if name and pathlib.Path(name).exists()), None)
    if program is None:
        pytest.skip("the command line is not built: cargo build --release, or PHAZE=path")

    def run(*words: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run([str(program), *words], capture_output=True, check=False)

    return run


def as_request(keywords: Dict[str, Any], model: str) -> str:
    """The request file that keywords flatten."""
    tables: Dict[Any, Dict[str, Any]] = {}
    where = dict(phaze._phaze.search_keys())
    for key, value in keywords.items():
        if key == "space":
            # By its name alone: a key of its table, where there are several spaces.
            if where.get("name") == "space":
                tables.setdefault("space", {})["name"] = value
            continue
        tables.setdefault(where[key], {})[key] = value
    lines = [f"{key} = {json.dumps(value)}" for key, value in tables.pop(None, {}).items()]
    lines.append(f"[[model]]\nname = {json.dumps(model)}")
    for table, keys in tables.items():
        lines.append(f"[{table}]")
        lines.extend(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    return "\n".join(lines) + "\n"
