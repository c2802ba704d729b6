"""The sections of a report: which there are, and what stands in each."""

import pandas as pd

from analysis.report import curve_sections, experiment_sections
from analysis.report.cells import make_table
from analysis.report.page import Section, Table
from analysis.report.results import Results
from analysis.report.wording import count

_MOST_ROWS = 400
_MOST_REASONS = 20
_SHOWN = (
    "number",
    "state",
    "seed",
    "ema_decay",
    "queue_size",
    "batch_size",
    "initial_queue_size",
    "mtd",
    "score",
    "alignment",
    "uniformity",
    "reason",
)
_OPTIONAL = ("method", "queue_slice")


def _table_reasons(trials: pd.DataFrame) -> tuple[Table, ...]:
    """Why trials failed or were stopped, the commonest reason first."""
    ended = trials[trials["state"].isin(["FAIL", "PRUNED"])]
    if not len(ended):
        return ()
    reasons = ended.assign(reason=ended["reason"].replace("", "not recorded"))
    counts = reasons.groupby(["state", "reason"])["number"].agg(["size", "min"])
    counts = counts.sort_values(["size", "min"], ascending=[False, True]).reset_index()
    counts.columns = pd.Index(["state", "reason", "n", "first trial"])
    caption = "Why trials ended without a result."
    if len(counts) > _MOST_REASONS:
        caption += f" The {_MOST_REASONS} commonest of {len(counts):,} reasons."
    shown = counts.head(_MOST_REASONS)[["n", "state", "reason", "first trial"]]
    return (make_table(shown, caption=caption, csv="trials"),)


def _choose_trials(trials: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """All trials, or of many the best half of the rows and the last half."""
    if len(trials) <= _MOST_ROWS:
        return trials, f"{count(len(trials), 'trial')}."
    half = _MOST_ROWS // 2
    done = trials[trials["state"] == "COMPLETE"]
    best = done.nlargest(half, "score").index
    chosen = best.union(trials.index.difference(best)[-half:])
    caption = (
        f"{len(chosen)} of {len(trials):,} trials: the {len(best)} best and the "
        f"{len(chosen) - len(best)} last of the others. The CSV has all."
    )
    return trials.loc[chosen], caption


def _section_trials(results: Results) -> Section:
    trials = results.trials
    if not len(trials):
        return Section("trials", "All trials", ("No trial has been started.",))
    chosen, caption = _choose_trials(trials)
    extra = [name for name in _OPTIONAL if name in trials and trials[name].nunique() > 1]
    shown = chosen[[*_SHOWN[:-1], *extra, _SHOWN[-1]]]
    table = make_table(shown, caption=caption, csv="trials", sortable=True)
    return Section("trials", "All trials", tables=(*_table_reasons(trials), table))


def build_sections(results: Results, tables: dict[str, pd.DataFrame]) -> tuple[Section, ...]:
    """The sections that the study has something to say in, in their order on the page.

    tables  `tabulate(results)`.
    """
    sections = (
        curve_sections.section_score(results, tables),
        curve_sections.section_batches(results),
        *experiment_sections.build_experiments(results),
        curve_sections.section_tasks(results),
        curve_sections.section_geometry(results),
        curve_sections.section_spectra(results),
        _section_trials(results),
    )
    return tuple(section for section in sections if section is not None)
