"""Runs the notebooks of this folder cell by cell, as Jupyter would; `--write FOLDER` renders them there.

    python run.py                       # every notebook runs to its end
    python run.py --write docs/notebooks sweep_and_plot

Pictures are files of their own, because pages of Markdown are shown where pictures inside them are stripped.
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


def shown(value: Any) -> str:
    """What a notebook shows of a value, as Jupyter chooses."""
    for name in ("_repr_html_", "_repr_svg_"):
        how = getattr(value, name, None)
        if callable(how) and (text := how()):
            return str(text)
    return f"```text\n{value!r}\n```"


def rendered(script: pathlib.Path, pictures: Dict[str, str]) -> str:
    """The notebook with what its cells answer, in Markdown; its pictures are put beside, by name."""
    names: Dict[str, Any] = {"__name__": "__main__"}
    page: List[str] = []

    def beside(found: "re.Match[str]") -> str:
        name = f"{script.stem}-{len(pictures) + 1}.svg"
        # In a file of its own a picture knows no page whose colour it could take; its ground is white.
        pictures[name] = found[0].replace(' role="img"', ' role="img" style="background:white;color:black"') + "\n"
        return f'<img src="{name}" alt="what the cell shows">'

    for kind, text in cells(script.read_text(encoding="utf-8")):
        if kind == "markdown":
            page.append(text)
            continue
        page.append(f"```python\n{text}\n```")
        printed, value = executed(text, names, script.name)
        if printed.strip():
            page.append(f"```text\n{printed.rstrip()}\n```")
        if value is None:
            continue
        page.append(re.sub(r"<svg.*?</svg>", beside, shown(value), flags=re.DOTALL))
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
        pictures: Dict[str, str] = {}
        page = rendered(script, pictures)
        if given.write is not None:
            given.write.mkdir(parents=True, exist_ok=True)
            for stale in given.write.glob(f"{script.stem}-*.svg"):
                stale.unlink()
            for name, text in {f"{script.stem}.md": page, **pictures}.items():
                (given.write / name).write_text(text, encoding="utf-8")
        print(f"{script.stem}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
