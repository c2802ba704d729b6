"""Study files: they are read, checked and turned into trials."""

from mtdlab.config.method_study import MethodSpec
from mtdlab.config.reader import read_settings, read_study
from mtdlab.config.study import PlannedTrial, StudySpec
from mtdlab.methods.registry import make_settings
from mtdlab.settings import TrainerSettings

__all__ = [
    "MethodSpec",
    "PlannedTrial",
    "StudySpec",
    "TrainerSettings",
    "make_settings",
    "read_settings",
    "read_study",
]
