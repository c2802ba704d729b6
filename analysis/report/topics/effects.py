"""Topic: effects of settings, and whether the effect of one depends on another."""

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.settings import format_value
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.verdict import describe_points
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.report.cells import LEVEL, PERCENT, clean, describe_items, make_table
from mtdlab.analysis.report.topics.base import Contents, Drawing, StudyContext, Topic
from mtdlab.analysis.statistics.configurations import Effects, compute_effects

_MOST_LINES = 6
_MOST_PAIRS = 12


def compute(context: StudyContext) -> Effects | None:
    """The effects; None without two settings in a grid, or where they only make up the MTD."""
    study = context.study
    effects = compute_effects(study)
    return None if effects is None or set(effects.settings["setting"]) <= set(PARTS) else effects


def describe_effect(effects: Effects) -> str:
    """A sentence on the setting with the largest effect."""
    row = effects.settings.iloc[0]
    size = Estimate(row["difference"], row["low"], row["high"])
    name = str(row["setting"])
    values = " instead of ".join(_write(name, row[end]) for end in ("upper", "lower"))
    doubt = "" if size.low > 0 else ", not significant"
    return (
        f"The largest effect is that of {clean(name)}: {describe_points(size, LEVEL)} with "
        f"{values}, averaged over the other settings{doubt}."
    )


def describe_interactions(effects: Effects) -> tuple[str, ...]:
    """A sentence on each pair of settings of which one's effect significantly depends on the other.

    For the first pair it states the values with the highest means.
    """
    clear = effects.interactions.query("low > 0").drop_duplicates(["first", "second"])
    return tuple(
        _describe_interaction(row) + (_describe_best(effects) if place == 0 else "")
        for place, (_, row) in enumerate(clear.iterrows())
    )


def _describe_interaction(row: pd.Series) -> str:
    first, second = str(row["first"]), str(row["second"])
    upper, lower = (_write(first, row[name]) for name in ("upper", "lower"))
    at, less_at = (_write(second, row[name]) for name in ("at", "less_at"))
    size = Estimate(row["difference"], row["low"], row["high"])
    return (
        f"The effect of {clean(first)} depends on {clean(second)}: {upper} less {lower} is "
        f"{describe_points(size, LEVEL)} more with {clean(second)} {at} than with {less_at}."
    )


def _describe_best(effects: Effects) -> str:
    """The best value of the first setting at each of the second, where they differ; else empty."""
    first, second = effects.interactions[["first", "second"]].iloc[0].astype("str")
    best = effects.cells.loc[effects.cells.groupby("second")["mean"].idxmax()]
    if best["first"].nunique() < 2 or len(best) > _MOST_LINES:
        return ""
    places = (
        f"{_write(first, row['first'])} at {_write(second, row['second'])}"
        for _, row in best.iterrows()
    )
    return f" Highest means by {clean(second)}: {clean(first)} {', '.join(places)}."


def _write(name: str, value: object) -> str:
    return clean(format_value(name, value))


def describe(effects: Effects) -> tuple[str, ...]:
    """Sentences on the largest effect and on the interactions."""
    none = ("No effect depends significantly on the value of another setting.",)
    return (describe_effect(effects), *(describe_interactions(effects) or none))


def build(context: StudyContext) -> Contents | None:
    if (effects := context.once(compute)) is None:
        return None
    covered = f"covers seeds{describe_items(effects.items)}"
    more = len(effects.settings) > _MOST_PAIRS
    rest = f" The {_MOST_PAIRS} largest; the CSV has all." if more else ""
    interactions = effects.interactions.drop_duplicates(["first", "second"])
    named = {"first": "setting", "second": "with", "at": "at its value", "less_at": "less at"}
    tables = (
        make_table(
            effects.settings.head(_MOST_PAIRS),
            caption="Effects of the settings: the mean score with one value less that with "
            "another, over all values of the other settings, with a "
            f"{PERCENT} CI that is simultaneous for all pairs of values of all settings and "
            f"{covered}.{rest}",
            csv="effects",
        ),
        make_table(
            interactions.rename(columns=named),
            caption="For each pair of settings the clearest interaction: how much more the first "
            "setting's value is above its other value at one value of the second than at another, "
            f"with a {PERCENT} CI that is simultaneous for all such differences of all pairs and "
            f"{covered}. The CSV has all.",
            csv="interactions",
            labels={"difference": "difference of differences"},
        ),
    )
    return Contents(
        csv={"effects": effects.settings, "interactions": effects.interactions},
        figures={"interactions": _draw(effects)},
        text=describe(effects),
        tables=tables,
    )


def _draw(effects: Effects) -> Drawing:
    """The means of the clearest interaction over one setting, a line for each value of another."""
    cells = effects.cells
    first, second = effects.interactions[["first", "second"]].iloc[0].astype("str")
    if cells["second"].nunique() > max(_MOST_LINES, cells["first"].nunique()):
        cells = cells.rename(columns={"first": "second", "second": "first"})
        first, second = second, first
    return Drawing(
        f"Score by {clean(first, most=40)} and {clean(second, most=40)}",
        [("", lambda ax: figures.draw_interaction(cells, ax, first=first, second=second))],
        height=3.8,
        caption="The score less its seed's mean over all configurations, averaged over seeds and "
        f"the other settings; bars are {PERCENT} CIs over seeds, for these items. Parallel lines: "
        "no interaction.",
        alt=" ".join(describe(effects)),
    )


TOPIC = Topic("effects", "Effects of settings", build, csv=["effects", "interactions"])
