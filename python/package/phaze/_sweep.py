"""Many searches: one table, one page of curves; and parts of a space."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple, Union

from . import _phaze
from ._html import rows
from ._results import SearchResult, show_page
from ._table import Table

if TYPE_CHECKING:
    import pandas

PathLike = Union[str, "os.PathLike[str]"]


class Sweep:
    """The answers of a sweep: a row for each search in `table`, and the searches themselves."""

    __slots__ = ("_directory", "_csv", "_folders", "_table")

    def __init__(self, directory: pathlib.Path, csv: str, folders: Tuple[str, ...]) -> None:
        self._directory = directory
        self._csv = csv
        self._folders = folders
        self._table = Table(_phaze.table(csv))

    @property
    def directory(self) -> pathlib.Path:
        """Where it is kept: sweep.csv, sweep.html, and a folder for each search."""
        return self._directory

    @property
    def table(self) -> Table:
        """A row for each search: the keys that vary, how it ended, figures of each model, the winner."""
        return self._table

    @property
    def results(self) -> Tuple[SearchResult, ...]:
        """The answers in full, read from their folders."""
        return tuple(self[place] for place in range(len(self)))

    def to_csv(self) -> str:
        """The content of sweep.csv."""
        return self._csv

    def to_dict(self) -> Dict[str, List[Any]]:
        """The columns of the table by name."""
        return self._table.to_dict()

    def to_pandas(self) -> "pandas.DataFrame":
        """The table as a frame."""
        return self._table.to_pandas()

    def report(self, path: Optional[PathLike] = None, open: bool = False) -> pathlib.Path:
        """Writes the page of curves, into a temporary file where no path is given."""
        return show_page((self._directory / "sweep.html").read_bytes(), path, open)

    def __len__(self) -> int:
        return len(self._folders)

    def __getitem__(self, place: int) -> SearchResult:
        folder = self._directory / self._folders[place]
        outcome, designs = _phaze.load(folder)
        return SearchResult(outcome.encode(), designs.encode(), str(folder))

    def __iter__(self) -> Iterator[SearchResult]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"Sweep({len(self)} searches in {self._directory})"

    def _repr_html_(self) -> str:
        names = [name for name in self._table.columns if not name.startswith("design.") and name not in ("folder", "reason")]
        body = rows(names, zip(*(self._table[name] for name in names)))
        return f"<div>{len(self)} searches{body}</div>"
