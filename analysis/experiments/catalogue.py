"""The experiments, one entry each: another one is another entry.

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

Setting = float | str


@dataclass(frozen=True)
class Experiment:
    """What one published experiment varies, and how it is read, named and drawn.

    name       of its CSV and its figure.
    source     where it was published, in words.
    by         the columns whose values make its rows, one or two.
    chosen_by  settings of which one must vary for the experiment to be shown.
    file, read what was published, and how it becomes rows with the columns `by` and `published`.
    figure     how it is drawn: "line" over numbers, "rows" of words, "grid" of two settings,
               "boxes" of the runs beside a grid.
    made_of    settings that `by` is made of or that go with it, no settings beside it.
    derive     adds the columns of `by` that are no settings themselves.
    like       the published row, by its first column, that a value is held against.
    words      values of the first of `by` that are not written as numbers.
    measured   a column of the curves whose mean over steps is shown too, or empty.
    conditions settings that the published runs had in common, with their values.
    encoder_width  the dimension of the published runs' encoder where `by` is a width; or 0.
    """

    name: str
    anchor: str
    title: str
    source: str
    by: tuple[str, ...]
    chosen_by: tuple[str, ...]
    file: str
    figure: Literal["line", "rows", "grid", "boxes"]
    read: Callable[[str], pd.DataFrame] = read_averages
    made_of: tuple[str, ...] = ()
    derive: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    like: Callable[[str], str] | None = None
    words: Mapping[float, str] = field(default_factory=dict)
    measured: str = ""
    conditions: Mapping[str, float] = field(default_factory=dict)
    encoder_width: int = 0

    @property
    def fixed(self) -> str:
        """What the published runs had in common, in words; empty where that is not known."""
        words = [f"{name} {format_setting(value)}" for name, value in self.conditions.items()]
        if self.encoder_width:
            words.append(f"an encoder {self.encoder_width} wide")
        return ", ".join(words)

    def published(self) -> pd.DataFrame:
        """The published rows: the columns `by`, `published`, and a column per task if any."""
        return self.read(self.file)

    def label(self, *values: Setting) -> str:
        """A row's name in a sentence or at an axis: the values of `by`, one or two."""
        first, *rest = (
            value if isinstance(value, str) else format_setting(value) for value in values
        )
        said = first if isinstance(values[0], str) else self.words.get(values[0], first)
        return " / ".join([said, *rest])


EXPERIMENTS = (
    Experiment(
        name="ema_decay",
        anchor="ema-decay",
        title="EMA decay",
        source="table 3 and figure 8",
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
        by=("augmented",),
        chosen_by=("augmentation",),
        file="table5_augmentation",
        figure="rows",
        read=read_augmentations,
        made_of=("augmentation", "fgsm_epsilon"),
        derive=with_augmented,
        like=published_augmentation,
    ),
    Experiment(
        name="prediction_dim",
        anchor="prediction-dim",
        title="Prediction dimension",
        source="table 6a and figure 10",
        by=("prediction_dim",),
        chosen_by=("prediction_dim",),
        file="table6a_prediction_dim",
        figure="line",
        words={0: "the encoder's"},
        conditions={"queue_size": 512},
        encoder_width=768,
    ),
    Experiment(
        name="batch_size",
        anchor="batch-size",
        title="Batch size",
        source="table 6b",
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
        by=("share", "queue_size"),
        chosen_by=("share",),
        file="table7_initial_queue",
        figure="boxes",
        read=read_initial_queue,
        made_of=("initial_queue_size",),
        derive=with_share,
        words={0.0: "none", 0.25: "1/4", 0.5: "1/2", 1.0: "whole"},
    ),
    Experiment(
        name="queue_slices",
        anchor="slices",
        title="Queue slices",
        source="table 8",
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
        by=("queue_clusters",),
        chosen_by=("queue_clusters",),
        file="slides_queue_clusters",
        figure="rows",
        words={0: "the queue as it is", 1: "its mean"},
        conditions={"queue_size": 512, "batch_size": 64, "ema_decay": 0.85},
    ),
)
