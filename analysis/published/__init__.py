"""Published values as frames.

Spearman correlations and accuracies are x 100. README.md in this folder lists the source of each
file.
"""

from importlib.resources import files

import pandas as pd

SOURCE = "published: BERT-base, 10⁶ Wikipedia sentences, other data"
SCORE = "Spearman ρ × 100 (mean of 7 STS tasks)"


def published_names() -> tuple[str, ...]:
    """The names that `load_published` knows, in alphabetical order."""
    folder = files(__package__).iterdir()
    return tuple(sorted(item.name[:-4] for item in folder if item.name.endswith(".csv")))


def load_published(name: str) -> pd.DataFrame:
    """One published table or figure, one row per row of its file.

    name  the file's name without `.csv`, for example `figure2_mtd`.

    Raises ValueError for a name that is not in `published_names()`.
    """
    if name not in published_names():
        known = ", ".join(published_names())
        raise ValueError(f"unknown published values {name!r}; choose from {known}")
    with files(__package__).joinpath(f"{name}.csv").open(encoding="utf-8") as handle:
        return pd.read_csv(handle)


def load_curve(name: str) -> pd.DataFrame:
    """A published curve with the column names of a study: mtd, mean, low, high.

    Raises ValueError for an unknown name, as `load_published` does.
    """
    names = {"correlation": "mean", "band_low": "low", "band_high": "high"}
    return load_published(name).rename(columns=names)
