"""Topic: effects of settings, and whether the effect of one depends on another."""

from mtdlab.analysis import figures
from mtdlab.analysis.questions.effect import describe_effects
from mtdlab.analysis.questions.wording import PERCENT, clean, describe_items
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.topics.base import Contents, Drawing, StudyContext, Topic
from mtdlab.analysis.statistics.configurations import Effects

_MOST_LINES = 6
_MOST_PAIRS = 12


def build(context: StudyContext) -> Contents | None:
    if (effects := context.effects) is None:
        return None
    if context.asks_differences:
        # the questions state them
        return Contents(figures={"interactions": _draw(effects)})
    covered = f"covers seeds{describe_items(effects.items)}"
    more = len(effects.settings) > _MOST_PAIRS
    rest = f" The {_MOST_PAIRS} largest; the CSV has all." if more else ""
    interactions = effects.interactions.drop_duplicates(["first", "second"])
    values = {"upper": "its value", "lower": "instead of"}
    named = {"first": "setting", "second": "with", "at": "at the value", "less_at": "less at"}
    tables = (
        make_table(
            effects.settings.head(_MOST_PAIRS),
            caption="Effects of the settings: the mean score with one value minus that with "
            "another, over all values of the other settings, with a "
            f"{PERCENT} CI that is simultaneous for all pairs of values of all settings and "
            f"{covered}.{rest}",
            csv="effects",
            labels={**values, "difference": "difference"},
            write=context.write,
        ),
        make_table(
            interactions.rename(columns=named),
            caption="For each pair of settings the clearest interaction: how much more the first "
            "setting's value is above its other value at one value of the second than at another, "
            f"with a {PERCENT} CI that is simultaneous for all such differences of all pairs and "
            f"{covered}. The CSV has all.",
            csv="interactions",
            labels={**values, "difference": "difference of differences"},
            write=context.write,
        ),
    )
    return Contents(
        csv={
            "effects": context.write.frame(effects.settings),
            "interactions": context.write.frame(effects.interactions),
        },
        figures={"interactions": _draw(effects)},
        text=describe_effects(effects, context.write),
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
        caption="The score minus its seed's mean over all configurations, averaged over seeds and "
        f"the other settings; bars are {PERCENT} CIs over seeds, for these items. Parallel lines: "
        "no interaction.",
        alt="",
    )


TOPIC = Topic("effects", "Effects of settings", build, csv=["effects", "interactions"])
