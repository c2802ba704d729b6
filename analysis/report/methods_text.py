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
    "Because the best is chosen by the same scores, the confidence intervals are adjusted for all "
    "pairs (Bonferroni); a difference is statistically significant if its interval excludes 0."
)


def describe_methods(context: StudyContext, finding: Finding) -> tuple[str, ...]:
    """The methods behind what this study's page states."""
    texts = [_SEEDS]
    if finding.topic in ("methods", "configurations"):
        texts.append(_PAIRED)
    if context.verdict.levels > 1:
        texts += _describe_verdict(context.verdict)
    return tuple(texts) if context.study.program else (*texts, _PUBLISHED)


def _describe_verdict(verdict: Verdict) -> tuple[str, ...]:
    """The tests of the shape over MTD, and the set of best levels."""
    return (
        "The verdict on MTD comes from a model of the score with an effect of the seed and one of "
        f"the level of MTD. It is “flat” if every level is shown to lie within {verdict.margin:g} "
        "points of the mean over levels (equivalence tests); if not, “peaked” if the slope of the "
        "score on log MTD up to an inner level and the slope down from it are both significant, "
        "adjusted for the choice of that level; if not, “rising” or “falling” if the slope over "
        "all levels is significant and that end is statistically indistinguishable from the best "
        "level; otherwise “inconclusive”. A test uses the larger of two variances, that of the "
        "levels compared and that typical of all levels; critical values are simulated for this "
        "design, with equal and with unequal variances.",
        "The levels that are statistically indistinguishable from the best come from multiple "
        "comparisons with the best: the best level is among them with a probability of at least "
        f"{100 * verdict.level:.3g} %.",
    )
