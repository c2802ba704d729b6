"""The recorded command of a study: what it ran, where, and how to run it with other options."""

import shlex

from analysis.frames import StudyFrames

_MODELS = "models"


def _words(command: str) -> list[str]:
    """The words of a command; none for text that is no command of a shell."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def runs(command: str, name: str) -> bool:
    """Whether it is the mtdlab command `name`, such as sweep."""
    words = _words(command)
    return len(words) > 2 and words[0].rpartition("/")[2] == "mtdlab" and words[1] == name


def option(command: str, name: str) -> str:
    """The value of an option such as --models, or empty."""
    words, value = _words(command), ""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == name:
            value = following
        elif word.startswith(f"{name}="):
            value = word.removeprefix(f"{name}=")
    return value


def extend(command: str, *words: str) -> str:
    """The command with more words; one that is there already is not repeated."""
    given = _words(command)
    return shlex.join([*given, *(word for word in words if word not in given)])


def confirm_command(study: StudyFrames) -> str:
    """The command that measures the best level and its runner-up with fresh seeds."""
    values = {
        "--storage": option(study.command, "--storage"),
        "--objective": option(study.command, "--objective") or study.program,
    }
    given = [word for name, value in values.items() if value for word in (name, value)]
    return shlex.join(["mtdlab", "confirm", study.name, *given])


def more_seeds_command(study: StudyFrames, seeds: int) -> str:
    """The sweep with so many seeds in all: those that were run, then the lowest unused ones.

    A list that is longer than a line is not written: empty, as for a study that no sweep ran.
    """
    used = sorted({int(seed) for seed in study.trials["seed"]})
    unused = (seed for seed in range(len(used) + seeds) if seed not in used)
    wanted = [*used, *(seed for seed, _ in zip(unused, range(seeds - len(used)), strict=False))]
    if not runs(study.command, "sweep") or len(wanted) > 100:
        return ""
    return extend(study.command, "--set", f"seeds=[{', '.join(map(str, wanted))}]")


def model_folder(study: StudyFrames) -> str:
    """Where the best trial's model was saved, from the folder in which the command ran."""
    if study.program or not any(runs(study.command, name) for name in ("sweep", "confirm")):
        return ""
    return f"{option(study.command, '--models') or _MODELS}/{study.name}"
