"""Designs as a table: pandas, polars, pyarrow and DuckDB take it without a copy through text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple

from . import _phaze

if TYPE_CHECKING:
    import pandas


class Table:
    """Every design of a space, or every box of a proof, one row each; docs/outcome.md documents the columns.

    Give it to `polars.from_arrow`, `pyarrow.table`, DuckDB, or anything else that knows Arrow's PyCapsule
    interface; `to_pandas` makes a frame, without pyarrow.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: _phaze.DesignTable) -> None:
        self._raw = raw

    @property
    def columns(self) -> Tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._raw.column_names)

    def __len__(self) -> int:
        return self._raw.num_rows

    def __getitem__(self, column: str) -> List[Any]:
        return self._raw.column(column)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def to_dict(self) -> Dict[str, List[Any]]:
        """The columns by name; None where there is no value."""
        return {name: self._raw.column(name) for name in self.columns}

    def to_pandas(self) -> "pandas.DataFrame":
        """A frame: whole numbers as int64 (Int64 where some are missing), words as categories."""
        import numpy
        import pandas

        def series(name: str) -> Any:
            kind, values, missing, words = self._raw.raw(name)
            array = numpy.frombuffer(values, dtype=kind)
            if words is not None:
                return pandas.Categorical.from_codes(array, categories=pandas.Index(words))
            if missing is not None:
                return pandas.arrays.IntegerArray(array, numpy.frombuffer(missing, dtype=bool))
            return array

        return pandas.DataFrame({name: series(name) for name in self.columns}, copy=False)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._raw.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._raw.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"Table({len(self):,} rows, {len(self.columns)} columns)"

    def _repr_html_(self) -> str:
        from ._html import table_html

        return table_html(self)
