"""The published experiments, one entry each.

Source: MoCoSE, tables 3 to 9 and figures 8 to 12, and its authors' slides.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from mtdlab.analysis.data.published import load_published
from mtdlab.analysis.data.settings import format_setting

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


def read_augmentations(table: pd.DataFrame) -> pd.DataFrame:
    """Table 5 as columns augmented and published, with the names that studies use."""
    parameters = table["parameter"].fillna("").astype("str")
    names = table["augmentation"].map(_AUGMENTATIONS)
    joined = names.where(parameters == "", names + ":" + parameters)
    return pd.DataFrame({"augmented": joined, "published": table["published"]})


def published_augmentation(augmented: str) -> str:
    """The published row that an augmentation is compared with; itself if there is no such row.

    The paper does not state its share of typos and names only the languages of its
    back-translation, not the models. Any share, and any models for these languages, are compared
    with its rows.
    """
    name, _, parameters = augmented.partition(":")
    if name == "typos" and "+" not in parameters:
        return "typos"
    if name == "back-translation":
        there, _, back = parameters.partition(",")
        if "en-de" in there and "de-en" in back and "+" not in back:
            return "back-translation:en-de-en"
    return augmented


def read_slices(table: pd.DataFrame) -> pd.DataFrame:
    """Table 8 as queue_slice, published and a column per task; positions as in studies."""
    positions = table.pop("positions_used").str.replace(" and ", ",")
    return table.assign(queue_slice=positions)


def read_initial_queue(table: pd.DataFrame) -> pd.DataFrame:
    """Table 7 as share, queue_size and published, a row per cell."""
    cells = table.melt("initial_queue", var_name="queue_size", value_name="published")
    cells["share"] = cells.pop("initial_queue").map(_SHARES)
    cells["queue_size"] = cells["queue_size"].astype("int64")
    return cells[["share", "queue_size", "published"]]


Value = float | str
_SHARE_DECIMALS = 3
_MODEL = re.compile(r"[^:,+]*/")


def with_share(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with a queue, with a column share: initial random keys over queue size."""
    runs = runs[runs["queue_size"] > 0]
    share = runs["initial_queue_size"] / runs["queue_size"]
    return runs.assign(share=share.round(_SHARE_DECIMALS))


