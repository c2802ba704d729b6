"""What settings mean whatever the size of queue and encoder, so that rows of papers are matched.

Runs and published rows get the same columns: the share of the queue that is random at first, a
slice of the queue in shares, the prediction dimension as a share of the encoder's, augmentations by
name.
"""

import re
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction

import numpy as np
import pandas as pd

from mtdlab.analysis.data.published import load_published, read_methods
from mtdlab.analysis.data.runs import level_of
from mtdlab.analysis.data.settings import format_setting
from mtdlab.analysis.measures.trace import COMPONENTS

MADE_OF: Mapping[str, tuple[str, ...]] = {
    "share": ("initial_queue_size", "queue_size"),
    "slice": ("queue_slice", "queue_size"),
    "width": ("prediction_dim",),
    "augmented": ("augmentation", "fgsm_epsilon"),
    "augmentation_kind": ("augmentation", "fgsm_epsilon"),
    "mtd": tuple(COMPONENTS),
}
"""The settings that a column by meaning follows from; of other columns the one of its name."""
ALL = "all"
PUBLISHED_WIDTH = 768
"""The dimension of the published runs' encoder."""
_SHARES = {"none": 0.0, "1/4 of the queue": 0.25, "1/2 of the queue": 0.5, "whole queue": 1.0}
_AUGMENTATIONS: Mapping[str, str] = {
    "dropout only": "none",
    "fgsm": "fgsm",
    "position shuffle": "position-shuffle",
    "token dropout": "token-cutoff",
    "feature dropout": "feature-cutoff",
    "typos": "typos",
    "synonym replace": "synonyms",
    "paraphrasing": "paraphrase",
    "back-translation": "back-translation",
}
_DECIMALS = 3
_THIRDS = 3
_MODEL = re.compile(r"[^:,+]*/")


class PublishedFileError(ValueError):
    """A file of published values, or of claims, that is not as it came."""


def load_rows(name: str) -> pd.DataFrame:
    """The rows of a published file by meaning: its values are in the column `published`.

    Raises PublishedFileError where the file was edited so that it cannot be read.
    """
    try:
        table = load_published(name).rename(
            columns={"average": "published", "correlation": "published"}
        )
        table = _READERS[name](table) if name in _READERS else table
        known = np.isfinite(table["published"].astype("float64"))
    except (KeyError, ValueError, TypeError) as error:
        raise PublishedFileError(
            f"{name}.csv of the published values cannot be read ({error}); it was edited: install "
            "mtdlab again"
        ) from None
    return table[known].reset_index(drop=True)


def _read_augmentations(table: pd.DataFrame) -> pd.DataFrame:
    """Table 5 with the names that studies use."""
    parameters = table["parameter"].fillna("").astype("str")
    names = table["augmentation"].map(_AUGMENTATIONS)
    joined = names.where(parameters == "", names + ":" + parameters)
    return pd.DataFrame(
        {"augmented": joined, "augmentation_kind": joined, "published": table["published"]}
    )


def _read_slices(table: pd.DataFrame) -> pd.DataFrame:
    """Table 8 with positions as in studies, and their shares of its 1,024 keys."""
    positions = table.pop("positions_used").str.replace(" and ", ",")
    return table.assign(queue_slice=positions, slice=[_slice(text, 1024) for text in positions])


def _read_initial_queue(table: pd.DataFrame) -> pd.DataFrame:
    """Table 7 as share, queue_size and published, a row per cell."""
    cells = table.melt("initial_queue", var_name="queue_size", value_name="published")
    cells["share"] = cells.pop("initial_queue").map(_SHARES)
    cells["queue_size"] = cells["queue_size"].astype("int64")
    return cells[["share", "queue_size", "published"]]


_READERS: Mapping[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "table5_augmentation": _read_augmentations,
    "table6a_prediction_dim": lambda table: table.assign(
        width=[_width(value, PUBLISHED_WIDTH) for value in table["prediction_dim"]]
    ),
    "table7_initial_queue": _read_initial_queue,
    "table8_queue_slices": _read_slices,
    **dict.fromkeys(
        ("table1_sts", "table2_transfer", "mixcse_sts", "mixcse_transfer"), read_methods
    ),
}


