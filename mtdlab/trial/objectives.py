"""The objectives by their names: what trains the trials of a study."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from mtdlab.config import StudySpec, TrainerSettings
from mtdlab.programs import ProgramSettings
from mtdlab.trial.objective import Objective
from mtdlab.trial.study import Job

_MODULES: Mapping[str, tuple[str, ...]] = {
    ProgramSettings.trained_by: ("mtdlab.trial.program",),
    TrainerSettings.trained_by: (
        *("torch", "transformers.modeling_utils"),
        "mtdlab.trial.trainer",
    ),
}
"""What a worker imports for an objective: the largest packages one by one, then the module whose
`OBJECTIVE` it is."""


def objective_of(name: str) -> Objective:
    """The objective of this name (`RunSettings.trained_by`). Its import may take seconds."""
    found: Objective = import_module(_MODULES[name][-1]).OBJECTIVE
    return found


def objectives_of(spec: StudySpec) -> list[Objective]:
    """The objectives of a study, imported."""
    return [objective_of(name) for name in spec.objectives]


def modules_of(spec: StudySpec) -> tuple[str, ...]:
    """What a worker of a study imports."""
    modules = [module for name in spec.objectives for module in _MODULES[name]]
    return (*modules, "mtdlab.trial.worker")


def check(job: Job) -> dict[str, Any]:
    """What all processes of a study must share (`Objective.check`), of all its objectives."""
    return {
        name: value
        for objective in objectives_of(job.spec)
        for name, value in objective.check(job).items()
    }
