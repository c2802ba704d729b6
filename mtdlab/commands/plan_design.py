"""What plan says of a study's design: the seeds that it needs, its looks, what is recorded."""

from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from typing import Any

from mtdlab.config import StudySpec
from mtdlab.cost.copies import begin, can_copy
from mtdlab.errors import NothingToReport, StorageError


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
    from analysis.design import POWER, compute_needs

    levels = {
        spec.settings(unit.parameters, unit.seed).mtd
        for unit in spec.units()
        if unit.parameters is not None
    } - {None}
    if len(levels) < 2:
        return None
    deviation, basis = (sd, "as given") if sd else _deviation(spec.name, url)
    needs = compute_needs(
        sorted(level for level in levels if level is not None),
        effect=effect,
        deviation=deviation,
        alpha=spec.alpha,
    )
    found = {"effect": effect, "residual_sd": deviation, "basis": basis}
    return found | {"power": POWER, "seeds": [asdict(need) for need in needs]}


def _deviation(study: str, url: str) -> tuple[float, str]:
    """The residual standard deviation of the study's runs, or an assumed one, and which it is."""
    from analysis.design import ASSUMED_DEVIATION, residual_deviation
    from mtdlab.store import load_study

    try:
        frames = load_study(study, url, curves=False)
    except (StorageError, NothingToReport):
        return ASSUMED_DEVIATION, "assumed"
    measured = residual_deviation(frames.trials, frames.settings)
    if measured is None:
        return ASSUMED_DEVIATION, "assumed"
    return measured, f"from {int((frames.trials['state'] == 'COMPLETE').sum())} recorded runs"


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
    return lines if own["levels"] > 2 else lines[2:]


def _seeds(need: dict[str, Any]) -> str:
    return f"{_count(need['peak'])} seeds at {need['levels']} levels"


def _count(seeds: int | None) -> str:
    return "more than 512" if seeds is None else str(seeds)