def add_meaning(
    runs: pd.DataFrame, names: Collection[str], width: int | None = None
) -> pd.DataFrame:
    """The runs with those of the columns `names` that follow from their settings.

    Missing where they do not, as of a run without a queue. `width` is the dimension of the encoder;
    None: not known.
    """
    wanted = [name for name in names if name in _COLUMNS and {*MADE_OF[name]} <= {*runs}]
    columns = {name: _COLUMNS[name](runs, width) for name in wanted}
    if "size" in names and "encoder" in runs:
        is_large = runs["encoder"].astype("str").str.contains("large")
        columns["size"] = is_large.map({True: "large", False: "base"})
    return runs.assign(**columns)


def _shares(runs: pd.DataFrame, _: int | None) -> pd.Series:
    size = runs["queue_size"].astype("float64")
    return (runs["initial_queue_size"] / size.where(size > 0)).round(_DECIMALS)


def _slices(runs: pd.DataFrame, _: int | None) -> pd.Series:
    pairs = zip(runs["queue_slice"], runs["queue_size"], strict=True)
    texts = [_slice(str(text), int(size)) if size > 0 and text else None for text, size in pairs]
    return pd.Series(texts, index=runs.index, dtype="object")


def _slice(text: str, size: int) -> str:
    """Positions of a queue as shares of it: 256-768 of 1,024 is 1/4-3/4."""
    if text == ALL:
        return text
    ends = re.findall(r"(\d+)-(\d+)", text)
    return ",".join("-".join(str(Fraction(int(end), size)) for end in pair) for pair in ends)


def _width(dimension: float, width: int | None) -> float:
    """A dimension as a share of the encoder's, that of a third which it is rounded from."""
    if width is None or not np.isfinite(dimension):
        return np.nan
    exact = dimension / width if dimension else 1.0
    third = round(_THIRDS * exact) / _THIRDS
    return round(third if abs(third - exact) * width <= 0.5 else exact, _DECIMALS)


def _augmented(runs: pd.DataFrame, _: int | None) -> pd.Series:
    """Recorded augmentations with the FGSM step; models without their folder or owner."""
    steps = [f"fgsm:{format_setting(value)}" if value > 0 else "" for value in runs["fgsm_epsilon"]]
    names = [_MODEL.sub("", text) for text in runs["augmentation"].fillna("").astype("str")]
    joined = [
        "+".join(part for part in (name if name != "none" else "", step) if part) or "none"
        for name, step in zip(names, steps, strict=True)
    ]
    known = pd.Series(joined, index=runs.index, dtype="str")
    return known.where(runs["augmentation"].notna())


def _published_augmentation(augmented: str) -> str:
    """The published row that an augmentation is compared with; itself if there is no such row."""
    name, _, parameters = augmented.partition(":")
    # the paper does not state its share of typos, nor the models of its back-translation
    if name == "typos" and "+" not in parameters:
        return "typos"
    if name == "back-translation":
        there, _, back = parameters.partition(",")
        if "en-de" in there and "de-en" in back and "+" not in back:
            return "back-translation:en-de-en"
    return augmented


_COLUMNS: Mapping[str, Callable[[pd.DataFrame, int | None], pd.Series]] = {
    "share": _shares,
    "slice": _slices,
    "width": lambda runs, width: (
        runs["prediction_dim"].astype("float64").map(lambda value: _width(value, width))
    ),
    "augmented": _augmented,
    "augmentation_kind": lambda runs, width: _augmented(runs, width).map(
        _published_augmentation, na_action="ignore"
    ),
    "mtd": lambda runs, _: runs["mtd"].astype("float64"),
}


def is_value(column: pd.Series, value: bool | float | str) -> pd.Series:
    """Which rows have a value: numbers to three decimals, or to ten digits where they are small."""
    if isinstance(value, str) or not pd.api.types.is_numeric_dtype(column):
        return column.astype("object") == value
    same = np.isclose(column.astype("float64"), value, rtol=1e-9, atol=0)
    if value >= 1:
        same |= column.astype("float64").map(level_of).eq(level_of(float(value))).to_numpy()
    return pd.Series(same, index=column.index)