def with_augmented(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with recorded augmentations, with a column augmented that includes the FGSM step.

    Models are named without their folder or owner.
    """
    runs = runs[runs["augmentation"].notna()]
    steps = [f"fgsm:{format_setting(value)}" if value > 0 else "" for value in runs["fgsm_epsilon"]]
    names = [_MODEL.sub("", text) for text in runs["augmentation"].astype("str")]
    joined = [
        "+".join(part for part in (name if name != "none" else "", step) if part) or "none"
        for name, step in zip(names, steps, strict=True)
    ]
    return runs.assign(augmented=pd.Series(joined, index=runs.index, dtype="str"))


@dataclass(frozen=True)
class Experiment:
    """What one published experiment varies, and how its table is read, labelled and drawn.

    Attributes:
        source: where it was published, as text.
        by: the one or two columns whose values define the rows of its table.
        chosen_by: the experiment is shown if at least one of these settings varies; if empty, one
            of `by`.
        file: the published file, SOURCE_NAME.
        read: makes `by` and `published` of its table, whose column average is called published;
            None where it has them.
        figure: kind of figure: "line" over numbers, "rows" of text, "grid" of two settings, "seeds"
            side by side beside a grid.
        made_of: settings that `by` is derived from or that vary together with it.
        derive: adds the columns of `by` that are not settings.
        like: maps a value to the value of the published row that it is compared with.
        value_names: texts for values of the first of `by` that are not shown as numbers.
        labels: of columns of `by` that are not settings.
        measured: a column of the curves whose mean over steps is shown too, or empty.
        conditions: settings that the published runs had in common, with their values.
        encoder_width: dimension of the published runs' encoder if `by` is a width, else 0.
    """

    title: str
    source: str
    by: tuple[str, ...]
    file: str
    figure: Literal["line", "rows", "grid", "seeds"]
    read: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    made_of: tuple[str, ...] = ()
    chosen_by: tuple[str, ...] = ()
    derive: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    like: Callable[[str], str] | None = None
    value_names: Mapping[float, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    measured: str = ""
    conditions: Mapping[str, float] = field(default_factory=dict)
    encoder_width: int = 0

    @property
    def name(self) -> str:
        """The name of its CSV file and its figure."""
        return self.file.partition("_")[2]

    @property
    def recorded(self) -> tuple[str, ...]:
        """The settings that a study must have recorded for the table."""
        return self.by if self.derive is None else self.made_of

    @property
    def fixed(self) -> str:
        """The settings that the published runs had in common, as text; empty if not known."""
        common = [f"{name} {format_setting(value)}" for name, value in self.conditions.items()]
        if self.encoder_width:
            common.append(f"an encoder of dimension {self.encoder_width}")
        return ", ".join(common)

    def published(self) -> pd.DataFrame:
        """The published rows: the columns `by`, `published`, and a column per task if any."""
        table = load_published(self.file).rename(columns={"average": "published"})
        return table if self.read is None else self.read(table)

    def label(self, *values: Value) -> str:
        """The name of a row in text and at an axis, from its values of `by`, one or two."""
        first, *rest = (
            value if isinstance(value, str) else format_setting(value) for value in values
        )
        if not isinstance(values[0], str):
            first = self.value_names.get(values[0], first)
        return " / ".join([first, *rest])


EXPERIMENTS = (
    Experiment(
        title="EMA decay",
        source="table 3 and figure 8",
        by=("ema_decay",),
        file="table3_ema_decay",
        figure="line",
        conditions={"queue_size": 512, "batch_size": 64},
    ),
    Experiment(
        title="Projection and prediction layers",
        source="table 4",
        by=("projection_layers", "prediction_layers"),
        file="table4_heads",
        figure="grid",
    ),
    Experiment(
        title="Augmentation",
        source="table 5 and figure 9",
        by=("augmented",),
        chosen_by=("augmentation",),
        file="table5_augmentation",
        figure="rows",
        read=read_augmentations,
        made_of=("augmentation", "fgsm_epsilon"),
        derive=with_augmented,
        like=published_augmentation,
        labels={"augmented": "augmentation"},
    ),
    Experiment(
        title="Prediction dimension",
        source="table 6a and figure 10",
        by=("prediction_dim",),
        file="table6a_prediction_dim",
        figure="line",
        value_names={0: "the encoder's"},
        conditions={"queue_size": 512},
        encoder_width=768,
    ),
    Experiment(
        title="Batch size",
        source="table 6b",
        by=("batch_size",),
        file="table6b_batch_size",
        figure="line",
        conditions={"queue_size": 512},
    ),
    Experiment(
        title="Initial queue",
        source="table 7, figures 11 and 12",
        by=("share", "queue_size"),
        chosen_by=("share",),
        file="table7_initial_queue",
        figure="seeds",
        read=read_initial_queue,
        made_of=("initial_queue_size", "queue_size"),
        derive=with_share,
        labels={"share": "initial share of random keys"},
        value_names={0.0: "none", 0.25: "1/4", 0.5: "1/2", 1.0: "whole"},
    ),
    Experiment(
        title="Queue slices",
        source="table 8",
        by=("queue_slice",),
        file="table8_queue_slices",
        figure="rows",
        read=read_slices,
        conditions={
            "queue_size": 1024,
            "initial_queue_size": 128,
            "batch_size": 256,
            "ema_decay": 0.85,
        },
    ),
    Experiment(
        title="FGSM step",
        source="table 9",
        by=("fgsm_epsilon",),
        file="table9_fgsm_epsilon",
        figure="line",
        measured="fgsm_changed",
    ),
    Experiment(
        title="Queue clusters",
        source="the authors' slides",
        by=("queue_clusters",),
        file="slides_queue_clusters",
        figure="rows",
        value_names={0: "the queue as it is", 1: "its mean"},
        conditions={"queue_size": 512, "batch_size": 64, "ema_decay": 0.85},
    ),
)
