"""Published tables with the column names of a study, so that the two can be joined."""

from collections.abc import Mapping

import pandas as pd

from analysis.published import load_published

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


def read_averages(name: str) -> pd.DataFrame:
    """A published file with a column per setting and `average`, which is renamed `published`."""
    return load_published(name).rename(columns={"average": "published"})


def read_augmentations(name: str) -> pd.DataFrame:
    """Table 5 as columns augmented and published, with the names that studies use."""
    table = load_published(name)
    parameters = table["parameter"].fillna("").astype("str")
    names = table["augmentation"].map(_AUGMENTATIONS)
    joined = names.where(parameters == "", names + ":" + parameters)
    return pd.DataFrame({"augmented": joined, "published": table["average"]})


def published_augmentation(augmented: str) -> str:
    """The published row that an augmentation is compared with; itself if there is no such row.

    The paper does not state its share of typos and names only the languages of its
    back-translation,
    not the models. Any share, and any models for these languages, are compared with its rows.
    """
    name, _, parameters = augmented.partition(":")
    if name == "typos" and "+" not in parameters:
        return "typos"
    if name == "back-translation":
        there, _, back = parameters.partition(",")
        if "en-de" in there and "de-en" in back and "+" not in back:
            return "back-translation:en-de-en"
    return augmented


def read_slices(name: str) -> pd.DataFrame:
    """Table 8 as queue_slice, published and a column per task; positions as in studies."""
    table = read_averages(name)
    positions = table.pop("positions_used").str.replace(" and ", ",")
    return table.assign(queue_slice=positions)


def read_initial_queue(name: str) -> pd.DataFrame:
    """Table 7 as share, queue_size and published, a row per cell."""
    cells = load_published(name).melt(
        "initial_queue", var_name="queue_size", value_name="published"
    )
    cells["share"] = cells.pop("initial_queue").map(_SHARES)
    cells["queue_size"] = cells["queue_size"].astype("int64")
    return cells[["share", "queue_size", "published"]]
