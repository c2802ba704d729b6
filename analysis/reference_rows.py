"""Published results of methods, as rows for comparison with a study's."""

import pandas as pd

from analysis.published import load_published
from analysis.tasks import STS, TRANSFER

_RENAMED = {"SST": "SST2"}


def published_sts() -> pd.DataFrame:
    """model, size, the seven STS tasks and their average, x 100; NaN where a value is unknown.

    From MoCoSE's table 1, the papers and programs of related methods, and MixCSE's slides, of which
    only its own rows are taken (means over runs).
    """
    mixcse = load_published("mixcse_sts")
    mixcse = mixcse[mixcse["model"].str.startswith("MixCSE")]
    names = mixcse["model"].str.rsplit("-", n=1)
    values = mixcse.drop(columns="model").apply(_means)
    mixcse = values.assign(model=names.str[0], size=names.str[1])
    tables = [load_published("table1_sts"), load_published("related_sts"), mixcse]
    return _rows(pd.concat(tables, ignore_index=True), STS)


def published_transfer() -> pd.DataFrame:
    """model, size, the seven transfer tasks and their average, x 100: MoCoSE's table 2."""
    return _rows(load_published("table2_transfer").rename(columns=_RENAMED), TRANSFER)


def _means(column: pd.Series) -> pd.Series:
    """The means of cells such as 71.71±4.04."""
    means: pd.Series = column.astype("str").str.partition("±")[0].astype("float64")
    return means


def _rows(table: pd.DataFrame, tasks: tuple[str, ...]) -> pd.DataFrame:
    """By size, then by average."""
    ordered = table.sort_values(["size", "average"], ascending=[True, False], kind="stable")
    return ordered[["model", "size", *tasks, "average"]].reset_index(drop=True)
