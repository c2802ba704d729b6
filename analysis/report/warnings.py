"""The limits of the conclusions from a study, a sentence for each reason."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd

from mtdlab.analysis.data.beyond_run import describe_lengths, list_rows
from mtdlab.analysis.data.environment import BUILT_IN, RecordedCorpus
from mtdlab.analysis.data.frames import NuisanceTrials, Settings, StudyFrames
from mtdlab.analysis.data.metric import ScoreFormat, is_loss
from mtdlab.analysis.data.runs import (
    completed_runs,
    format_mtd,
    free_settings,
    has_mtd,
    levels_of,
    name_levels,
    traced_runs,
    varied_parts,
    varied_settings,
)
from mtdlab.analysis.data.settings import name_setting
from mtdlab.analysis.inference.best import number_configurations
from mtdlab.analysis.inference.pairing import OF_LEVELS
from mtdlab.analysis.measures.repeats import RunSizes, describe_repeats
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.questions.wording import clean, join_words
from mtdlab.analysis.report.cells import format_count
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.study_facts import describe_status
from mtdlab.analysis.report.topics.references import warn_of_references
from mtdlab.analysis.statistics.configurations import find_frequent_failures, name_configurations
from mtdlab.analysis.statistics.nuisance import compare_nuisance_values
from mtdlab.analysis.statistics.training import count_best_at_end

_WIDE = 4.0
"""The gap between two groups of scores, in robust standard deviations."""
_NORMAL = 1.4826
"""The ratio of the standard deviation of normal values to their median absolute deviation."""
_LEAST = 4
_MOST_NAMED = 6
_MOST_TRIALS = 12
_ADAPTIVE_SAMPLERS = frozenset({"tpe"})
_LEAST_RUNS = 5
_MOST_CAVEAT = 110
"""The most characters of a line of the first screen."""
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")
_RATE_OF_CHOICE = (
    "In simulations configurations that are equal at their best values differ significantly at the "
    "chosen ones in up to 28 % of studies with 2 seeds to choose by, 16 % with 5 and 10 % with 10."
)
_MOST_AT_END = 0.5


def list_warnings(context: StudyContext) -> tuple[str, ...]:
    """The warnings that apply to a study, in the order of the page."""
    return tuple(text for group in _group_warnings(context) for text in group)


def list_caveats(context: StudyContext) -> tuple[str, ...]:
    """The caveats of the first screen: the first warning of each group.

    Those on the levels of MTD are no caveats where the question is not about them.
    """
    aside = set() if context.question.is_over_mtd else set(_warn_of_design(context))
    groups = ([text for text in group if text not in aside] for group in _group_warnings(context))
    firsts = (_SENTENCE.split(group[0])[0] for group in groups if group)
    return tuple(clean(text, most=_MOST_CAVEAT) for text in firsts)


def _group_warnings(context: StudyContext) -> tuple[tuple[str, ...], ...]:
    """The warnings on references, levels, training and data, in each the weightiest first."""
    groups = (
        # references are scored once a study has ended
        (warn_of_references(context), _warn_of_open_study(context.study)),
        (
            *_warn_of_design(context),
            warn_of_failures(context.trials, context.study.compared, context.study.named),
            *_warn_of_levels(context),
            _warn_of_collapses(context.collapsed),
        ),
        (
            _warn_of_code(context.study.environment),
            *_warn_of_choices(context),
            # of every method, not of the one whose curve is drawn
            " ".join(
                describe_lengths(list_rows(traced_runs(context.trials)), context.study.beyond_run)
            ),
            _warn_of_short_training(context.trials),
            warn_of_environment(context.study.environment, context.traced),
        ),
        (_warn_of_methods(context), _warn_of_chosen_values(context.study.tuning)),
        (*_warn_of_data(context), _warn_of_groups(context.levels.table, context.write)),
    )
    return tuple(tuple(filter(None, group)) for group in groups)


def _warn_of_choices(context: StudyContext) -> Iterator[str]:
    study = context.study
    if context.note:
        chosen = context.note.removeprefix("checkpoints chosen on ")
        yield (
            f"Checkpoints were chosen on {chosen}, so the scores are too high. So are some "
            "published ones; do not compare these with any whose checkpoints were chosen on a dev "
            "split."
        )
    if study.tuning is not None:
        yield _warn_of_range(study.tuning)
    if study.sampler in _ADAPTIVE_SAMPLERS:
        yield (
            f"An adaptive sampler ({study.sampler}) chose the settings. It tries more where scores "
            "were good, so a correlation or a mean over its points is biased; run a grid to assess "
            "the shape."
        )
    if not study.has_seeds:
        yield (
            "No seeds were recorded, so no difference is tested. Runs of one configuration differ "
            "too, by an amount that these runs do not tell."
        )
    if repeated := study.table.get("repeated"):
        yield repeated
    if pruned := int((study.trials["state"] == "PRUNED").sum()):
        yield (
            f"A pruner stopped {format_count(pruned, 'trial')} because of bad intermediate scores. "
            "A mean or a correlation over the remaining trials is biased: where trials were "
            "pruned, only good ones are left."
        )


def _warn_of_methods(context: StudyContext) -> str:
    """That methods differ in settings that several of them have; empty where they do not."""
    study, runs = context.study, completed_runs(context.trials)
    if not context.compares_methods or "method" not in runs:
        return ""
    apart = []
    for name in varied_settings(runs, study.compared):
        known = runs.dropna(subset=[name]).groupby("method")[name]
        if name not in ("method", *PARTS) and len({frozenset(each) for _, each in known}) > 1:
            apart.append(clean(name_setting(name)))
    if not apart:
        return ""
    return (
        "A difference of methods cannot be told from that of the other settings in which they "
        f"differ. These are {join_words(apart)}."
    )


def _warn_of_chosen_values(nuisance: NuisanceTrials | None) -> str:
    """By how many seeds nuisance settings were chosen; empty without any."""
    if nuisance is None:
        return ""
    seeds = format_count(len(nuisance.seeds), "other seed")
    return (
        f"Each {_join(nuisance.names)} was chosen on dev data by {seeds}, so a difference may come "
        f"from the choice. {_RATE_OF_CHOICE}"
    )


def _warn_of_range(nuisance: NuisanceTrials) -> str:
    """Where no value could be chosen, and how many chosen ones lie at an end of their range."""
    table, setting = compare_nuisance_values(nuisance), _join(nuisance.names)
    kind, sentences = "value" if nuisance.per else "configuration", []
    if nuisance.chosen and (unchosen := table["group"].nunique() - len(nuisance.chosen)) > 0:
        count, verb = format_count(unchosen, kind), "is" if unchosen == 1 else "are"
        sentences.append(f"All values of {setting} failed for {count}, which {verb} not compared.")
    if ends := int(table["at_end"].sum()):
        groups = format_count(table["group"].nunique(), kind)
        groups += f" of {_join(nuisance.per)}" if nuisance.per else ""
        sentences.append(
            f"The chosen {setting} is the lowest or highest value tried for {ends} of {groups}. A "
            f"value beyond the range may suit {'it' if ends == 1 else 'them'} better."
        )
    return " ".join(sentences)


def _join(names: tuple[str, ...]) -> str:
    return clean(" and ".join(map(name_setting, names)), most=60)


def _warn_of_open_study(study: StudyFrames) -> str:
    if study.table or not len(study.trials) or describe_status(study).is_over:
        return ""
    return (
        "The study has not ended: the answer is of what has been run, and it may change. Values "
        "without a completed trial are missing from tables and figures."
    )


def _warn_of_design(context: StudyContext) -> Iterator[str]:
    """Warnings that an effect of MTD cannot be told from chance, another setting or methods."""
    runs = context.traced
    levels = runs["mtd"].nunique()
    done = len(completed_runs(context.trials))
    if len(runs) and done < _LEAST_RUNS:
        yield (
            f"Only {format_count(done, 'trial')} completed with a score. Fewer than {_LEAST_RUNS} "
            "show no shape."
        )
    if runs["seed"].nunique() == 1 and levels > 1:
        yield (
            "All trials have the same seed, so no difference is tested. Seeds change scores by an "
            "amount that this study cannot estimate; run at least 3."
        )
    varied = varied_parts(runs)
    if len(varied) == 1 and levels > 1:
        yield (
            f"Of what makes up MTD only {varied[0]} varies: its effect and that of MTD cannot be "
            "told apart."
        )
    compared = context.levels.runs
    free = free_settings(compared, context.study.compared)
    tied = [name for name in free if name not in OF_LEVELS and _differs_by_level(compared, name)]
    if tied and levels > 1:
        yield (
            f"Levels of MTD do not have the same values of {', '.join(map(clean, tied))}: what "
            "differs between levels may come from that."
        )
    if len(context.curve_trials) < len(context.trials) and levels > 1:
        method = context.name_method(runs["method"].dropna().iloc[0])
        yield (
            f"Several methods have an MTD; the verdict on it is of {method} alone. So are the "
            "curves over MTD, alignment, uniformity and spectra; the section “Methods” compares "
            "all."
        )
    if _differs_by_level(runs[runs["batch_size"].notna()], "batch_size"):
        yield (
            "Batch sizes differ between levels of MTD, so the curve mixes two effects. Read the "
            "curves by batch size instead."
        )


def _differs_by_level(runs: pd.DataFrame, name: str) -> bool:
    """Whether levels of MTD differ in the values of a setting that they have runs of."""
    return len({frozenset(values.dropna()) for _, values in runs.groupby("mtd")[name]}) > 1


def _warn_of_short_training(trials: pd.DataFrame) -> str:
    ends, known = count_best_at_end(trials)
    text = (
        f"{ends:,} of {format_count(known, 'trial')} scored best at their last evaluation. A "
        "level that learns slowly may be worse here than it would be after more steps."
    )
    return text if ends > _MOST_AT_END * known else ""


def _warn_of_collapses(collapsed: pd.DataFrame) -> str:
    def count(trials: int, assessed: int) -> str:
        every = format_count(trials, "trial")
        return every if assessed == trials else f"{assessed} that were assessed, of {every},"

    shown = collapsed[collapsed["collapsed"] > 0]
    where = ", ".join(
        f"{amount} of {count(trials, assessed)} at MTD {format_mtd(mtd)}"
        for mtd, trials, assessed, amount, _ in shown.head(_MOST_NAMED).itertuples(name=None)
    )
    text = (
        f"Trials collapsed at {format_count(len(shown), 'level')} of MTD. By level: {where}. A "
        "mean there depends on how many of its trials collapse; the table of levels has the median "
        "and the share of collapsed trials beside it."
    )
    return text if where else ""


def _warn_of_levels(context: StudyContext) -> Iterator[str]:
    verdict = context.verdict
    if len(context.curve) > verdict.levels_run:
        yield (
            f"The {len(context.curve):,} levels of MTD are merged with their neighbours into "
            f"{verdict.levels_run} for the verdict."
        )
    if len(left := context.untraced) and verdict.levels_run > 1 and not context.compares_methods:
        varied = free_settings(left, context.study.compared)
        means = left.groupby(number_configurations(left, varied))["score"].mean()
        yield (
            f"The verdict leaves out {format_count(len(left), 'trial')} without an MTD, whose best "
            f"configuration has a mean of {context.write.score(means.max())}."
        )
    missing = verdict.levels_run - verdict.levels - len(verdict.left_out)
    if missing > 0 and verdict.seeds > 1:
        yield (
            f"The verdict leaves out {format_count(missing, 'level')} of MTD, which share fewer "
            "than two seeds with the others."
        )


def _warn_of_data(context: StudyContext) -> Iterator[str]:
    study = context.study
    if is_loss(study.metric):
        yield (
            f"The highest {clean(study.metric)} counts as the best, since no direction was stated. "
            "If it is a loss, as its name says, run it as another study with direction: minimize."
        )
    corpus = study.ran_with.corpus
    if corpus is not None and corpus.name == BUILT_IN:
        pairs = study.evaluation_name in ("", BUILT_IN)
        both = "and the evaluation pairs are" if pairs else "is"
        yield f"The training text {both} synthetic (the built-in data set)."
    if corpus is not None:
        yield _warn_of_repeats(study.trials, corpus)
        if corpus.left_out:
            yield f"Of the training text {clean(corpus.left_out, most=160)}."
    if scored := study.ran_with.evaluation:
        if scored.shared:
            yield (
                f"{scored.shared:,} of {format_count(scored.test_pairs, 'test pair')} are dev "
                "pairs too. Checkpoints are chosen on dev pairs, so scores on these are too high."
            )
        for split, text in scored.left_out.items():
            yield f"Of the {clean(split)} pairs' file {clean(text, most=160)}."
    scores = completed_runs(study.trials)["score"].astype("float64")
    if bare := int((study.trials["state"] == "COMPLETE").sum()) - len(scores):
        yield f"{format_count(bare, 'completed trial')} excluded for lack of a score."
    write = context.write
    if study.program and write.unit and len(scores) and scores.abs().max() <= 1:
        yield (
            f"All scores lie between -1 and 1. If {clean(write.name)} is a fraction, the program "
            f"should return it x 100: the margin of the verdict is {write.stated_margin}."
        )


def _warn_of_repeats(trials: pd.DataFrame, corpus: RecordedCorpus) -> str:
    """Where texts are expected to be negatives of themselves, by sizes that trials recorded."""
    names = ["batch_size", "queue_size", "steps", "mtd"]
    rows = trials.reindex(columns=names).astype("float64").fillna({"queue_size": 0.0})
    rows = rows.dropna(subset=names[:3]).drop_duplicates()
    runs = [
        RunSizes(int(batch), int(queue), int(steps), None if np.isnan(mtd) else mtd)
        for batch, queue, steps, mtd in rows.to_numpy().tolist()
    ]
    return describe_repeats(corpus.amount, clean(corpus.unit, most=20), corpus.repeated, runs)


def _warn_of_groups(table: pd.DataFrame, write: ScoreFormat) -> str:
    """A warning that scores of a level fall into two groups, as where some trials collapse."""
    if min(table.shape) < 2 or len(table) < _LEAST:
        return ""
    residuals = table - table.median()
    residuals = residuals.sub(residuals.median(axis=1), axis=0)
    spread = _NORMAL * float(np.nanmedian(residuals.abs()))
    texts = []
    for mtd, column in residuals.items():
        values = np.sort(column.dropna().to_numpy())
        gaps = np.diff(values)
        if len(values) >= _LEAST and spread > 0 and gaps.max() > _WIDE * spread:
            lower = int(gaps.argmax()) + 1
            texts.append(
                f"at MTD {format_mtd(float(str(mtd)))} {lower} of "
                f"{format_count(len(values), 'seed')} lie {write.amount(gaps.max())} "
                f"{write.say('below')} the others"
            )
    if not texts:
        return ""
    return (
        f"Scores fall into two groups at {format_count(len(texts), 'level')} of MTD. By level: "
        f"{'; '.join(texts[:_MOST_NAMED])} (after effects of seed and level). Means and intervals "
        "assume one group."
    )


def warn_of_failures(
    trials: pd.DataFrame, settings: Settings, named: Mapping[int, str] = MappingProxyType({})
) -> str:
    """A warning that failures are concentrated at some levels of MTD or in some configurations.

    It is about configurations where there are several methods or fewer than two levels; `named` are
    the names of configurations by the numbers of their trials.
    """
    ended = trials[trials["state"].isin(["COMPLETE", "FAIL"])]
    if not (failed := ended["state"] == "FAIL").any():
        return ""
    groups = levels_of(ended).where(has_mtd(ended))
    varied = free_settings(ended, settings)
    if by_level := groups.nunique() > 1 and "method" not in varied:
        names = "MTD " + groups.dropna().map(format_mtd)
    else:
        groups = number_configurations(ended, varied)
        settings_of = zip(
            ended["number"][failed], name_configurations(ended[varied][failed]), strict=True
        )
        names = pd.Series([named.get(*each) for each in settings_of], ended.index[failed])
    if not len(uneven := find_frequent_failures(failed, groups)):
        return ""
    all_failed, all_ended = failed[groups.notna()].agg(["sum", "size"])
    where = [
        f"{failed_here} of {size} with {clean(names[failed & (groups == group)].iloc[0])}"
        for group, failed_here, size in uneven.head(_MOST_NAMED).itertuples(name=None)
    ]
    where += [f"{len(uneven) - len(where)} more"] if len(uneven) > len(where) else []
    kind = "level" if by_level else "configuration"
    kinds = format_count(len(uneven), kind) + " of MTD" * by_level
    return (
        f"Failures are concentrated in {kinds}. Failed trials: {', '.join(where)}, against "
        f"{all_failed} of {all_ended} in all (Fisher's exact test, Bonferroni-adjusted p < 0.05). "
        "The trials that completed there are a selection."
    )


def _warn_of_code(known: pd.DataFrame) -> str:
    """Which trials ran with which code of the user; known: `StudyFrames.environment`."""
    if "code" not in known or known["code"].nunique() < 2:
        return ""
    ran = []
    for code, trials in known.groupby("code", sort=False)["number"]:
        named = ", ".join(map(str, trials[:_MOST_TRIALS])) + ", …" * (len(trials) > _MOST_TRIALS)
        code = clean(str(code)) or "code that is not recorded"
        ran.append(f"{format_count(len(trials), 'trial')} ({named}) with {code}")
    return f"Trials that had failed ran again with changed code: {'; '.join(ran)}."


def warn_of_environment(environment: pd.DataFrame, runs: pd.DataFrame) -> str:
    """Warnings that runs differ in precision, device, processor, threads or a version.

    `environment` is `StudyFrames.environment`, and the runs are completed ones with an MTD.
    """
    known = runs[["number", "mtd"]].merge(environment, on="number")
    texts = []
    for name in environment.columns.drop(["number", "code"], errors="ignore"):
        values = known[known[name] != ""]
        if values[name].nunique() > 1:
            groups = values.groupby(name)["mtd"]
            levels = [f"{clean(str(value))} at {name_levels(mtds)}" for value, mtds in groups]
            texts.append(f"{clean(str(name))} ({'; '.join(levels)})")
    if not texts:
        return ""
    return (
        f"Not all trials computed alike. They differ in {', '.join(texts)}. Where levels differ in "
        "this, a difference between their scores may come from it."
    )
