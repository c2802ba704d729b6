"""A study as pandas frames: the input of the analysis, from a database or from other sources.

Letters: R trials, D dimension of the sentence embedding.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from mtdlab.analysis.data import defaults
from mtdlab.analysis.data.environment import Environment, join_sentences
from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.questions import Declared

SettingValue = float | str | bool | None

TRIAL_COLUMNS: Mapping[str, str] = {
    "number": "int64",
    **dict.fromkeys(("state", "reason", "reason_code"), "str"),
    "seed": "int64",
    "ema_decay": "float64",
    **dict.fromkeys(("queue_size", "batch_size", "initial_queue_size"), "int64"),
    "queue_slice": "str",
    **dict.fromkeys(("mtd", "score", "alignment", "uniformity", "mean_cosine"), "float64"),
    **dict.fromkeys(("score_before", "best_step", "wall_seconds", "peak_memory"), "float64"),
}
DIFFERENCE = ["difference", "difference_low", "difference_high"]
"""Columns of a difference and the bounds of its interval."""
MEAN = ["n", "seeds", "mean", "low", "high"]
"""Columns of a mean: its runs, its seeds and its interval over them."""
RESULT_COLUMNS = (*MEAN, "items", *DIFFERENCE, "may_be_best", "seconds", "memory")
"""Columns that stand beside the settings in a table of configurations."""
TAKEN_NAMES = frozenset((*RESULT_COLUMNS, "text", "trial", "row", "role", "deviation"))
"""Names of columns that the analysis adds to runs and configurations; no setting is called so."""
CURVE_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("number", "step"), "int64"),
    **dict.fromkeys(("loss", "ema_decay", "queue_fill", "fgsm_changed", "score"), "float64"),
    **dict.fromkeys(("alignment", "uniformity", "mean_cosine"), "float64"),
}
PROBE_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("number", "step", "lag"), "int64"),
    **dict.fromkeys(("cosine", "cosine_different"), "float64"),
}
HISTORY_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("number", "step", "age", "oldest_age"), "int64"),
    **dict.fromkeys(("similarity", "oldest_similarity", "different"), "float64"),
}
SCORE_COLUMNS: Mapping[str, str] = {"number": "int64", "task": "str", "score": "float64"}
REFERENCE_COLUMNS: Mapping[str, str] = {"encoder": "str", "reading": "str", "score": "float64"}
LOOK_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("look", "seeds", "runs"), "int64"),
    **dict.fromkeys(("alpha", "spent", "p_value"), "float64"),
    **dict.fromkeys(("verdict", "decision"), "str"),
    "added": "int64",
    "trials": "object",
}
ENVIRONMENT_COLUMNS: Mapping[str, str] = {
    "number": "int64",
    **dict.fromkeys(("device", "precision", "threads", "processor"), "str"),
}

NO_SEEDS = "none was recorded: each run counts as of a seed of its own, and nothing is tested"
"""What the facts of a table say of its seeds where it has none."""


def empty(columns: Mapping[str, str]) -> pd.DataFrame:
    """A frame of no rows with the given columns and types."""
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns.items()})


@dataclass(frozen=True)
class RecordedSetting:
    """What is recorded of a setting: its notation, and the value of a run that did not record it.

    symbol and unit are empty where there is none; a default of None means that there is none.
    """

    name: str
    symbol: str = ""
    unit: str = ""
    description: str = ""
    default: SettingValue = None

    @property
    def label(self) -> str:
        """The name with its symbol, for a column or an axis."""
        return "MTD" if self.name == "mtd" else f"{self.name} {self.symbol}".rstrip()


Settings = Mapping[str, RecordedSetting]


@dataclass(frozen=True)
class Plan:
    """The specification of a verdict as recorded.

    Attributes:
        trials: how many trials had started when it was recorded; 0: specified before the first.
        values: study, metric, margin (points), alpha, looks: the numbers of seeds at which the
            verdict is computed, questions, where some are declared, and named: the configurations
            that they call by a name, each by its name.
        sha256: of the values as JSON with sorted keys.
    """

    trials: int
    values: Mapping[str, Any]
    sha256: str

    @property
    def questions(self) -> tuple[Declared, ...]:
        """What the study asks, as declared. Raises QuestionError where that cannot be read."""
        return tuple(map(Declared.read, self.values.get("questions", ())))


@dataclass(frozen=True)
class Baseline:
    """One configuration outside of a study's search, which ran with the same seeds.

    Attributes:
        values: the settings that the study file gives it, over those that all trials share.
        planned: how many trials of the baseline the study plans.
        trials: a row per trial of the baseline, with the columns of `StudyFrames.trials`, which has
            no row of them. Of the study's other frames `items` and `scores` have their values.
    """

    values: Mapping[str, Any]
    planned: int
    trials: pd.DataFrame


@dataclass(frozen=True)
class NuisanceTrials:
    """The trials by which the values of nuisance settings were chosen, on seeds of their own.

    Attributes:
        names: the nuisance settings.
        per: the settings whose values share a choice; empty: each configuration has its own.
        planned: how many of these trials the study plans.
        chosen: the chosen values by setting, by group; empty before the choice.
        trials: a row per trial, with the columns of `StudyFrames.trials`, which has no row of them,
            group, whose members share a choice, configuration, which is in one group, and
            selected: the score x 100 that decides.
    """

    names: tuple[str, ...]
    per: tuple[str, ...]
    planned: int
    chosen: Mapping[str, Mapping[str, Any]]
    trials: pd.DataFrame

    @property
    def seeds(self) -> list[int]:
        """The seeds that chose, in their order."""
        return sorted(self.trials["seed"].unique().tolist())


@dataclass(frozen=True)
class StudyFrames:
    """One study, complete or still running.

    Attributes:
        trials: a row per trial (R rows, `TRIAL_COLUMNS` first, then every other setting). state is
            COMPLETE, FAIL, PRUNED, RUNNING or WAITING (also of a trial that was interrupted, whose
            process has died); reason is why a trial failed and reason_code its kind (nan_loss,
            collapsed, oom, error, interrupted), both empty otherwise; values that are not known yet
            are NaN. score is the study's metric x 100 at the checkpoint chosen on the dev split;
            score_before is the same for the encoder before training; best_step is that checkpoint's
            step; mean_cosine is that of random sentence pairs; queue_slice is "all" or positions
            such as "0-256,768-1024", 0 the newest. mtd is in steps, at least 1; missing or 0 where
            the method has none.
        curves: `CURVE_COLUMNS`, a row per trial and step; NaN where a step was not evaluated. Of a
            program of the user a row per report, with a score alone.
        spectra: indexed by (number, moment), moment "before" or "after"; column i holds the i-th
            largest singular value of the evaluation sentences' embeddings (D columns).
        scores: a row per trial and task, x 100.
        probes: `PROBE_COLUMNS`, a row per trial, step and lag (both in steps) at which the keys of
            fixed sentences were encoded again: cosine is the mean cosine of a sentence's key now
            and `lag` steps ago; cosine_different that of different sentences' keys now.
        history: `HISTORY_COLUMNS`, a row per trial and step at which keys in use were compared with
            what the online encoder made of their sentences then: similarity and oldest_similarity
            are the mean cosines of keys of the mean and of the greatest age, age and oldest_age (in
            steps); different is that of other sentences. No row of a method that does not know the
            ages of its keys.
        planned: how many trials the search plans.
        sampler: Optuna's sampler that suggested the settings: grid, random, tpe or qmc.
        invocation: the command that ran it, or that read its table; empty where none is recorded.
        environments: what the trials ran with, each once, in the order of the trials.
        environment: `ENVIRONMENT_COLUMNS`, then the version of each package and the commit, a row
            per trial that recorded its environment; empty text where a value is not known.
        table: of runs that were made elsewhere the file, and which column was read as what, in
            sentences by name.
        origin: what tells such a table from others of its name; empty for a study of a database.
        scale: how such a table's scores were read.
        settings: the hyperparameters by name: they define which columns of trials are settings. The
            seed is no setting, and the MTD is one only where runs of equal settings differ in it,
            whose parts were not recorded. It may hold settings that no trial recorded.
        methods: display names of methods, such as mocose: MoCoSE; other methods are displayed as
            recorded.
        description: the purpose of the study, or empty.
        looks: `LOOK_COLUMNS`, a row per look of a study that adds seeds until its verdict is
            decided: seeds of the leading levels; runs, and trials: the numbers of the completed
            trials that it was computed from.
        alpha: the nominal significance level; spent: error probability up to it; decision:
            continue, or why the study ended (decided, flat, equivalent, max_seeds, no scores);
            added: how many trials it added. No rows for other studies.
        plans: the recorded specifications of the verdict: the one before the first trial, then
            every later change. Empty for a study that recorded none.
        select_by: the score, one of the tasks of `scores`, that ranked the trials and selected the
            saved model; empty where none was recorded: then it was the metric.
        model: where the best trial's model was last saved: trial (its number), host (name of the
            machine) and folder there; empty where it is not recorded.
        beyond_run: whether levels of MTD beyond the run take part in the verdict.
        stated_margin: the margin of a study that recorded no plan.
        references: `REFERENCE_COLUMNS`, the metric x 100 of each encoder before training in each
            reading: a pooling, `cls`, then `, whitened` or `, flow`, or `tasks.WORD_OVERLAP`, in
            which no encoder takes part. Empty where none was scored.
        load_items: reads `items`, which are large and needed by few; None: there are none.
        baseline: one configuration beside the search, with the same seeds, whose rows are those of
            `baseline.trials`, of the columns of `trials`; it ranks with the others on the page.
        tuning: the trials by which nuisance values were chosen; no other frame has a row of them.
        names: what the study file calls configurations, each with the numbers of its trials, also
            of those in `tuning`.
    """

    name: str
    metric: str
    planned: int
    trials: pd.DataFrame
    curves: pd.DataFrame = field(default_factory=lambda: empty(CURVE_COLUMNS))
    spectra: pd.DataFrame = field(default_factory=pd.DataFrame)
    scores: pd.DataFrame = field(default_factory=lambda: empty(SCORE_COLUMNS))
    probes: pd.DataFrame = field(default_factory=lambda: empty(PROBE_COLUMNS))
    history: pd.DataFrame = field(default_factory=lambda: empty(HISTORY_COLUMNS))
    sampler: str = "grid"
    study_file: str = ""
    invocation: Invocation = NO_INVOCATION
    environments: tuple[Environment, ...] = ()
    table: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""
    scale: defaults.ReadScale = ""
    environment: pd.DataFrame = field(default_factory=lambda: empty(ENVIRONMENT_COLUMNS))
    settings: Settings = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    select_by: str = ""
    looks: pd.DataFrame = field(default_factory=lambda: empty(LOOK_COLUMNS))
    plans: tuple[Plan, ...] = ()
    model: Mapping[str, Any] = field(default_factory=dict)
    beyond_run: defaults.BeyondRun = defaults.BEYOND_RUN
    stated_margin: float = defaults.MARGIN
    references: pd.DataFrame = field(default_factory=lambda: empty(REFERENCE_COLUMNS))
    load_items: Callable[[], ItemScores | None] | None = None
    baseline: Baseline | None = None
    tuning: NuisanceTrials | None = None
    names: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def named(self) -> Mapping[int, str]:
        """The names of configurations by the numbers of their trials."""
        return {number: name for name, numbers in self.names.items() for number in numbers}

    def call(self, numbers: Iterable[int], others: Iterable[str]) -> list[str]:
        """What the study file calls the configurations of trials; `others` where it does not."""
        return [self.named.get(*pair) for pair in zip(numbers, others, strict=True)]

    @cached_property
    def items(self) -> ItemScores | None:
        """What the trials' scores were computed from; read at the first use, None without any."""
        return self.load_items() if self.load_items else None

    @cached_property
    def ranked_trials(self) -> pd.DataFrame:
        """The trials, and those of the baseline, where there is one, with the role of each."""
        if self.baseline is None:
            return self.trials
        both = self.trials.assign(role="search"), self.baseline.trials.assign(role="baseline")
        return pd.concat(both, ignore_index=True)

    @property
    def margin(self) -> float:
        """The margin of the verdict, in the unit of the score: a smaller difference is none."""
        return float(self.plans[-1].values["margin"]) if self.plans else self.stated_margin

    @property
    def score_format(self) -> ScoreFormat:
        """How scores and their differences are written."""
        return ScoreFormat(self.metric, self.margin, self.scale)

    @property
    def alpha(self) -> float:
        """The error rate of the verdict."""
        return float(self.plans[-1].values["alpha"]) if self.plans else defaults.ALPHA

    @property
    def nuisance(self) -> tuple[str, ...]:
        """The settings whose values were chosen for each configuration."""
        return self.tuning.names if self.tuning is not None else ()

    @property
    def compared(self) -> Settings:
        """The settings that tell configurations apart: without the nuisance settings."""
        return {n: setting for n, setting in self.settings.items() if n not in self.nuisance}

    @property
    def command(self) -> str:
        """Its command for a shell; empty where none is recorded."""
        return str(self.invocation)

    @property
    def ran_with(self) -> Environment:
        """What its first trial ran with, which all share but for machine and versions."""
        return self.environments[0] if self.environments else Environment()

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits of mtdlab that its trials ran with, each once, in the order of the trials."""
        return tuple(dict.fromkeys(env.commit for env in self.environments if env.commit))

    @property
    def evaluation_name(self) -> str:
        """The data set of the graded pairs; empty where it was not recorded."""
        return self.ran_with.evaluation.name if self.ran_with.evaluation else ""

    @property
    def facts(self) -> Mapping[str, str]:
        """What was run, in sentences by name, in the order to print them."""
        return self.table or join_sentences(self.environments)

    @property
    def has_seeds(self) -> bool:
        """Whether the seeds of the runs were recorded; else each run has one of its own."""
        return self.table.get("seed") != NO_SEEDS

    @property
    def program(self) -> str:
        """The training program that made the runs, MODULE:FUNCTION; empty for mtdlab's trainer."""
        return next((name for name in self.methods if ":" in name), "")

    def __repr__(self) -> str:
        """A summary of the study in two lines: frames would fill the terminal."""
        done = int((self.trials["state"] == "COMPLETE").sum())
        frames = ("trials", "curves", "spectra", "scores", "probes")
        rows = ", ".join(f"{name} {len(getattr(self, name)):,}" for name in frames)
        return (
            f"study {self.name}: {done} of {self.planned} trials complete, metric {self.metric}\n"
            f"rows: {rows}"
        )
