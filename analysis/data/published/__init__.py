"""Published values as frames, and rows of published results for comparison with a study's.

Spearman correlations and accuracies are x 100. README.md in this folder lists the source of each
file.
"""

from importlib.resources import files

import pandas as pd

from mtdlab.analysis.data.tasks import STS, TRANSFER

SOURCE = "published: BERT-base, 10⁶ Wikipedia sentences, other data"
METHOD = "mocose"
"""The method of the published trials."""
SCORE = "Spearman ρ × 100 (mean of 7 STS tasks)"


def load_published(name: str) -> pd.DataFrame:
    """One published table or figure, a row per row of the file `name` without `.csv`."""
    with files(__package__).joinpath(f"{name}.csv").open(encoding="utf-8") as handle:
        return pd.read_csv(handle)


def load_curve(name: str) -> pd.DataFrame:
    """A published curve with the column names of a study: mtd, mean, low, high."""
    names = {"correlation": "mean", "band_low": "low", "band_high": "high"}
    return load_published(name).rename(columns=names)


def published_sts() -> pd.DataFrame:
    """Published STS scores x 100: model, size, the seven tasks and their average; NaN: unknown.

    The values are from MoCoSE's table 1, the papers and programs of related methods, and MixCSE's
    slides, of which only its own rows are taken (means over runs).
    """
    mixcse = load_published("mixcse_sts")
    mixcse = _split_runs(mixcse[mixcse["model"].str.startswith("MixCSE")])
    tables = [load_published("table1_sts"), load_published("related_sts"), mixcse]
    return _rows(pd.concat(tables, ignore_index=True), STS)


def published_transfer() -> pd.DataFrame:
    """Published transfer scores x 100: model, size, seven tasks, average (MoCoSE's table 2)."""
    return _rows(load_published("table2_transfer").rename(columns={"SST": "SST2"}), TRANSFER)


def _split_runs(table: pd.DataFrame) -> pd.DataFrame:
    """The slides' table with a column size, and the means of cells such as 71.71±4.04."""
    names = table["model"].str.rsplit("-", n=1)
    cells = table.drop(columns="model").astype("str")
    values: pd.DataFrame = cells.apply(
        lambda column: column.str.partition("±")[0].astype("float64")
    )
    return values.assign(model=names.str[0], size=names.str[1])


_METHODS = {"MoCoSE-BERT": "mocose", "SimCSE-BERT": "simcse", "MixCSE-BERT": "mixcse"}


def read_methods(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of methods of BERT, with the name that a study gives the method."""
    table = (
        table if "size" in table else _split_runs(table.rename(columns={"published": "average"}))
    )
    named = table.rename(columns={"SST": "SST2", "average": "published"})
    named = named.assign(method=named["model"].map(_METHODS))
    return named[named["method"].notna()]


def _rows(table: pd.DataFrame, tasks: tuple[str, ...]) -> pd.DataFrame:
    """The rows of a published table, sorted by size, then by average."""
    ordered = table.sort_values(["size", "average"], ascending=[True, False], kind="stable")
    return ordered[["model", "size", *tasks, "average"]].reset_index(drop=True)
