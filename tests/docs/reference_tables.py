"""Generated reference of the tables: the frames of a study, and the CSV files of its page.

Which columns a CSV file has is read from small example studies, which together have most topics;
the other topics are listed without columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from mtdlab.analysis.data import frames
from mtdlab.analysis.data.frames import (
    LOOK_COLUMNS,
    REFERENCE_COLUMNS,
    Baseline,
    RecordedSetting,
    StudyFrames,
)
from mtdlab.analysis.data.markdown import markdown_table
from mtdlab.analysis.measures.trace import PARTS, d_trace
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import TOPICS
from mtdlab.analysis.report.topics.experiment import EXPERIMENT_TOPICS

COLUMN_MEANINGS: Mapping[str, str] = {
    "age": "mean age of the keys in use, in steps",
    "added": "trials that the look added; in `sufficiency.csv`, curves added to the null model",
    "alignment": "mean squared distance of positive pairs; lower is better",
    "alpha": "nominal significance level of the look",
    "at_end": "whether the chosen value is the lowest or highest that was tried",
    "base": "null model of the score",
    "best_step": "step of the checkpoint that was kept",
    "best_high": "upper end of the optimal range, in steps",
    "best_low": "lower end of the optimal range, in steps",
    "best_mtd": "MTD with the highest mean score",
    "beyond_run": "whether the level is beyond the run, which the verdict leaves out",
    "beyond": "trials whose half-life is longer than the longest lag",
    "claim": "what the paper states",
    "chosen": "whether the value was chosen",
    "chosen_by": "score by which the trial is the best",
    "collapsed_share": "trials that collapsed, in percent of those that did or have a score",
    "collapsed": "trials whose vectors collapsed",
    "condition": "learning rate and steps, as text",
    "configuration_mean": "mean score of the trial's configuration over its seeds",
    "configuration_trials": "trials of that configuration",
    "cosine": "mean cosine of a sentence's key now and `lag` steps ago",
    "cosine_different": "mean cosine of different sentences' keys now",
    "decision": "continue, or why the study ended",
    "device": "what the trial ran on, such as `cpu` or `cuda:0`",
    "different": "mean cosine of keys of the mean age and online vectors of other sentences",
    "difference": "paired difference from the best, in points; in `baseline.csv` the baseline "
    "minus the configuration; in `claims.csv` what minus what",
    "difference_high": "upper end of its confidence interval",
    "difference_se": "its standard error over seeds",
    "group": "configurations that share the choice",
    "difference_low": "lower end of its confidence interval",
    "importance": "share of the score's variance that the setting explains (functional ANOVA)",
    "setting": "hyperparameter by its name in a study file",
    "label": "its name and symbol, as the page shows it",
    "encoder": "the encoder before training",
    "explained": "share of the variance between configurations that the null model explains",
    "failed": "trials that failed",
    "fgsm_changed": "share of word embedding entries that FGSM changed",
    "first": "first of two correlated quantities, or of two settings; of a collapse, its earliest "
    "step over the trials",
    "freedom": "degrees of freedom of the added curves",
    "holm": "whether the verdict holds with one error rate for all claims of the page",
    "half_life": "half-life of a trial's keys, in steps",
    "high": "upper end of the 95 % confidence interval",
    "less_at": "the value of the second setting at which the difference is subtracted",
    "lower": "value that is subtracted; of an interaction, of its first setting",
    "upper": "value from which the other is subtracted; of an interaction, of its first setting",
    "at": "the value of the second setting at which the difference is taken",
    "l1": "L1 distance of (alignment, uniformity) from the reference point",
    "l2": "L2 distance of (alignment, uniformity) from the reference point",
    "lag": "age of the earlier keys, in steps",
    "last": "latest step over the trials at which a collapse began",
    "level": "level of the confidence interval",
    "unit": "unit of the difference: points, or the measure",
    "levels": "levels of MTD",
    "longest_lag": "longest lag that was measured, in steps",
    "look": "number of the look, from 1",
    "loss": "training loss of the step",
    "low": "lower end of the 95 % confidence interval",
    "may_be_best": "whether the difference's interval includes 0, or there is none",
    "memory": "mean over its trials of `peak_memory`, in MB",
    "mean": "mean over the seeds",
    "mean_cosine": "mean cosine of random sentence pairs; near 1: collapsed",
    "measure": "what the row measures",
    "median": "median over the trials",
    "moment": "`before` or `after` training",
    "mtd": "maximum traceable distance, in steps; empty for a method without one",
    "items": "evaluation items whose sampling the interval covers; 0: it covers seeds alone",
    "n": "trials",
    "name": "name of the claim in `claims.yaml`",
    "number": "number of the trial, as in Optuna",
    "oldest": "mean similarity of keys of the greatest age in use",
    "oldest_age": "greatest age of the keys in use, in steps",
    "oldest_similarity": "`similarity`, of keys of the greatest age",
    "optimism": "expected excess of the best of n over its own mean",
    "p_value": "p value of the look's peak or trend",
    "peak_memory": "highest memory of the trial's process, or allocated on its GPU, in bytes",
    "paired_high": "upper end of the interval of the deviation",
    "paired_high_all": "upper end of its simultaneous interval, for all levels at once",
    "paired_low": "lower end of the interval of the deviation",
    "paired_low_all": "lower end of its simultaneous interval, for all levels at once",
    "paired_mean": "deviation from the mean over levels within each seed, averaged over the seeds",
    "paired_seeds": "seeds of the deviation",
    "precision": "`float32` or `bfloat16`",
    "processor": "model of the processor",
    "pruned": "trials that were pruned",
    "published": "the value in the paper; of a claim the difference",
    "queue_fill": "keys in the queue",
    "ratio": "K/N",
    "reading": "its pooling, then `whitened` or `flow`; or `word overlap`, without an encoder",
    "reason": "why the trial failed; empty otherwise",
    "reason_code": "nan_loss, collapsed, oom, error or interrupted (its process died "
    "three times); empty unless it failed",
    "role": "`search` or `baseline`, in studies with a baseline",
    "runs": "how many trials the look was computed from",
    "same_runs": "claims whose tests compare the same runs",
    "scale": "seeds, encoder, sentences, metric",
    "score": "score x 100: Spearman's rank correlation, or accuracy",
    "score_before": "score of the encoder before training",
    "score_optimism": "optimism of the reported score",
    "second": "second of the two quantities that are correlated, or of the two settings",
    "seed": "seed of the trial",
    "seed_sd": "standard deviation of the seeds' effects",
    "seconds": "mean duration of a trial, evaluations included",
    "seeds": "seeds",
    "share": "initial queue size over the queue size",
    "sharing": "how many other tests compare some of the same runs",
    "similarity": "mean cosine of keys of the mean age and online vectors of the same sentences",
    "source": "paper, and its table or figure",
    "slope": "regression of the reported score on the score that ranks",
    "spent": "error probability spent up to the look",
    "sts_dev": "score on the dev pairs",
    "state": "COMPLETE, FAIL, PRUNED, RUNNING or WAITING",
    "step": "training step",
    "study": "name of the study",
    "task": "name of the task",
    "threads": "threads of the trial",
    "trial_sd": "standard deviation of trials beside the effects of seed and configuration",
    "trials": "how many trials; of a look, the numbers of those that it was computed from",
    "uniformity": "log mean of exp(-2 d²) over pairs of sentences; lower is better",
    "value": "score by which the trial is the best",
    "verdict": "verdict of the look, or on the claim",
    "wall_seconds": "duration of the trial, in seconds",
    "why": "why the claim is not tested, or what would decide it",
    "within_high": "upper end of the 95 % confidence interval within seeds, about the mean",
    "within_low": "its lower end",
}


_FIXED: dict[str, Any] = {
    "method": "mocose",
    "ema_decay": 0.85,
    "queue_size": 512,
    "batch_size": 64,
    "learning_rate": 1e-3,
    "steps": 40,
    "prediction_layers": 2,
    "initial_queue_size": 32,
    "queue_slice": "all",
}


def example_studies() -> tuple[StudyFrames, ...]:
    """The small studies that the reference is generated from.

    They are of η and K, with a baseline and a choice; of η, N and learning rates; of a symmetric
    structure; of methods; of settings beside MTD.
    """
    first = _study(ema_decay=[0.75, 0.9, 0.97], queue_size=[64, 512])
    own = first.trials.drop_duplicates("seed").assign(queue_size=0)
    own["number"] += len(first.trials)
    tried = pd.concat([first.trials.assign(temperature=value) for value in (0.05, 0.1)])
    group = tried["ema_decay"].astype("str") + "-" + tried["queue_size"].astype("str")
    tried = tried.assign(group=group, configuration=group, selected=tried["score"])
    return (
        replace(
            first,
            baseline=Baseline({"queue_size": 0}, len(own), own),
            tuning=frames.NuisanceTrials(("temperature",), (), len(tried), {}, tried),
        ),
        _study(ema_decay=[0.75, 0.9, 0.97], batch_size=[32, 64], learning_rate=[3e-4, 1e-3]),
        _study(ema_decay=[0.0, 0.85], prediction_layers=[0, 2]),
        _study(method=["mocose", "simcse", "mixcse"]),
        _study(learning_rate=[3e-4, 1e-3], steps=[20, 40]),
    )


def _study(**varied: Sequence[Any]) -> StudyFrames:
    trials = _trials(varied)
    measured = ["number", "ema_decay", "score", "alignment", "uniformity", "mean_cosine"]
    curves = [trials[measured].assign(step=step, loss=1.0 / (step + 1)) for step in (0, 20)]
    tasks = ("sts_dev", "sts_test", "STS12", "STSB")
    scores = pd.concat([trials[["number", "score"]].assign(task=task) for task in tasks])
    moments = pd.DataFrame({"moment": ["before", "after"], "power": [1.5, 0.5]})
    spectra = trials[["number"]].merge(moments, how="cross").set_index(["number", "moment"])
    values = np.arange(1, 9.0) ** -spectra[["power"]].to_numpy()
    lags = pd.DataFrame({"step": 20, "lag": [1, 2, 4, 8]})
    probes = trials[["number"]].merge(lags, how="cross")
    numbers = tuple(trials["number"].tolist())
    look = (1, 3, len(numbers), 0.05, 0.05, 0.2, "inconclusive", "max_seeds", 0, numbers)
    return StudyFrames(
        name="example",
        metric="sts_test",
        planned=len(trials),
        trials=trials,
        curves=pd.concat(curves).assign(queue_fill=512.0, fgsm_changed=0.1),
        spectra=pd.DataFrame(values, index=spectra.index),
        scores=scores[["number", "task", "score"]],
        probes=probes.assign(cosine=0.9 ** probes["lag"], cosine_different=0.1),
        history=_measure(trials),
        references=pd.DataFrame([("builtin", "mean", 27.3)], columns=[*REFERENCE_COLUMNS]),
        looks=pd.DataFrame([dict(zip(LOOK_COLUMNS, look, strict=True))]),
        settings={name: RecordedSetting(name, default=value) for name, value in _FIXED.items()},
        methods={"mocose": "MoCoSE", "simcse": "SimCSE", "mixcse": "MixCSE"},
        select_by="sts_dev",
    )


def _measure(trials: pd.DataFrame) -> pd.DataFrame:
    """Similarities of keys that fall with the MTD."""
    measured = trials[["number", "mtd"]].dropna().assign(step=20, age=4, oldest_age=8)
    similarity = 1 - 0.01 * measured["mtd"]
    return measured.assign(similarity=similarity, oldest_similarity=similarity, different=0.1).drop(
        columns="mtd"
    )


def _trials(varied: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Trials with three seeds of every combination; the score falls with the MTD."""
    chosen = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    rows = [_FIXED | {"seed": seed} | values for seed in range(3) for values in chosen]
    trials = pd.DataFrame(rows)
    trials.insert(0, "number", np.arange(len(trials)))
    trials["mtd"] = d_trace(*(trials[name].to_numpy(float) for name in PARTS))
    trials.loc[trials["method"] != "mocose", ["ema_decay", "queue_size", "mtd"]] = np.nan
    noise = np.random.default_rng(0).normal(scale=0.2, size=len(trials))
    return trials.assign(
        score=40 + trials["seed"] - np.log(trials["mtd"].fillna(1)) + noise,
        state="COMPLETE",
        reason="",
        alignment=0.2 + 0.01 * noise,
        uniformity=-2.0 + 0.01 * noise,
        mean_cosine=0.1,
        score_before=30.0,
        best_step=20.0,
        wall_seconds=10.0,
        peak_memory=6e8,
    )


