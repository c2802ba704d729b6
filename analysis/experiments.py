"""The published experiments, one entry each, and the comparison of a study with them.

Source: MoCoSE, tables 3 to 9 and figures 8 to 12, and its authors' slides.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import MEAN, Settings, SettingValue, StudyFrames
from mtdlab.analysis.data.meaning import MADE_OF, PUBLISHED_WIDTH, add_meaning, load_rows
from mtdlab.analysis.data.published import METHOD
from mtdlab.analysis.data.runs import completed_runs, varied_settings
from mtdlab.analysis.data.settings import format_setting, with_defaults
from mtdlab.analysis.data.tasks import STS
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.inference.pairing import complete_block, summarise_scores
from mtdlab.analysis.statistics.training import can_collapse

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


def select_runs(
    trials: pd.DataFrame, experiment: Experiment, settings: Settings, width: int | None = None
) -> pd.DataFrame:
    """The completed runs with the experiment's columns; none unless a setting of it varies.

    If the study has runs of the published method, only these. `width` is the encoder's.
    """
    done = completed_runs(trials)
    # most studies vary nothing of most experiments, and defaults of all settings take time
    needed = {name: settings[name] for name in ("method", *experiment.recorded) if name in settings}
    runs = with_defaults(done, needed)
    if "method" in runs and (runs["method"] == METHOD).any():
        runs = runs[runs["method"] == METHOD]
    if not set(experiment.recorded) <= set(runs):
        return runs.iloc[:0]
    runs = add_meaning(runs, {*experiment.by, *experiment.keys}, width)
    # runs of a method that lacks one of these settings are left out
    runs = runs.dropna(subset=list(experiment.by))
    varied = any(runs[name].nunique() > 1 for name in experiment.chosen_by or experiment.by)
    return with_defaults(runs, settings) if varied else runs.iloc[:0]


def list_others(runs: pd.DataFrame, experiment: Experiment, settings: Collection[str]) -> list[str]:
    """The settings, other than those of the experiment, that vary between these runs."""
    its_settings = {*experiment.by, *experiment.recorded}
    return [name for name in varied_settings(runs, settings) if name not in its_settings]


def balance_runs(
    runs: pd.DataFrame, experiment: Experiment, settings: Collection[str]
) -> tuple[pd.DataFrame, bool]:
    """The runs whose seed and other settings were run at every row, and whether this succeeded.

    A balanced selection averages every row over the same seeds and other settings. Without such
    runs all runs are returned, with False. If no other setting varies, nothing is left out.
    """
    others = list_others(runs, experiment, settings)
    if not others:
        return runs, True
    row = runs.groupby(list(experiment.by)).ngroup()
    setting = runs.groupby([*others, "seed"], dropna=False).ngroup()
    rows_of = pd.DataFrame({"setting": setting, "row": row}).groupby("setting")["row"].nunique()
    everywhere = setting.map(rows_of) == row.nunique()
    return (runs[everywhere], True) if everywhere.any() else (runs, False)


def find_differing(
    runs: pd.DataFrame, experiment: Experiment
) -> dict[str, tuple[float | str, ...]]:
    """Settings in which a run differs from the published runs, with all values of the runs."""
    wanted = {"method": METHOD, **experiment.conditions}
    return {
        name: tuple(sorted(runs[name].unique()))
        for name, value in wanted.items()
        if name in runs and {*map(_to_key, runs[name])} != {_to_key(value)}
    }


def _to_key(value: object) -> object:
    """A number to ten digits, as text: a grid over a range may contain 0.8500000000000001."""
    return f"{value:.10g}" if isinstance(value, int | float | np.number) else value


def find_published(table: pd.DataFrame, runs: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """The published row of each row of the table, in its order, NaN without one.

    Rows are matched by meaning (`mtdlab.analysis.data.meaning`); those whose runs differ in that
    have none, and neither have those that several published rows are like.
    """
    by, keys = list(experiment.by), list(experiment.keys)
    published = experiment.published()
    known = published[keys].map(_to_key).astype("str").assign(place=np.arange(len(published)))
    meant = runs.drop_duplicates([*by, keys[0]]).drop_duplicates(by, keep=False)
    here = table[by].merge(meant[list(dict.fromkeys([*by, keys[0]]))], on=by, how="left")
    here = here[keys].map(_to_key).astype("str")
    joined = here.merge(known.drop_duplicates(keys, keep=False), on=keys, how="left")["place"]
    return published.reindex(joined).set_axis(table.index).assign(place=joined.to_numpy())


def join_published(table: pd.DataFrame, runs: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """The table with the published values; rows of text are in the published order."""
    found = find_published(table, runs, experiment)
    table = table.assign(published=found["published"].astype("float64"))
    if pd.api.types.is_numeric_dtype(table[experiment.by[0]]):
        return table
    order = found["place"].sort_values(kind="stable", na_position="last").index
    return table.loc[order].reset_index(drop=True)


@dataclass(frozen=True)
class Comparison:
    """The comparison of a study with one experiment.

    Attributes:
        runs: the runs of the table, with the columns `experiment.by`.
        table: the score at each value of the experiment's settings: the columns `experiment.by`, n,
            seeds, mean, low, high, items and published, NaN where the paper has no such row and for
            runs of another method; then the mean of `experiment.measured` if there is any.
        labels: of those columns `experiment.by` that have one.
        others: other settings that vary between these runs; the means are over them.
        left_out: number of runs not in the table, see `balance_runs`.
        kept: settings of which runs that were left out have other values, with that of the table.
        chosen: nuisance settings whose values differ between rows, with those of each row.
        balanced: whether every row has the same seeds and other settings.
        differs: conditions of the published runs that these runs do not meet, with the values here.
        paired: mean score of each seed (index) at each row of the table (columns), as a complete
            block; empty unless balanced.
    """

    experiment: Experiment
    runs: pd.DataFrame
    table: pd.DataFrame
    labels: Mapping[str, str]
    others: tuple[str, ...]
    left_out: int
    kept: Mapping[str, SettingValue]
    chosen: Mapping[str, tuple[tuple[SettingValue, ...], ...]]
    balanced: bool
    differs: Mapping[str, tuple[float | str, ...]]
    paired: pd.DataFrame


def compare(
    study: StudyFrames, experiment: Experiment, width: int | None = None
) -> Comparison | None:
    """The comparison of a study with an experiment; None if no setting of it varies.

    Intervals cover the sampling of the study's items where every run has them. Published widths are
    scaled to the encoder's `width`; None if that is not known: then none is matched.
    """
    settings = study.compared
    every = select_runs(study.trials, experiment, settings, width)
    if not len(every):
        return None
    runs, balanced = balance_runs(every, experiment, settings)
    by, differs = list(experiment.by), find_differing(runs, experiment)
    table = join_published(summarise_scores(runs, by=by, items=study.items), runs, experiment)
    table = table[[*by, *MEAN, "items", "published"]]
    if "method" in differs:
        table["published"] = np.nan
    placed = runs.merge(table[by].reset_index(names="row"), on=by)
    scores = placed.pivot_table(index="seed", columns="row", values="score")
    paired = complete_block(scores) if balanced else scores.iloc[:0, :0]
    if (name := experiment.measured) and len(study.curves):
        measured = runs["number"].map(study.curves.groupby("number")[name].mean())
        of_rows = runs.assign(**{name: measured}).groupby(by)[name].mean()
        table = table.merge(of_rows.reset_index(), on=by, how="left")
    labels = {name: settings[name].label for name in experiment.by if name in settings}
    return Comparison(
        experiment=experiment,
        runs=runs,
        table=table,
        others=tuple(list_others(runs, experiment, settings)),
        labels=labels | dict(experiment.labels),
        left_out=len(every) - len(runs),
        kept={
            name: runs[name].iloc[0]
            for name in list_others(every, experiment, [*settings, *study.nuisance])
            if runs[name].nunique(dropna=False) == 1
        },
        chosen=_list_chosen(placed, [name for name in study.nuisance if name in placed]),
        balanced=balanced,
        differs=differs,
        paired=paired,
    )


def _list_chosen(
    placed: pd.DataFrame, names: Sequence[str]
) -> dict[str, tuple[tuple[SettingValue, ...], ...]]:
    """The values of settings of each row of a table, where rows do not have the same."""
    found = {
        name: tuple(tuple(sorted(values.unique())) for _, values in placed.groupby("row")[name])
        for name in names
    }
    return {name: of_rows for name, of_rows in found.items() if len({*of_rows}) > 1}


def needs_curves(trials: pd.DataFrame, settings: Settings) -> bool:
    """Whether a report on these trials reads the curves, which are most of a study's data."""
    measuring = (experiment for experiment in EXPERIMENTS if experiment.measured)
    return can_collapse(trials, settings) or any(
        len(select_runs(trials, experiment, settings)) for experiment in measuring
    )


def compute_experiment_tasks(comparison: Comparison, scores: pd.DataFrame) -> pd.DataFrame:
    """`StudyFrames.scores` at each value of an experiment's settings, if published by task.

    Columns: `experiment.by`, task, n, seeds, mean, low, high, published; tasks in published order.
    """
    experiment, runs = comparison.experiment, comparison.runs
    by = list(experiment.by)
    found = find_published(comparison.table, runs, experiment)
    tasks = [task for task in STS if task in found]
    named = scores[scores["task"].isin(tasks) & scores["score"].notna()]
    scored = runs[["number", "seed", *by]].merge(named, on="number")
    wide = comparison.table[by].join(found[tasks])
    long = wide.melt(by, tasks, var_name="task", value_name="published")
    joined = summarise(scored, by=[*by, "task"]).merge(long, on=[*by, "task"], how="left")
    order = joined["task"].map(STS.index).sort_values(kind="stable").index
    return joined.loc[order, [*by, "task", *MEAN, "published"]].reset_index(drop=True)
