"""The text on one experiment: what a study shows, and where it differs from the paper.

Only what the intervals support is stated.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from analysis.experiments import Comparison, Gap
from analysis.experiments.compare import PUBLISHED_ERROR, find_top
from analysis.experiments.settings import format_setting, format_value
from analysis.intervals import Estimate
from analysis.report.cells import clean
from analysis.report.text import PERCENT, count

_MOST_VALUES = 8


def name_rows(comparison: Comparison, table: pd.DataFrame) -> list[str]:
    """The rows of a table with the columns `by`, as text."""
    rows = table[list(comparison.experiment.by)].itertuples(index=False)
    return [clean(comparison.experiment.label(*row)) for row in rows]


def _listed(name: str, values: Iterable[object]) -> str:
    """A setting with its values, many of them as their number."""
    texts = [clean(format_value(name, value)) for value in sorted(values, key=_order)]
    many = len(texts) > _MOST_VALUES
    return f"{clean(name)} ({f'{len(texts):,} values' if many else ', '.join(texts)})"


def _axis(comparison: Comparison) -> str:
    return " / ".join(comparison.labels.get(name, name) for name in comparison.experiment.by)


def _interval(estimate: Estimate) -> str:
    return f"{PERCENT} CI {estimate.low:.2f} to {estimate.high:.2f}"


def _clear(gap: Gap) -> bool:
    return gap.size.low > 0


def _equal(means: pd.Series) -> bool:
    """Whether means are the same as they are printed."""
    return len({f"{mean:.2f}" for mean in means}) == 1


def describe_spread(comparison: Comparison) -> str:
    """The best and the lowest row, and whether they differ significantly over seeds."""
    names, means = name_rows(comparison, comparison.table), comparison.paired.mean()
    of = f"Of {_axis(comparison)}"
    if len(means) < 2:
        return f"{of}, no two can be compared yet: that takes two run with the same seeds."
    left = len(names) - len(means)
    if left:
        of += f", {left:,} excluded for lack of seeds,"
    if _equal(means):
        return f"{of}, all score the same ({means.iloc[0]:.2f})."
    best, worst = find_top(means), find_top(-means)
    text = (
        f"{of} {names[best]} is best ({means[best]:.2f}) and {names[worst]} lowest "
        f"({means[worst]:.2f})"
    )
    gap = comparison.spread
    if gap is None:
        return f"{text}; not tested, which takes two seeds at both."
    size = f"{gap.size.mean:.2f} points ({_interval(gap.size)}, adjusted for all pairs)"
    significant = "statistically significant" if _clear(gap) else "not significant"
    return f"{text}; {significant}: paired difference {size}."


def describe_paper(comparison: Comparison) -> str:
    """Whether the best value and the direction are the paper's; nothing without its values."""
    names, paired = name_rows(comparison, comparison.table), comparison.paired
    known = comparison.table["published"][paired.columns].dropna()
    means = paired.mean()[known.index]
    if comparison.differs:
        return _describe_differing(comparison)
    if len(known) < 2 or _equal(means):
        return ""
    here, there = find_top(means), find_top(known)
    gap = comparison.paper_gap
    shared = f"Of the {len(known)} rows that the paper has too"
    if here == there:
        text = f"{shared}, {names[there]} has the highest mean both there and here."
    else:
        text = f"{shared}, {names[there]} is best there and {names[here]} here; "
        doubt = f" ({_interval(gap.size)})" if gap is not None else ""
        if gap is not None and _clear(gap):
            text += f"here the first is lower by {gap.size.mean:.2f} points{doubt}."
        else:
            text += f"the difference is not significant{doubt}."
    return f"{text} {_describe_slope(comparison.slope)}".strip()


def _describe_differing(comparison: Comparison) -> str:
    """How the runs differ from the published ones; nothing without published values."""
    if not comparison.table["published"].notna().any():
        return ""
    here = [_listed(name, values) for name, values in comparison.differs.items()]
    return (
        f"The published trials had {comparison.experiment.fixed}, these {', '.join(here)}: their "
        "order is not compared with the paper's."
    )


def _describe_slope(slope: Estimate | None) -> str:
    if slope is None or not math.isfinite(slope.low):
        return ""
    per = (
        f"{slope.mean:+.2f} points here per point there, {_interval(slope)}, published scores "
        f"taken to have a standard error of {PUBLISHED_ERROR:g} points"
    )
    if slope.low > 0:
        return f"Rows higher in the paper are higher here ({per})."
    if slope.high < 0:
        return f"The direction is opposite: rows higher in the paper are lower here ({per})."
    return f"Whether the rows rank as in the paper is not settled ({per})."


def describe_others(comparison: Comparison) -> str:
    """What else varied between these runs, over which the means are taken."""
    texts = [_listed(name, comparison.runs[name].drop_duplicates()) for name in comparison.others]
    text = f"Means are over {', '.join(texts)}." if texts else ""
    if comparison.left_out:
        text += (
            f" {count(comparison.left_out, 'trial')} excluded, whose seed did not run their "
            "other settings at every row."
        )
    return text.strip()


def _order(value: object) -> tuple[float, str]:
    if isinstance(value, int | float | np.number) and math.isfinite(value):
        return (float(value), "")
    return (math.inf, str(value))


def warn_mixed(comparison: Comparison) -> tuple[str, ...]:
    """Why the rows cannot be compared with each other."""
    warnings = []
    if not comparison.balanced:
        others = ", ".join(clean(name) for name in comparison.others)
        warnings.append(
            f"No seed ran any of the other settings ({others}) at every row, so the "
            f"effects of {_axis(comparison)} and of the others cannot be separated here."
        )
    if is_diagonal(comparison):
        first, second = (comparison.labels.get(name, name) for name in comparison.experiment.by)
        warnings.append(
            f"Each {second} was run with one {first} only, so their effects cannot be "
            "separated here."
        )
    return tuple(warnings)


def is_diagonal(comparison: Comparison) -> bool:
    """Whether both settings of a grid vary, but never one while the other stays."""
    by = comparison.experiment.by
    if len(by) < 2:
        return False
    seconds = comparison.table.groupby(by[1])[by[0]].nunique()
    return len(seconds) > 1 and comparison.table[by[0]].nunique() > 1 and bool((seconds == 1).all())


def describe_idle(comparison: Comparison) -> tuple[str, ...]:
    """The FGSM steps that changed no entry of the word embeddings: they did nothing."""
    table = comparison.table
    if "fgsm_changed" not in table:
        return ()
    idle = table[(table["fgsm_epsilon"] > 0) & (table["fgsm_changed"] == 0)]
    return tuple(
        f"An ε of {format_setting(value)} changed no entry of the word embeddings: its trials are "
        "trials without FGSM."
        for value in idle["fgsm_epsilon"]
    )


def _describe_widths(comparison: Comparison) -> Iterator[str]:
    """Whose dimension the published widths are shares of."""
    width = comparison.experiment.encoder_width
    if width and not comparison.table["published"].notna().any():
        yield f"The paper's widths are of an encoder {width} wide: none is one of these."
    elif width:
        yield f"Published widths are taken as shares of the encoder's, there {width}."


def describe_comparison(comparison: Comparison) -> tuple[str, ...]:
    """The paragraphs above an experiment's table."""
    texts = (
        describe_spread(comparison) if comparison.balanced else "",
        describe_paper(comparison),
        *_describe_widths(comparison),
        *describe_idle(comparison),
        describe_others(comparison),
    )
    return tuple(text for text in texts if text)