_FRAMES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "trials": (
        "A row per trial. Every other setting of the study follows as a column of its own.",
        frames.TRIAL_COLUMNS,
    ),
    "baseline.trials": (
        "A row per trial of the baseline, with the columns of `study.trials`, which has none of "
        "them; `study.baseline` is None without one. `study.ranked_trials` has both, and `role`.",
        {},
    ),
    "references": (
        "A row per reading of each encoder before training, of a complete study whose metric is on "
        "graded pairs.",
        frames.REFERENCE_COLUMNS,
    ),
    "curves": (
        "A row per trial and step; NaN where a step was not evaluated.",
        frames.CURVE_COLUMNS,
    ),
    "scores": ("A row per trial and task.", frames.SCORE_COLUMNS),
    "probes": (
        "A row per trial, step and lag, in studies with `probe_every`.",
        frames.PROBE_COLUMNS,
    ),
    "history": (
        "A row per trial and step at which keys in use were compared with the online encoder.",
        frames.HISTORY_COLUMNS,
    ),
    "looks": ("A row per look, in studies with `until`.", frames.LOOK_COLUMNS),
    "environment": (
        "A row per trial that recorded what it was computed with. The version of each package "
        "follows as a column of its own, and `commit` and `code` where they are known.",
        frames.ENVIRONMENT_COLUMNS,
    ),
}
_SETTING = "setting ([all settings](settings.md))"


