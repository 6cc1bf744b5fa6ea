"""Pictures without scripts: what notebooks and pages of documentation show."""

from __future__ import annotations

import os
import pathlib
from typing import Iterable, Optional, Sequence, Tuple, Union

from ._html import scatter as _scatter


class Picture:
    """A static picture; notebooks show it, `save` writes an SVG file."""

    __slots__ = ("svg",)

    #: Its text.
    svg: str

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: Union[str, "os.PathLike[str]"]) -> pathlib.Path:
        """Writes the picture."""
        place = pathlib.Path(path)
        place.write_text(self.svg, encoding="utf-8")
        return place

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture({len(self.svg)} characters of SVG)"


def scatter(
    x: Iterable[float],
    y: Iterable[float],
    labels: Tuple[str, str] = ("", ""),
    names: Optional[Sequence[str]] = None,
    mark: Optional[int] = None,
) -> Picture:
    """Points in a plane, one of them marked; each tells its name when it is pointed at.

    >>> scatter([1, 2, 4], [10, 19, 35], ("devices", "tokens/s")).svg.count("<circle")
    3
    """
    pairs = list(zip(x, y))
    said = names if names is not None else [f"{a:.4g}, {b:.4g}" for a, b in pairs]
    points = [(float(a), float(b), name) for (a, b), name in zip(pairs, said)]
    return Picture(_scatter(points, mark, labels))
