"""The sentences of a report, written from its numbers."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.curves import completed_runs, format_mtd, varied_settings
from analysis.frames import StudyFrames
from analysis.report.cells import clean, number
from analysis.report.results import LEVEL, Results

PERCENT = f"{100 * LEVEL:g} %"
_ADAPTIVE_SAMPLERS = frozenset({"tpe"})
_MOST_VALUES = 12

WORDS: Mapping[str, str] = {
    "MTD": (
        "Maximum traceable distance, 1/(1 − η) + K/N: how many training steps back the "
        "oldest weights reach that still shape the negatives."
    ),
    "η (ema_decay)": (
        "The share of its old weights that the slowly moving target encoder keeps at each step."
    ),
    "K (queue_size)": "How many earlier sentence vectors the queue holds as negatives.",
    "N (batch_size)": "How many sentences one training step sees, and adds to the queue.",
    "initial_queue_size": "How many random vectors the queue holds before the first step.",
    "seed": "The number that fixes a run's random choices; runs with one seed share them.",
}


def count(amount: int, noun: str) -> str:
    """An amount with its noun in the right number."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def _span(levels: pd.Series) -> str:
    low, high = format_mtd(levels.min()), format_mtd(levels.max())
    return f"MTD {low}" if low == high else f"{len(levels)} levels of MTD from {low} to {high}"


def describe_status(study: StudyFrames) -> str:
    """How far the study is."""
    states = study.trials["state"].value_counts()
    done = int(states.get("COMPLETE", 0))
    failed = int(states.get("FAIL", 0))
    ended = f"{done:,} of {count(study.planned, 'planned run')} completed"
    if failed:
        ended += f", {failed:,} failed"
    open_ = study.planned - int(sum(states.get(name, 0) for name in ("COMPLETE", "FAIL", "PRUNED")))
    running = int(states.get("RUNNING", 0))
    if open_ <= 0 and not running:
        return ended + "."
    return f"Still running: {ended}, {running:,} running now, {max(open_ - running, 0):,} to come."


def describe_settings(trials: pd.DataFrame) -> Mapping[str, str]:
    """What was varied, with the values tried, many of them as a range."""
    settings = {}
    for name in [*varied_settings(trials.drop(columns=["mtd"])), "seed"]:
        values = sorted(trials[name].dropna().unique(), key=_sort_key)
        numeric = pd.api.types.is_numeric_dtype(trials[name])
        words = [number(float(value)) if numeric else clean(str(value)) for value in values]
        if len(words) > _MOST_VALUES:
            words = [f"{len(words):,} values from {words[0]} to {words[-1]}"]
        settings[clean(name)] = ", ".join(words) or "none yet"
    return settings


def _sort_key(value: object) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, int | float | np.number) else (0.0, str(value))


def _describe_runs(results: Results) -> str:
    scored = results.runs
    if not len(scored):
        states = results.trials["state"]
        if len(states) and (states == "FAIL").all():
            return f"All {count(len(states), 'run')} failed, so there is nothing to compare."
        if len(results.simcse):
            return (
                f"{count(len(results.simcse), 'run')} of SimCSE completed, with a mean score of "
                f"{results.simcse['score'].mean():.2f}. It has no queue and no average, so there "
                "is no MTD to compare."
            )
        return "No run has completed with a score yet."
    seeds = int(scored["seed"].nunique())
    return (
        f"{count(len(scored), 'run')} completed with a score, at "
        f"{_span(results.curve['mtd'])}, with {count(seeds, 'seed')}."
    )


def _describe_training(results: Results) -> str:
    runs = results.runs
    before, after = runs["score_before"], runs["score"]
    both = np.isfinite(before.astype("float64"))
    if not both.any():
        return "The score of the untrained encoder was not recorded."
    change = float((after - before)[both].mean())
    text = (
        f"Training took the mean score from {before[both].mean():.2f} to "
        f"{after[both].mean():.2f} ({change:+.2f} points)"
    )
    seeds = runs.groupby("seed")["score"].mean()
    if len(seeds) > 1:
        text += f"; the seed alone moves it with a standard deviation of {seeds.std():.2f} points"
    return text + "."


def summarise_study(results: Results) -> tuple[str, ...]:
    """What the score does against MTD, on which runs this rests, and what training did."""
    if not len(results.runs):
        return (_describe_runs(results),)
    return (results.verdict.sentence, _describe_runs(results), _describe_training(results))


def _warn_of_sampler(sampler: str) -> str:
    if sampler not in _ADAPTIVE_SAMPLERS:
        return ""
    return (
        f"The settings were chosen by an adaptive sampler ({sampler}), which tries more where "
        "scores were high. A correlation or a mean over such points is biased; run a grid to "
        "judge the shape."
    )


def _warn_of_selection(note: str) -> str:
    if not note:
        return ""
    return (
        "Checkpoints were chosen on the TEST pairs, as some published numbers were: these scores "
        "are too high to be compared with any whose checkpoints were chosen on a dev split."
    )


def _warn_of_batches(runs: pd.DataFrame) -> str:
    sizes = {frozenset(level["batch_size"]) for _, level in runs.groupby("mtd")}
    if len(sizes) < 2:
        return ""
    return (
        "The batch sizes differ between levels of MTD, so the curve over all runs mixes the "
        "two; read the curves by batch size instead."
    )


def list_warnings(study: StudyFrames, results: Results) -> tuple[str, ...]:
    """What a reader must know before believing a number."""
    verdict = results.verdict
    missing = verdict.levels_run - verdict.levels if verdict.seeds > 1 else 0
    uncompared = ""
    if missing > 0:
        uncompared = (
            f"{count(missing, 'level')} of MTD with a score left out of the verdict, because "
            "not every seed has run there."
        )
    done = int((results.trials["state"] == "COMPLETE").sum())
    bare = done - len(completed_runs(results.trials))
    unscored = f"{count(bare, 'completed run')} left out for want of a score." if bare else ""
    candidates = (
        _warn_of_selection(results.note),
        _warn_of_sampler(study.sampler),
        _warn_of_batches(results.runs),
        uncompared,
        unscored,
    )
    return tuple(text for text in candidates if text)


def describe_curve(curve: pd.DataFrame, what: str, *, decimals: int = 2) -> str:
    """Where a curve over MTD is highest and lowest."""
    top, bottom = curve.iloc[int(curve["mean"].argmax())], curve.iloc[int(curve["mean"].argmin())]
    if len(curve) == 1:
        return f"{what} {top['mean']:.{decimals}f} at the only MTD, {format_mtd(top['mtd'])}."
    return (
        f"{what} highest at MTD {format_mtd(top['mtd'])} ({top['mean']:.{decimals}f}) and "
        f"lowest at MTD {format_mtd(bottom['mtd'])} ({bottom['mean']:.{decimals}f})."
    )
