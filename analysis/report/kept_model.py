"""Which trial's model was kept, and how to make that of the recommended configuration."""

import shlex

import numpy as np

from analysis.best_trial import find_scores
from analysis.experiments.settings import format_value
from analysis.frames import StudyFrames
from analysis.pairing import select_configuration
from analysis.report.cells import clean
from analysis.report.commands import model_folder, option, runs
from analysis.report.context import StudyContext
from analysis.runs import completed_runs, varied_settings


def describe_model(context: StudyContext, number: int) -> tuple[str, str]:
    """The kept model in a sentence, and the command that makes one of a trial's configuration.

    The command is empty where none was kept, or one of that configuration.

    number  of a completed trial of the configuration.
    """
    study = context.study
    kept = study.model.get("trial")
    if kept is None:
        folder = model_folder(study)
        none = "Models are the program's own." if study.program else "No model is recorded."
        return (f"The best trial's model is in {clean(folder)}." if folder else none, "")
    completed = completed_runs(context.trials).set_index("number", drop=False)
    if kept not in completed.index:
        return "", ""
    varied = varied_settings(completed, study.settings)
    same = select_configuration(completed, varied, completed.loc[[number]].iloc[0])
    row = completed.loc[[kept]].iloc[0]
    named = ", ".join(f"{name} {format_value(name, row[name])}" for name in varied)
    by = clean(study.select_by or study.metric)
    text = (
        f"Kept model: trial {kept} (seed {row['seed']:.0f}), the highest {by} of all trials, "
        f"in {place_of_model(study)}"
    )
    if kept in same.index:
        return f"{text}; it has this configuration.", ""
    ranking = find_scores(same, study.scores, by).fillna(same["score"].astype("float64"))
    median = same.iloc[int(np.argsort(ranking.to_numpy(), kind="stable")[(len(same) - 1) // 2])]
    command = _reproduce(context, int(median["number"]))
    text += f"; it is of another configuration ({clean(named)})."
    if command:
        text += f" The model of this one, of the seed with its median {by}:"
    return text, command


def place_of_model(study: StudyFrames) -> str:
    """The folder of the kept model; with its host, unless it is a URL that all machines share."""
    folder, host = study.model["folder"], study.model["host"]
    return clean(folder.removeprefix("file://") if "://" in folder else f"{folder} on host {host}")


def _reproduce(context: StudyContext, number: int) -> str:
    study = context.study
    if study.program or not any(runs(study.command, name) for name in ("sweep", "confirm")):
        return ""
    words = ["mtdlab", "reproduce", study.name, str(number)]
    if storage := option(study.command, "--storage"):
        words += ["--storage", storage]
    return clean(shlex.join([*words, "--out", f"{model_folder(study)}-median"]), most=2_000)
