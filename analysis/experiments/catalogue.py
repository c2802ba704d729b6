"""The published experiments, one entry each.

Source: MoCoSE, tables 3 to 9 and figures 8 to 12, and its authors' slides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from mtdlab.analysis.data.meaning import MADE_OF, PUBLISHED_WIDTH, load_rows
from mtdlab.analysis.data.settings import format_setting

Value = float | str


@dataclass(frozen=True)
class Experiment:
    """What one published experiment varies, and how its table is read, labelled and drawn.

    Attributes:
        source: where it was published, as text.
        by: the one or two columns whose values define the rows of its table.
        chosen_by: the experiment is shown if at least one of these settings varies; if empty, one
            of `by`.
        file: the published file, SOURCE_NAME.
        figure: kind of figure: "line" over numbers, "rows" of text, "grid" of two settings.
        match: the column by meaning (`mtdlab.analysis.data.meaning`) by which rows are matched with
            published ones, in place of the first of `by`; empty: that one.
        value_names: texts for values of the first of `by` that are not shown as numbers.
        labels: of columns of `by` that are not settings.
        measured: a column of the curves whose mean over steps is shown too, or empty.
        conditions: settings that the published runs had in common, with their values.
    """

    title: str
    source: str
    by: tuple[str, ...]
    file: str
    figure: Literal["line", "rows", "grid"]
    match: str = ""
    chosen_by: tuple[str, ...] = ()
    value_names: Mapping[float, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    measured: str = ""
    conditions: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its CSV file and its figure."""
        return self.file.partition("_")[2]

    @property
    def recorded(self) -> tuple[str, ...]:
        """The settings that a study must have recorded for the table."""
        return tuple(dict.fromkeys(part for name in self.by for part in MADE_OF.get(name, (name,))))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which rows are matched with published ones."""
        return (self.match or self.by[0], *self.by[1:])

    @property
    def fixed(self) -> str:
        """The settings that the published runs had in common, as text; empty if not known."""
        common = [f"{name} {format_setting(value)}" for name, value in self.conditions.items()]
        if self.match == "width":
            common.append(f"an encoder of dimension {PUBLISHED_WIDTH}")
        return ", ".join(common)

    def published(self) -> pd.DataFrame:
        """The published rows: the columns `by`, `published`, and a column per task if any."""
        return load_rows(self.file)

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
        match="augmentation_kind",
        labels={"augmented": "augmentation"},
    ),
    Experiment(
        title="Prediction dimension",
        source="table 6a and figure 10",
        by=("prediction_dim",),
        file="table6a_prediction_dim",
        figure="line",
        match="width",
        value_names={0: "the encoder's"},
        conditions={"queue_size": 512},
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
        figure="grid",
        labels={"share": "initial share of random keys"},
        value_names={0.0: "none", 0.25: "1/4", 0.5: "1/2", 1.0: "whole"},
    ),
    Experiment(
        title="Queue slices",
        source="table 8",
        by=("queue_slice",),
        file="table8_queue_slices",
        figure="rows",
        match="slice",
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
