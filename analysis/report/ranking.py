"""Writes the page of a ranking of models over blocks, such as tasks."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import compress
from pathlib import Path

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.block_tables import BlockScores
from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.durations import format_count, write_plural
from mtdlab.analysis.data.frames import DIFFERENCE
from mtdlab.analysis.inference.best import rank_models
from mtdlab.analysis.questions.answer import Difference, list_numbers
from mtdlab.analysis.questions.best import lead_over
from mtdlab.analysis.questions.wording import capitalise, clean, join_sentences, join_words
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.page import BasePage, Headline, Status
from mtdlab.analysis.report.topics.base import Axes, Contents, Drawing, Topic
from mtdlab.analysis.report.writer import Report, write_page

_TITLE = "Differences to the best mean"
_MOST_LISTED = 8
_MOST_DRAWN = 20
_LONGEST = 60
_FEW = 12
_METHOD = (
    "Models are compared by the mean of their paired differences over blocks; each value of the "
    "column {} is one, and all have the same weight. Intervals are simultaneous for all pairs of "
    "models at 95 %; the critical value is simulated for this number of models and blocks. Two "
    "models are separated if the interval of their difference excludes 0, and those not separated "
    "from the highest mean may be the best. Models that share a letter are not separated (compact "
    "letter display, Piepho 2004), which does not show that they are equal."
)


def _list_limits(data: BlockScores, blocks: str) -> Iterator[str]:
    """What the ranking does not show; which blocks were left out comes first."""
    if left := data.left_out:
        named = [f"{at} (no {', '.join(lacking[:3])})" for at, lacking in left.items()]
        more = ", …" if len(named) > _MOST_LISTED else ""
        listed = ", ".join(named[:_MOST_LISTED]) + more
        count = format_count(len(left), data.block)
        yield f"Left out for lack of a score of each model: {count}, {listed}."
    yield (
        f"{capitalise(blocks)} count as independent. Those of one family, as all that measure "
        "retrieval, favour the same models: where a tenth or a quarter of the variance of "
        "differences is between families, 7 or 12 % of simulated tables with 12 of them separate "
        "equal models, and 36 or 82 % of those with 56 in 7 families. Average each family first, "
        "and name the column of families with --block."
    )
    if len(data.table) <= _FEW:
        yield (
            f"With {_FEW} {blocks} or fewer, a model that is far better or worse in a few of them "
            "is separated falsely in up to 9 % of simulated tables."
        )
    yield f"Training seeds of the models, and the items within the {blocks}, are not covered."


def _build(
    data: BlockScores, table: pd.DataFrame, names: list[str], blocks: str, answer: str
) -> Contents:
    write, high = data.write, data.write.say("highest")
    first = table.head(_MOST_DRAWN)
    rows = first[DIFFERENCE].fillna(0.0)

    def draw(ax: Axes) -> None:
        ax.axvline(0, color=figures.RUN, linewidth=1)
        figures.draw_rows(
            rows.set_axis(["mean", "low", "high"], axis=1),
            ax,
            names=[" ".join(row) for row in zip(names, first["groups"], strict=False)],
            label="",
            name=f"difference to the {high} mean, {write.unit or write.axis_unit}",
            drawn=f"mean over {len(data.table)} {blocks}",
        )

    caption = (
        f"Each model minus the one with the {high} mean, with intervals that are "
        "simultaneous for all pairs. Models that share a letter are not separated."
    )
    drawn = caption + f" The first {_MOST_DRAWN} are drawn." * (len(table) > _MOST_DRAWN)
    height = 1.4 + 0.3 * len(first)
    drawing = Drawing(_TITLE, [("", draw)], drawn, f"{answer}.", height, rigid=True)
    shown = table.assign(may_be_best=table["may_be_best"].map({True: "yes", False: "no"}))
    listed = make_table(shown, caption=caption, csv="ranking", write=write, most=len(shown))
    scores = (data.table * write.as_read(1)).rename_axis(data.block).reset_index()
    csv = {"ranking": write.frame(table), "scores": scores}
    return Contents(csv=csv, figures={"ranking": drawing}, tables=(listed,))


def write_ranking(data: BlockScores, out: Path, *, generated: str, version: str) -> Report:
    """Write the page, the figure and the tables of a ranking into a folder.

    The arguments are those of `write_report`. Raises OSError if the folder cannot be written.
    """
    judged, table = rank_models(data.table)
    write, blocks, best = data.write, clean(write_plural(data.block)), table["may_be_best"]
    names = [clean(name, most=_LONGEST) for name in table["model"]]
    first, second, *_ = names
    high, count, alike = write.say("highest"), len(table), [*compress(names, best)]
    answer = f"{len(alike)} of {count} models may be the best; {first} has the {high} mean"
    if len(alike) == 1:
        answer = f"{first} is best over {blocks} like these {len(data.table)}"
    certainty = join_sentences(
        f"May be the best: {join_words(alike)}." if 1 < len(alike) <= _MOST_LISTED else "",
        f"{len(data.table)} {blocks}; the intervals hold for all pairs of models together.",
    )
    text = f"{first} minus {second}, the next"
    effect = Difference(lead_over(table.iloc[1]), LEVEL, text, score_format=write)
    limits = tuple(clean(limit, most=1_000) for limit in _list_limits(data, blocks))
    page = BasePage(
        name=clean(data.name),
        generated=generated,
        version=version,
        origin=data.origin,
        headline=Headline(
            f"Which model has the {high} mean {clean(write.name)} over {blocks}?",
            answer,
            certainty,
            is_open=len(alike) > 1,
            status=Status("", f"{count} models, {len(data.table)} {blocks}"),
            effect=effect,
            scope=f"Covers {blocks} drawn like these, independent of each other.",
            caveats=limits[: bool(data.left_out)],
            rerun=str(data.invocation),
        ),
        limits=limits,
        methods=(_METHOD.format(clean(data.block)),),
        cites_mtd=False,
    )
    contents = _build(data, table, names, blocks, answer)
    topic: Topic[BlockScores] = Topic(
        "ranking", _TITLE, lambda _: contents, csv=["ranking", "scores"]
    )
    files = write_page(out, page, [topic], data, main=[topic.name], scores=write)
    sentence = join_sentences(f"{answer}.", effect.sentence, certainty)
    judged = replace(judged, sentence=sentence)
    fields = {**list_numbers(judged), "left_out": data.left_out}
    fields["models"] = table[["model", "may_be_best", "groups"]].to_dict("records")
    summary = (sentence, *limits[: bool(data.left_out)])
    return Report(**vars(files), verdict=judged, summary=summary, fields=fields)
