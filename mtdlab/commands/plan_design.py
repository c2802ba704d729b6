"""What plan says of a study's design: the seeds that it needs, its looks, what is recorded."""

from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from mtdlab.config import StudySpec
from mtdlab.cost.copies import begin, can_copy
from mtdlab.errors import NothingToReport, StorageError

if TYPE_CHECKING:
    from analysis.frames import StudyFrames


def begin_design(
    spec: StudySpec,
    storage: str | None,
    *,
    effect: float,
    sd: float | None,
    record: bool,
    in_copy: bool,
) -> Callable[[], dict[str, Any]]:
    """A function that returns what `find_design` finds, and raises what it raises.

    in_copy  compute it meanwhile, in a copy of this process if that is possible: it takes seconds.
    """
    find = partial(find_design, spec, storage, effect=effect, sd=sd, record=record)
    return begin(find) if in_copy and can_copy() else cache(find)


def find_design(
    spec: StudySpec, storage: str | None, *, effect: float, sd: float | None, record: bool
) -> dict[str, Any]:
    """The fields `power`, `looks` and `specification`, and records the last if asked to.

    May raise StorageError where it is recorded.
    """
    from analysis.looks import boundaries_at
    from mtdlab.config.plan import plan_of, sha256_of
    from mtdlab.store.plans import record_plan
    from mtdlab.store.urls import storage_url

    url, plan = storage_url(storage), plan_of(spec)
    power = _power(spec, url, effect, sd)
    specification = plan | {"sha256": sha256_of(plan), "recorded": record}
    if record:
        trials = record_plan(url, spec.name, plan, specification["sha256"])
        specification |= {"before_trial_1": not trials, "trials_started": trials}
    nominal = boundaries_at(spec.looks, spec.alpha).nominal
    looks = [
        {"seeds": seeds, "nominal_level": float(level)}
        for seeds, level in zip(spec.looks, nominal, strict=True)
    ]
    return {"power": power, "looks": looks, "specification": specification}


def _power(spec: StudySpec, url: str, effect: float, sd: float | None) -> dict[str, Any] | None:
    """Seeds for 80 % power; None for a study whose levels of MTD are not known or are one."""
    from analysis.design import (
        ASSUMED_DEVIATION,
        POWER,
        compute_needs,
        estimate_precision,
        residual_deviation,
        smallest_margin,
    )

    known = {
        spec.settings(unit.parameters, unit.seed).mtd
        for unit in spec.units()
        if unit.parameters is not None
    }
    levels = sorted(level for level in known if level is not None)
    if len(levels) < 2:
        return None
    frames = _recorded(spec.name, url)
    measured = residual_deviation(frames.trials, frames.settings) if frames else None
    deviation, basis = ASSUMED_DEVIATION, "assumed"
    if sd:
        deviation, basis = sd, "as given"
    elif frames and measured is not None:
        complete = int((frames.trials["state"] == "COMPLETE").sum())
        deviation, basis = measured, f"from {complete} recorded runs"
    needs = compute_needs(levels, effect=effect, deviation=deviation, alpha=spec.alpha)
    seeds = spec.looks[-1]
    precision = None
    if frames:
        precision = estimate_precision(frames.trials, frames.settings, frames.items, spec.alpha)
    return {
        "effect": effect,
        "residual_sd": deviation,
        "basis": basis,
        "power": POWER,
        "seeds": [asdict(need) for need in needs],
        "planned_seeds": seeds,
        "flat_margin": smallest_margin(levels, seeds, deviation=deviation, alpha=spec.alpha),
        "precision": precision and asdict(precision),
    }


def _recorded(study: str, url: str) -> "StudyFrames | None":
    """The study's recorded trials; None where there are none."""
    from mtdlab.store import load_study

    try:
        return load_study(study, url, curves=False)
    except (StorageError, NothingToReport):
        return None


def describe_design(design: dict[str, Any]) -> list[str]:
    """The design in a few lines."""
    from analysis.looks import describe_recorded

    lines = []
    if design["power"]:
        lines += _describe_power(design["power"])
    if len(design["looks"]) > 1:
        levels = ", ".join(
            f"{look['seeds']} ({look['nominal_level']:.2g})" for look in design["looks"]
        )
        lines.append(f"looks   at seeds (nominal level): {levels}")
    specified = design["specification"]
    state = "not recorded"
    if specified["recorded"]:
        state = f"recorded {describe_recorded(specified['trials_started'])}"
    lines += [
        f"verdict margin {specified['margin']:g}, alpha {specified['alpha']:g}, metric "
        f"{specified['metric']}; {state}",
        f"        SHA-256 {specified['sha256']}",
    ]
    return lines


def _describe_power(power: dict[str, Any]) -> list[str]:
    own, *others = power["seeds"]
    lines = [
        f"power   80 % for a peak of {power['effect']:g} points above both ends: {_seeds(own)};",
        f"        with other numbers of levels: {', '.join(map(_seeds, others))}",
        f"        80 % for a slope of {power['effect']:g} points over the range: "
        f"{_count(own['slope'])} seeds",
        f"        residual standard deviation {power['residual_sd']:.2g} points, {power['basis']}",
    ]
    lines = lines if own["levels"] > 2 else lines[2:]
    if power["flat_margin"] is not None:
        lines.append(
            f"        {power['planned_seeds']} seeds show a flat score to be flat within "
            f"{power['flat_margin']:.2g} points"
        )
    return lines + _describe_precision(power["precision"])


def _describe_precision(precision: dict[str, Any] | None) -> list[str]:
    """Whether more seeds or more evaluation items would help; nothing where it is not known."""
    if precision is None:
        return []
    more = "seeds" if precision["of_seeds"] > precision["of_items"] else "items"
    return [
        f"items   standard error of a difference between two levels: {precision['of_seeds']:.2g} "
        f"points from {precision['seeds']} seeds,",
        f"        {precision['of_items']:.2g} from {precision['items']:,} evaluation items; more "
        f"{more} help more",
        f"        no number of seeds shows less than {precision['least']:.2g} points with them",
    ]


def _seeds(need: dict[str, Any]) -> str:
    return f"{_count(need['peak'])} seeds at {need['levels']} levels"


def _count(seeds: int | None) -> str:
    return "more than 512" if seeds is None else str(seeds)
