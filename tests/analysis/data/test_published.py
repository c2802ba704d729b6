"""The published values."""

from importlib.resources import files

import pandas as pd
import pytest

from mtdlab.analysis.data.published import load_published, published_names
from mtdlab.analysis.experiments.catalogue import EXPERIMENTS
from mtdlab.analysis.measures.trace import d_trace


def test_every_file_is_named_by_its_sources() -> None:
    sources = (
        files("mtdlab.analysis.data.published").joinpath("README.md").read_text(encoding="utf-8")
    )
    assert len(published_names()) == 16
    for name in published_names():
        assert f"{name}.csv" in sources
        assert len(load_published(name)) > 2


def test_the_levels_of_figure_2_are_those_of_its_grid() -> None:
    grid = [(eta, times) for eta in (0.75, 0.85) for times in (1, 2, 4, 8)] + [(0.95, 1)]
    levels = sorted(round(d_trace(eta, times, 1), 3) for eta, times in grid)
    assert load_published("figure2_mtd")["mtd"].tolist() == levels


def test_table_7_is_read_cell_by_cell() -> None:
    cells = next(each for each in EXPERIMENTS if each.name == "initial_queue").published()
    assert len(cells) == 20
    cell = cells[(cells["share"] == 0.25) & (cells["queue_size"] == 512)]
    assert cell["published"].tolist() == [77.30]
    assert isinstance(cells, pd.DataFrame)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"unknown published values '\.\./table1'; choose from figure2_mtd"
    ):
        load_published("../table1")
