"""Which objective a study has: mtdlab's trainer, or a program of the user."""

from mtdlab.config import StudySpec
from mtdlab.config.program_study import ProgramSpec
from mtdlab.trial.objective import Objective


def objective_of(spec: StudySpec) -> Objective:
    """The objective of a study."""
    if isinstance(spec, ProgramSpec):
        from mtdlab.trial.program import ProgramObjective

        return ProgramObjective()
    # imports torch and transformers
    from mtdlab.trial.trainer import Trainer

    return Trainer()


def modules_of(spec: StudySpec) -> tuple[str, ...]:
    """What a worker of a study imports: the largest packages one by one, then its objective."""
    if isinstance(spec, ProgramSpec):
        return ("mtdlab.trial.worker", "mtdlab.trial.program")
    packages = ("torch", "transformers.modeling_utils")
    return (*packages, "mtdlab.trial.worker", "mtdlab.trial.trainer")
