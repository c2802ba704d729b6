"""What a study file and a trial's settings are: frozen, typed, checked."""

from mtdlab.spec.reader import read_settings, read_study
from mtdlab.spec.settings import TrainerSettings
from mtdlab.spec.study import StudySpec, Unit

__all__ = ["StudySpec", "TrainerSettings", "Unit", "read_settings", "read_study"]
