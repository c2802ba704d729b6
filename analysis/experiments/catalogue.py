"""The published experiments, one entry each.

Source: MoCoSE, tables 3 to 9 and figures 8 to 12, and its authors' slides.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from analysis.experiments.published import (
    published_augmentation,
    read_augmentations,
    read_averages,
    read_initial_queue,
    read_slices,
)
from analysis.experiments.settings import format_setting, with_augmented, with_share

Value = float | str
METHOD = "mocose"
"""The method of the published runs."""


@dataclass(frozen=True)
class Experiment:
    """What one published experiment varies, and how its table is read, labelled and drawn.

    name       of its CSV and its figure.
    source     where it was published, as text.
    method     of the published runs; if a study has runs of this method, only these are used.
    by         the columns whose values define the rows of its table, one or two.
    chosen_by  the experiment is shown if at least one of these settings varies.
    file, read the published file, and the function that reads it into `by` and `published`.
    figure     kind of figure: "line" over numbers, "rows" of text, "grid" of two settings,
               "seeds" side by side beside a grid.
    made_of    settings that `by` is derived from or that vary together with it.
    derive     adds the columns of `by` that are not settings.
    like       maps a value to the value of the published row that it is compared with.
    value_names  texts for values of the first of `by` that are not shown as numbers.
    labels     of columns of `by` that are not settings; axis_labels: labels in figures, where they
               differ.
    measured   a column of the curves whose mean over steps is shown too, or empty.
    conditions settings that the published runs had in common, with their values.
    encoder_width  dimension of the published runs' encoder if `by` is a width, else 0.
    """

    name: str
    anchor: str
    title: str
    source: str
    method: str
    by: tuple[str, ...]
    chosen_by: tuple[str, ...]
    file: str
    figure: Literal["line", "rows", "grid", "seeds"]
    read: Callable[[str], pd.DataFrame] = read_averages
    made_of: tuple[str, ...] = ()
    derive: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    like: Callable[[str], str] | None = None
    value_names: Mapping[float, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    axis_labels: Mapping[str, str] = field(default_factory=dict)
    measured: str = ""
    conditions: Mapping[str, float] = field(default_factory=dict)
    encoder_width: int = 0

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
        return self.read(self.file)

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
        name="ema_decay",
        anchor="ema-decay",
        title="EMA decay",
        source="table 3 and figure 8",
        method=METHOD,
        by=("ema_decay",),
        chosen_by=("ema_decay",),
        file="table3_ema_decay",
        figure="line",
        conditions={"queue_size": 512, "batch_size": 64},
    ),
    Experiment(
        name="heads",
        anchor="heads",
        title="Projection and prediction layers",
        source="table 4",
        method=METHOD,
        by=("projection_layers", "prediction_layers"),
        chosen_by=("projection_layers", "prediction_layers"),
        file="table4_heads",
        figure="grid",
    ),
    Experiment(
        name="augmentation",
        anchor="augmentation",
        title="Augmentation",
        source="table 5 and figure 9",
        method=METHOD,
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
        name="prediction_dim",
        anchor="prediction-dim",
        title="Prediction dimension",
        source="table 6a and figure 10",
        method=METHOD,
        by=("prediction_dim",),
        chosen_by=("prediction_dim",),
        file="table6a_prediction_dim",
        figure="line",
        value_names={0: "the encoder's"},
        conditions={"queue_size": 512},
        encoder_width=768,
    ),
    Experiment(
        name="batch_size",
        anchor="batch-size",
        title="Batch size",
        source="table 6b",
        method=METHOD,
        by=("batch_size",),
        chosen_by=("batch_size",),
        file="table6b_batch_size",
        figure="line",
        conditions={"queue_size": 512},
    ),
    Experiment(
        name="initial_queue",
        anchor="initial-queue",
        title="Initial queue",
        source="table 7, figures 11 and 12",
        method=METHOD,
        by=("share", "queue_size"),
        chosen_by=("share",),
        file="table7_initial_queue",
        figure="seeds",
        read=read_initial_queue,
        made_of=("initial_queue_size", "queue_size"),
        derive=with_share,
        labels={"share": "initial share"},
        axis_labels={"share": "initial share of random keys"},
        value_names={0.0: "none", 0.25: "1/4", 0.5: "1/2", 1.0: "whole"},
    ),
    Experiment(
        name="queue_slices",
        anchor="slices",
        title="Queue slices",
        source="table 8",
        method=METHOD,
        by=("queue_slice",),
        chosen_by=("queue_slice",),
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
        name="fgsm_epsilon",
        anchor="fgsm-epsilon",
        title="FGSM step",
        source="table 9",
        method=METHOD,
        by=("fgsm_epsilon",),
        chosen_by=("fgsm_epsilon",),
        file="table9_fgsm_epsilon",
        figure="line",
        measured="fgsm_changed",
    ),
    Experiment(
        name="queue_clusters",
        anchor="queue-clusters",
        title="Queue clusters",
        source="the authors' slides",
        method=METHOD,
        by=("queue_clusters",),
        chosen_by=("queue_clusters",),
        file="slides_queue_clusters",
        figure="rows",
        value_names={0: "the queue as it is", 1: "its mean"},
        conditions={"queue_size": 512, "batch_size": 64, "ema_decay": 0.85},
    ),
)
