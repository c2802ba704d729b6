"""Topic: singular values before and after training, and effective rank (MoCoSE, figure 7)."""

from dataclasses import dataclass

import pandas as pd

from analysis import figures
from analysis.data.runs import choose_evenly
from analysis.report.cells import describe_curve, make_table
from analysis.report.topics.base import Axes, Draw, Drawing, StudyContext, Table, Topic
from analysis.statistics.curves import compute_effective_ranks, compute_spectra

_MOST_LINES = 24


@dataclass(frozen=True)
class Spectra:
    """The results: `spectra` is `compute_spectra`, `ranks` is `compute_effective_ranks`."""

    spectra: pd.DataFrame
    ranks: pd.DataFrame

    def moment(self, name: str) -> pd.DataFrame:
        """The ranks before or after training."""
        return self.ranks[self.ranks["moment"] == name]


def compute(context: StudyContext) -> Spectra | None:
    """The spectra; None where no spectrum of a run with an MTD was recorded."""
    trials, recorded = context.curve_trials, context.study.spectra
    spectra = compute_spectra(trials, recorded)
    if not len(spectra):
        return None
    return Spectra(spectra, compute_effective_ranks(trials, recorded))


def show(info: Spectra) -> tuple[Table, ...]:
    before = info.moment("before").set_index("mtd")["mean"]
    after = info.moment("after").drop(columns="moment").reset_index(drop=True)
    if before.reindex(after["mtd"]).round(1).nunique() > 1:  # else the text has the one value
        after.insert(3, "before", after["mtd"].map(before))
    caption = (
        "Effective rank after training, with its interval: how many equally large singular values "
        "would spread as much as these do (the exponential of their entropy)."
    )
    shown = after.rename(columns={"mean": "after"})
    return (make_table(shown, caption=caption, csv="effective_rank", many="levels"),)


def describe(info: Spectra) -> tuple[str, ...]:
    before, after = info.moment("before")["mean"], info.moment("after")
    text = "The effective rank before training was not recorded."
    if len(before):
        text = f"Before training the effective rank is {before.mean():.1f}."
    if len(after):
        text += " " + describe_curve(after, "After training it is", decimals=1)
    return (text,)


def draw(info: Spectra) -> Drawing:
    caption = (
        "Singular values of the evaluation sentences' embeddings, each divided by the largest, "
        "as the mean over trials. A flatter line means that more dimensions are used."
    )
    levels, drawn = len(info.moment("after")), len(_drawn(info))
    if drawn < levels:
        caption += f" Drawn: {drawn} of {levels} levels of MTD, evenly chosen."

    def panel(ax: Axes) -> None:
        before = info.spectra[info.spectra.index.get_level_values("moment") == "before"]
        figures.draw_spectra(before, _drawn(info), ax)

    panels: list[tuple[str, Draw]] = [("spectra" if drawn > 1 else "", panel)]
    if drawn > 1:
        title = "after training, divided by the mean over levels"
        panels.append((title, lambda ax: figures.draw_spectrum_ratios(_drawn(info), ax)))
    return Drawing(
        "Singular values before and after training",
        panels,
        height=3.8,
        columns=len(panels),
        caption=caption,
        alt=describe(info)[0],
    )


def _drawn(info: Spectra) -> pd.DataFrame:
    after = info.spectra[info.spectra.index.get_level_values("moment") == "after"]
    return choose_evenly(after, _MOST_LINES)


TOPIC = Topic(
    name="spectra",
    title="Spectra before and after",
    group="Representation",
    compute=compute,
    csv={
        "spectra": lambda info: info.spectra.reset_index(),
        "effective_rank": lambda info: info.ranks,
    },
    figures={"spectra": draw},
    text=describe,
    tables=show,
)
