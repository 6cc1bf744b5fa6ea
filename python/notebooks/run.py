"""Runs the notebooks of this folder cell by cell, as Jupyter would; `--write FOLDER` renders them there.

    python run.py                       # every notebook runs to its end
    python run.py --write docs/notebooks sweep_and_plot
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import pathlib
import re
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

HERE = pathlib.Path(__file__).resolve().parent


def cells(text: str) -> List[Tuple[str, str]]:
    """The cells of a script, each `markdown` or `code`."""
    found: List[Tuple[str, str]] = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            found.append(("markdown", "\n".join(re.sub(r"^# ?", "", line) for line in body.strip().splitlines())))
        else:
            found.append(("code", body.strip()))
    return found


def executed(code: str, names: Dict[str, Any], file: str) -> Tuple[str, Any]:
    """What a cell prints, and the value of its last expression."""
    tree = ast.parse(code, file)
    last: Optional[ast.Expression] = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, file, "exec"), names)
        value = eval(compile(last, file, "eval"), names) if last is not None else None
    return printed.getvalue(), value


def rendered(script: pathlib.Path, pictures: Optional[pathlib.Path]) -> str:
    """The notebook with what its cells answer, in Markdown."""
    names: Dict[str, Any] = {"__name__": "__main__"}
    page: List[str] = []
    for place, (kind, text) in enumerate(cells(script.read_text(encoding="utf-8"))):
        if kind == "markdown":
            page.append(text)
            continue
        page.append(f"```python\n{text}\n```")
        printed, value = executed(text, names, script.name)
        if printed.strip():
            page.append(f"```text\n{printed.rstrip()}\n```")
        if value is None:
            continue
        svg = getattr(value, "_repr_svg_", None)
        html = getattr(value, "_repr_html_", None)
        if callable(svg) and pictures is not None:
            picture = pictures / f"{script.stem}-{place}.svg"
            picture.write_text(svg(), encoding="utf-8")
            page.append(f"![what the cell shows]({picture.name})")
        elif callable(html) and html() and not callable(svg):
            page.append(html())
        else:
            page.append(f"```text\n{value!r}\n```")
    return "\n\n".join(page) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="notebooks, all where none is named")
    parser.add_argument("--write", type=pathlib.Path, help="render into this folder")
    given = parser.parse_args()
    scripts = sorted(path for path in HERE.glob("*.py") if path.name != "run.py")
    for script in scripts:
        if given.names and script.stem not in given.names:
            continue
        start = time.perf_counter()
        if given.write is not None:
            given.write.mkdir(parents=True, exist_ok=True)
        page = rendered(script, given.write)
        if given.write is not None:
            (given.write / f"{script.stem}.md").write_text(page, encoding="utf-8")
        print(f"{script.stem}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
