"""How the verdict and the intervals of a study's page are computed, in sentences."""

from analysis.report.context import StudyContext
from analysis.report.findings import Finding
from analysis.verdict import Verdict

_SEEDS = (
    "Seeds are blocks: a seed affects all trials that use it, so trials do not count as "
    "independent. Means are over per-seed means, and intervals are t intervals over seeds."
)
_PUBLISHED = (
    "Published values come from BERT-base on a million Wikipedia sentences: compare shapes with "
    "them, not levels."
)
_PAIRED = (
    "Configurations are compared by the paired difference of their scores over common seeds. "
    "Because the best is chosen by the same scores, the confidence intervals are simultaneous for "
    "all pairs; a difference is statistically significant if its interval excludes 0."
)


def describe_methods(context: StudyContext, finding: Finding) -> tuple[str, ...]:
    """The methods behind what this study's page states."""
    texts = [_SEEDS]
    if finding.topic in ("methods", "configurations"):
        texts.append(_PAIRED)
    if context.verdict.levels > 1:
        texts += _describe_verdict(context.verdict)
    return tuple(texts) if context.study.program else (*texts, _PUBLISHED)


def _describe_items(verdict: Verdict) -> str:
    """Which evaluation data the verdict holds for."""
    if not verdict.items:
        return (
            "The evaluation data are taken as given: intervals and tests cover other seeds, not "
            "other evaluation data."
        )
    return (
        f"Intervals and tests also cover the sampling of the {verdict.items:,} evaluation items: "
        "the variance of a difference is that between seeds plus that of its influence over the "
        "items, which all seeds share."
    )


def _describe_verdict(verdict: Verdict) -> tuple[str, ...]:
    """The tests of the shape over MTD, and the set of best levels."""
    return (
        "The verdict on MTD comes from a model of the score with an effect of the seed and one of "
        "the level of MTD. It is “flat” if any two levels are shown to differ by less than "
        f"{verdict.margin:g} points (equivalence tests); if not, “peaked” if the slope of the "
        "score on log MTD up to an inner level and the slope down from it are both significant, "
        "adjusted for the choice of that level; if not, “rising” or “falling” if the slope over "
        "all levels is significant and that end is statistically indistinguishable from the best "
        "level; otherwise “inconclusive”. A test uses the least significant of three variances: "
        "that of the levels compared, that typical of all levels, and that between seeds, each of "
        "which may have a slope and a curvature of its own. Critical values are simulated for this "
        "design, with independent errors, with errors correlated between neighbouring levels, and "
        "with seeds that have slopes of their own.",
        _describe_items(verdict),
        "The levels that are statistically indistinguishable from the best come from multiple "
        "comparisons with the best: the best level is among them with a probability of at least "
        f"{100 * verdict.level:.3g} %.",
    )
