"""What a study file and a trial's settings are: frozen, typed, checked."""

from mtdlab.config.reader import read_settings, read_study
from mtdlab.config.settings import TrainerSettings
from mtdlab.config.study import StudySpec, Unit

__all__ = ["StudySpec", "TrainerSettings", "Unit", "read_settings", "read_study"]
