"""The published values."""

from importlib.resources import files

import pandas as pd

from mtdlab.analysis.data.published import load_published
from mtdlab.analysis.experiments import EXPERIMENTS
from mtdlab.analysis.measures.trace import d_trace


def test_every_file_is_named_by_its_sources() -> None:
    folder = files("mtdlab.analysis.data.published")
    sources = folder.joinpath("README.md").read_text(encoding="utf-8")
    names = [item.name for item in folder.iterdir() if item.name.endswith(".csv")]
    assert len(names) == 16
    for name in names:
        assert name in sources
        assert len(load_published(name.removesuffix(".csv"))) > 2


def test_the_levels_of_figure_2_are_those_of_its_grid() -> None:
    grid = [(eta, times) for eta in (0.75, 0.85) for times in (1, 2, 4, 8)] + [(0.95, 1)]
    levels = sorted(round(d_trace(eta, times, 1), 3) for eta, times in grid)
    assert load_published("figure2_mtd")["mtd"].tolist() == levels


def test_table_7_is_read_cell_by_cell() -> None:
    cells = next(
        experiment for experiment in EXPERIMENTS if experiment.name == "initial_queue"
    ).published()
    assert len(cells) == 20
    cell = cells[(cells["share"] == 0.25) & (cells["queue_size"] == 512)]
    assert cell["published"].tolist() == [77.30]
    assert isinstance(cells, pd.DataFrame)