def frames_markdown() -> str:
    """The frames of `mtdlab.load_study` with their columns."""
    parts = []
    for frame, (text, columns) in _FRAMES.items():
        rows = (
            (f"`{name}`", kind, COLUMN_MEANINGS.get(name, _SETTING))
            for name, kind in columns.items()
        )
        table = markdown_table(("column", "type", "meaning"), rows) if columns else ""
        parts.append(f"### `study.{frame}`\n\n{text}\n\n{table}".rstrip())
    return "\n\n".join(parts)


def files_markdown() -> str:
    """The CSV files that the topics of a page write, with their columns."""
    rows = [
        (f"`{name}.csv`", topic.title, _columns(name, topic in EXPERIMENT_TOPICS))
        for topic in TOPICS
        for name in topic.csv
    ]
    return markdown_table(("file in `tables/`", "section of the page", "columns"), rows)


def columns_markdown() -> str:
    """The meanings of the columns of the CSV files, in alphabetical order."""
    used = {name for columns in example_columns().values() for name in columns}
    meanings = sorted(COLUMN_MEANINGS.items())
    rows = ((f"`{name}`", text) for name, text in meanings if name in used)
    return markdown_table(("column", "meaning"), rows)


def _columns(name: str, is_experiment: bool) -> str:
    """The columns of a CSV file in one line; numbered ones, singular values, as a range."""
    columns = example_columns().get(name)
    if columns is None and is_experiment:
        return "the varied settings, then as `ema_decay.csv`"
    if columns is None:
        return "depend on the study"
    names = [f"`{column}`" for column in columns if not column.isdecimal()]
    if len(names) < len(columns):
        names.append("`0`, `1`, … (singular values, the largest first)")
    return ", ".join(names)


@cache
def example_columns() -> Mapping[str, Sequence[str]]:
    """The columns of every CSV file that one of the example studies has."""
    by_file: dict[str, list[str]] = {}
    for context in map(StudyContext, example_studies()):
        for contents in filter(None, (topic.build(context) for topic in TOPICS)):
            for name, frame in contents.csv.items():
                if len(frame.columns):
                    by_file.setdefault(name, [str(column) for column in frame])
    return by_file
