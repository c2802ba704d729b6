"""The rules that a whole study has to follow, checked once its sections are read."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from mtdlab.config import strata
from mtdlab.config.search import grid
from mtdlab.config.source import Source, SpecError
from mtdlab.config.study import StudySpec
from mtdlab.settings import first_error
from mtdlab.settings.limits import TRIALS


def check_pruner(source: Source, spec: StudySpec) -> Iterator[SpecError]:
    """Refuse a pruner that would compare test scores in a study that is ranked by dev scores.

    A pruner sees the scores of the pairs on which the checkpoint is chosen.
    """
    on_test = spec.selections() & {"test", "sts_average"}
    if spec.pruner != "none" and on_test and spec.select_by == "sts_dev":
        yield source.error(
            ("pruner",),
            "a pruner compares scores on the pairs that select_on names, here the test pairs; "
            "use select_on: dev, or rank by the test pairs too, with select_by: sts_test",
        )


def check_points(source: Source, spec: StudySpec) -> Iterator[SpecError]:
    """Refuse, before anything runs, a grid with a point that cannot be trained, or with none.

    Only the first such point: the others break the same rule.
    """
    if spec.sampler != "grid":
        return
    points = list(grid(spec.search, spec.skip))
    if not points:
        yield source.error(("skip",), "leaves no point of the grid to run; take an entry out")
    for point in points:
        try:
            spec.settings(spec.parameters_of(point), seed=0)
        except ValidationError as error:
            yield source.error(("search",), f"{point}: {first_error(error)}")
            return


def check_trials(source: Source, spec: StudySpec) -> Iterator[SpecError]:
    """Refuse more trials than a study may have, before any of them is built."""
    if spec.sampler == "grid":
        configurations = sum(1 for _ in grid(spec.search, spec.skip))
    else:
        configurations = spec.trials or 0
    if (count := configurations * len(spec.seeds)) > TRIALS:
        path = ("until", "max_seeds") if spec.until else ("seeds",)
        yield source.error(
            path,
            f"{configurations:,} configurations with {len(spec.seeds):,} seeds each are "
            f"{count:,} trials; a study has at most {TRIALS:,}",
        )


def check_until(source: Source, spec: StudySpec) -> Iterator[SpecError]:
    """Refuse `until` in a study whose verdict cannot be decided by more seeds, or is biased."""
    if spec.until is None:
        return
    where = ("until",)
    if spec.sampler != "grid":
        yield source.error(where, f"needs sampler: grid; {spec.sampler} has no fixed levels")
        return
    if spec.pruner != "none":
        yield source.error(where, f"needs every trial; take pruner: {spec.pruner} out")
    if "method" in spec.search:
        yield source.error(where, "needs one method; the verdict is about MTD")
        return
    levels: set[float | None] = set()
    for point in grid(spec.search, spec.skip):
        levels.add(spec.settings(spec.parameters_of(point), seed=0).mtd)
        # further levels change nothing
        if len(levels - {None}) > 1:
            break
    else:
        yield source.error(where, "needs two levels of MTD or more to compare")


def check_strata_kept(
    source: Source, spec: StudySpec, mtds: Sequence[float]
) -> Iterator[SpecError]:
    """Refuse strata whose configurations have another MTD, under a schedule of the EMA decay."""
    for point in grid(spec.search, spec.skip):
        found = spec.settings(spec.parameters_of(point), seed=0).mtd
        if found is None or all(abs(found - mtd) > strata.TOLERANCE for mtd in mtds):
            message = (
                f"{point} has an MTD of {found}; strata need a constant EMA decay and the whole "
                "queue"
            )
            yield source.error(("search", strata.KEY), message)
            return
