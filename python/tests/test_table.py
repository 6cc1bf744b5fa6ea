"""Designs as tables of other programs."""

from __future__ import annotations

from typing import Any

import phaze
import pytest


def test_a_table_is_that_of_the_csv(found: phaze.SearchResult) -> None:
    lines = found.to_csv().decode().splitlines()
    table = found.designs
    assert len(table) == len(lines) - 1 and ",".join(table.columns) == lines[0].replace('"', "")
    assert table["tensor_cores"] == [int(line.split(",")[1]) for line in lines[1:]]
    with pytest.raises(KeyError, match="did you mean `tensor_cores`?"):
        table["tensor_core"]


def test_pandas_takes_a_table(found: phaze.SearchResult) -> None:
    pandas = pytest.importorskip("pandas")
    frame = found.designs.to_pandas()
    assert list(frame.columns) == list(found.designs.columns) and len(frame) == len(found.designs)
    assert found.winner is not None
    best = frame.loc[frame["value"].idxmax()]
    assert best["design"] == found.winner.design.index
    assert isinstance(frame, pandas.DataFrame)
    assert {str(kind) for kind in frame.dtypes} <= {"int64", "Int64", "float64", "category"}


def test_a_frame_may_be_changed_and_the_table_stays(found: phaze.SearchResult) -> None:
    pytest.importorskip("pandas")
    frame = found.designs.to_pandas()
    before = found.designs["tensor_cores"]
    frame.loc[0, "tensor_cores"] = 1
    frame.loc[0, "area_um2"] = 0.0
    assert frame.loc[0, "tensor_cores"] == 1 and found.designs["tensor_cores"] == before


def test_others_take_it_without_a_copy_through_text(found: phaze.SearchResult) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(found.designs)
    assert table.num_rows == len(found.designs) and table.column_names == list(found.designs.columns)
    assert table.column("tensor_cores").to_pylist() == found.designs["tensor_cores"]
    pandas = pytest.importorskip("pandas")
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(found.designs)["tensor_cores"].tolist() == found.designs["tensor_cores"]
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(found.designs) if not hasattr(polars, "DataFrame") else polars.DataFrame(found.designs)
    assert frame.height == len(found.designs)
    assert frame["tensor_cores"].to_list() == found.designs["tensor_cores"]


def test_duckdb_queries_it(found: phaze.SearchResult) -> None:
    duckdb = pytest.importorskip("duckdb")
    designs: Any = found.designs  # noqa: F841 (the query names it)
    most = duckdb.sql("select max(tensor_cores) from designs").fetchall()
    assert most == [(max(found.designs["tensor_cores"]),)]


def test_a_million_designs_are_a_frame(found: phaze.SearchResult) -> None:
    pytest.importorskip("pandas")
    header, *rows = found.to_csv().decode().splitlines()
    many = [row for _ in range(1_000_000 // len(rows) + 1) for row in rows][:1_000_000]
    table = phaze.Table(phaze._phaze.table("\n".join([header, *many]) + "\n"))
    frame = table.to_pandas()
    assert len(frame) == 1_000_000
    few = found.designs.to_pandas()
    assert frame["value"].sum() == pytest.approx(few["value"].sum() * (1_000_000 / len(few)), rel=1e-3)
    assert set(frame["strategy"].dropna()) == set(few["strategy"].dropna())


def test_a_torn_table_is_refused(found: phaze.SearchResult) -> None:
    with pytest.raises(ValueError, match="a row has"):
        phaze._phaze.table("a,b\n1,2\n3\n")
