"""Smaller versions of a study, to see a first page soon: fewer levels, seeds and steps."""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from mtdlab.config import StudySpec
from mtdlab.config.reader import defined_study
from mtdlab.config.search import Choices
from mtdlab.config.source import SpecError

SEEDS = 2
"""Of a smaller study: fewer give no confidence interval."""
SHARES = (1, 2, 5, 10, 20, 50, 100)
"""What the number of steps is divided by, one after the other."""
LEAST_STEPS, EVALUATIONS = 20, 4


def smaller_studies(spec: StudySpec) -> Iterator[tuple[list[str], StudySpec]]:
    """Smaller versions of a study on a grid, from the longest to the shortest, each with its --set.

    None of a study that adds seeds, or draws configurations.
    """
    if spec.until is not None or spec.sampler != "grid":
        return
    for share in SHARES:
        changed = {"study": f"{spec.name}-small", **_levels(spec), **_steps(spec, share)}
        if len(spec.seeds) > SEEDS:
            changed["seeds"] = list(spec.seeds[:SEEDS])
        try:
            small = defined_study(
                _over(spec.definition, changed), spec.text, spec.user_modules, spec.places.folder
            )
        except SpecError:
            # other settings may depend on the number of steps, or on a level
            return
        yield [f"{key}={_as_yaml(value)}" for key, value in changed.items()], small


def _levels(spec: StudySpec) -> dict[str, Any]:
    """The lowest and the highest value of each setting that is searched as a list of values."""
    return {
        f"search.{name}": [min(found.values), max(found.values)]
        for name, found in spec.search.items()
        if isinstance(found, Choices)
        and len(found.values) > 2
        and spec.known[name].is_number
        and None not in found.values
        and isinstance(spec.definition["search"].get(name), list)
    }


def _steps(spec: StudySpec, share: int) -> dict[str, Any]:
    if not {"steps", "evaluate_every"}.isdisjoint(spec.search):
        return {}
    steps = max(spec.fixed().steps // share, LEAST_STEPS)
    return {"trainer.steps": steps, "trainer.evaluate_every": max(1, steps // EVALUATIONS)}


def _as_yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _over(definition: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """A definition with other values by dotted keys."""
    values = copy.deepcopy(dict(definition))
    for key, value in changed.items():
        section, _, name = key.rpartition(".")
        (values.setdefault(section, {}) if section else values)[name] = value
    return values
