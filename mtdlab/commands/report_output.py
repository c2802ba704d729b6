"""What the command report writes and prints: pages, the verdict as fields, the best trial."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtdlab import __version__
from mtdlab.commands.printing import rounded_mtd

if TYPE_CHECKING:
    from analysis.frames import StudyFrames
    from analysis.level_means import LevelMeans
    from analysis.report import MeansReport, MultiStudyReport, Report
    from analysis.transfer import Agreement
    from analysis.verdict import Verdict


_MOST_NAMED = 5


@dataclass(frozen=True)
class Written:
    """A page, and what is printed of it: fields with --json, else the text."""

    page: Path
    fields: dict[str, Any]
    text: str


def write_study(frames: "StudyFrames", folder: Path, generated: str) -> Written:
    """The page of one study."""
    from analysis.report import write_report

    written = write_report(frames, folder, generated=generated, version=__version__)
    lines = (written.summary[0], _describe_failed(frames), f"The page: {written.page}")
    text = "\n".join(filter(None, lines))
    return Written(written.page, _described(written) | _ranking(frames), text)


def _describe_failed(frames: "StudyFrames") -> str:
    """How many runs failed, and the numbers of the first; empty where none did."""
    failed = frames.trials[frames.trials["state"] == "FAIL"]
    if not len(failed):
        return ""
    named = ", ".join(map(str, failed["number"].head(_MOST_NAMED)))
    more = f" and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
    plural = "s" if len(failed) > 1 else ""
    return (
        f"{len(failed)} of {len(frames.trials)} runs failed (trial{plural} {named}{more}) and "
        "are left out of the scores."
    )


def write_means(means: "LevelMeans", folder: Path, generated: str) -> Written:
    """The page of level means."""
    from analysis.report import write_level_means

    written = write_level_means(means, folder, generated=generated, version=__version__)
    text = "\n".join([*written.summary, f"The page: {written.page}"])
    return Written(written.page, _described(written), text)


def write_together(
    studies: "Sequence[StudyFrames]",
    out: Path,
    name: str,
    generated: str,
    *,
    transfer: bool = False,
) -> Written:
    """The page of each study and the page over all of them; transfer: see `write_multi_study`."""
    from analysis.report import write_multi_study
    from analysis.report.transfer import describe_agreement

    written = write_multi_study(
        studies, out, name=name, generated=generated, version=__version__, transfer=transfer
    )
    pages = {
        frames.name: _described(own) | _ranking(frames)
        for frames, own in zip(studies, written.pages.values(), strict=True)
    }
    lines = [f"{each}: {own.summary[0]}" for each, own in written.pages.items()]
    lines += map(describe_agreement, written.agreements)
    text = "\n".join([*lines, f"The page: {written.page}"])
    fields = _files(written) | {"pages": pages}
    if transfer:
        fields["transfer"] = [_agreement_fields(each) for each in written.agreements]
    return Written(written.page, fields, text)


def _agreement_fields(found: "Agreement") -> dict[str, Any]:
    """An agreement as it is printed with --json; null where a value is not known."""
    estimates = {"tau": found.order, "ratio": found.ratio}
    estimates |= dict(zip(("first_best", "other_best"), found.best, strict=True))
    return {
        "study": found.other,
        "unit": found.unit,
        "levels": found.levels,
        "pairs": found.pairs,
        "alike": found.alike,
        "opposite": found.opposite,
        **{
            name: {end: _finite(value) for end, value in vars(each).items()}
            for name, each in estimates.items()
        },
        "same_best": found.same_best if math.isfinite(found.ratio.low) else None,
    }


def _described(written: "Report | MeansReport") -> dict[str, Any]:
    return {
        **_files(written),
        **verdict_fields(written.verdict),
        "mtd_sufficient": written.mtd_sufficient,
        "seeds_for_power": written.seeds_for_verdict,
    }


def _ranking(study: "StudyFrames") -> dict[str, Any]:
    """The score that is reported, the one that ranks the trials, and the best trial by it.

    Numbers that are not known, such as the optimism with one seed, are None.
    """
    from analysis.best_trial import compute_choices

    names = {"metric": study.metric, "select_by": study.select_by or study.metric}
    choices = compute_choices(study)
    if not choices or choices[0].chosen_by != names["select_by"]:
        return names | {"best": None}
    best = choices[0]
    numbers = {
        "mtd": rounded_mtd(_finite(best.mtd)),
        "select_by_score": best.value,
        "optimism": best.optimism,
        "score": best.score,
        "score_optimism": best.score_optimism,
    }
    known = {name: _finite(value) for name, value in numbers.items()}
    return names | {"best": {"trial": best.number} | known}


def verdict_fields(verdict: "Verdict") -> dict[str, Any]:
    """The verdict as it is printed with --json; null where a value is not known.

    verdict is flat, rising, falling, peaked or inconclusive; distances are in steps.
    """
    interval = verdict.peak_interval
    return {
        "verdict": verdict.verdict,
        "sentence": verdict.sentence,
        "peak_excluded": verdict.peak_excluded,
        "peak_mtd": rounded_mtd(_finite(verdict.peak_mtd)),
        "peak_interval": None if interval is None else [*map(rounded_mtd, interval)],
        "optimal_range": [*map(rounded_mtd, verdict.optimal_range)],
        "p_value": _finite(verdict.p_value),
        "p_trend": _finite(verdict.p_trend),
        "items": verdict.items,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _files(written: "Report | MeansReport | MultiStudyReport") -> dict[str, Any]:
    return {
        "page": str(written.page),
        "figures": [str(path) for path in written.figures],
        "tables": [str(path) for path in written.tables],
    }
