"""Checks that the encoders, texts and pairs that settings name exist, before one is loaded."""

from collections.abc import Iterable
from pathlib import Path

from mtdlab.config.method_study import MethodSpec
from mtdlab.config.paths import INPUTS, resolve_paths
from mtdlab.config.study import StudySpec
from mtdlab.corpus.corpus import check_corpus
from mtdlab.data_paths import is_folder
from mtdlab.encoders.folders import encoder_path, find_file, why_missing
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import load_splits
from mtdlab.settings import TrainerSettings


def check_input(setting: str, name: str) -> None:
    """Raise MtdlabError if one of `INPUTS` names what is not there or cannot be read."""
    if name == "builtin":
        return
    if setting == "corpus":
        check_corpus(name)
    elif setting == "evaluation":
        load_splits(name)
    elif find_file(name, "config.json") is None:
        raise MtdlabError(
            f"encoder {name}: the folder holds no config.json; name one that save_pretrained wrote"
            if is_folder(Path(encoder_path(name)))
            else f"encoder {name}: {why_missing(name)}"
        )


def check_present(trials: Iterable[TrainerSettings]) -> None:
    """Raise MtdlabError with every input of these settings that is not there or cannot be read."""
    named = [(setting, str(getattr(trial, setting))) for trial in trials for setting in INPUTS]
    problems = []
    for setting, name in dict.fromkeys(named):
        try:
            check_input(setting, name)
        except MtdlabError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise MtdlabError(f"{len(problems)} inputs are missing or cannot be read:\n{listed}")


def check_study(spec: StudySpec) -> None:
    """Raise MtdlabError as `check_present` of a study; a program of the user has its own inputs."""
    if isinstance(spec, MethodSpec):
        trials = spec.trials_by_inputs().values()
        check_present(resolve_paths(alike[0], spec.places) for alike in trials)
