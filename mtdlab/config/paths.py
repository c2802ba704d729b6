"""The folders in which the relative paths of texts and models in a study are looked up.

A path that a study file names is relative to the file's folder, one of `--set` to the working
folder. Where nothing is there, the other of the two follows, then the folder MTDLAB_DATA
(`mtdlab.data_paths`). A study records paths as they are written, so that it resumes from another
working folder.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from mtdlab.data_paths import exists, is_folder
from mtdlab.settings import TrainerSettings
from mtdlab.settings.augmentation import parse_augmentation
from mtdlab.settings.tasks import BEIR, parse_tasks
from mtdlab.settings.trainer import PAIRS

INPUTS = ("encoder", "corpus", "evaluation")
"""The settings for which every run loads files or folders."""
Settings = TypeVar("Settings", bound=TrainerSettings)

_PAIRS = re.compile(rf"({PAIRS})([^#]+)(.*)", re.DOTALL)
_DATASET = re.compile(r"(dataset:)([^:#]+)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Places:
    """The folder of a study file (None without one), and the trainer's settings given by --set."""

    folder: Path | None = None
    given: frozenset[str] = frozenset()

    def find(self, setting: str, name: str) -> str:
        """The path of what a setting names: beside the study file, else as it is written."""
        if self.folder is None or name == "builtin" or not exists(self.folder / name):
            return name
        beside = self.folder / name
        is_here = exists(name) and (setting in self.given or beside.samefile(name))
        return name if is_here else str(beside)


def resolve_paths(settings: Settings, places: Places) -> Settings:
    """Settings whose texts, tasks and models are the files and folders that were found."""
    located = {
        "corpus": _corpus(settings.corpus, places),
        "evaluation": places.find("evaluation", settings.evaluation),
        "encoder": _folder("encoder", settings.encoder, places),
        "tasks": ",".join(
            BEIR + places.find("tasks", task.removeprefix(BEIR)) if task.startswith(BEIR) else task
            for task in parse_tasks(settings.tasks)
        ),
        "augmentation": locate_augmentation(settings.augmentation, places),
    }
    return settings.model_copy(update=located)


def locate_augmentation(text: str, places: Places) -> str:
    """An augmentation whose models are the folders that were found."""
    changed = []
    for augmentation in parse_augmentation(text):
        models = tuple(_folder("augmentation", model, places) for model in augmentation.models)
        changed.append(str(replace(augmentation, models=models)))
    return "+".join(changed) or "none"


def _corpus(name: str, places: Places) -> str:
    if pairs := _PAIRS.fullmatch(name):
        prefix, file, rest = pairs.groups()
        return prefix + places.find("corpus", file) + rest
    if dataset := _DATASET.fullmatch(name):
        prefix, source, rest = dataset.groups()
        return prefix + _folder("corpus", source, places) + rest
    return places.find("corpus", name)


def _folder(setting: str, name: str, places: Places) -> str:
    """The folder of this name where there is one, else the name, which may be one on the hub."""
    path = places.find(setting, name)
    return path if is_folder(Path(path)) else name
