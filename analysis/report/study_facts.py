"""What was run, and how far it is: state, settings, scope, commands and the model that was kept.

Commands are those that a study recorded, and those that continue from it.
"""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import MODELS_FOLDER, find_state
from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.environment import BUILT_IN
from mtdlab.analysis.data.frames import Baseline, NuisanceTrials, StudyFrames
from mtdlab.analysis.data.metric import as_read, is_negated
from mtdlab.analysis.data.runs import completed_runs, free_settings, is_missing, varied_settings
from mtdlab.analysis.data.settings import format_value, name_setting, write_setting
from mtdlab.analysis.inference.pairing import select_configuration
from mtdlab.analysis.questions.differences import DifferencesQuestion
from mtdlab.analysis.questions.next_steps import MOST_COMMAND, command_on
from mtdlab.analysis.questions.wording import capitalise, clean, join_sentences
from mtdlab.analysis.report.cells import format_count, list_values
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.page import Status
from mtdlab.analysis.report.topics.references import choose_lines
from mtdlab.analysis.statistics.best_trial import find_scores
from mtdlab.analysis.statistics.nuisance import compare_nuisance_values


def model_folder(study: StudyFrames) -> str:
    """Where the best trial's model was saved, from the folder in which the command ran."""
    if study.program or study.invocation.command not in ("sweep", "confirm"):
        return ""
    return f"{study.invocation.value('models') or MODELS_FOLDER}/{study.name}"


_MOST_REASONS = 3


def _outside_search(study: StudyFrames) -> Mapping[str, Baseline | NuisanceTrials]:
    """The trials outside the search, by what they are for: the baseline, the nuisance settings."""
    roles = {"of the baseline": study.baseline, "that choose nuisance settings": study.tuning}
    return {role: trials for role, trials in roles.items() if trials is not None}


def trial_states(study: StudyFrames) -> pd.DataFrame:
    """How every trial that was started ended, those of baseline and choice too.

    The columns are number, state, reason, reason_code, score and wall_seconds.
    """
    columns = ["number", "state", "reason", "reason_code", "score", "wall_seconds"]
    every = [study.trials, *(group.trials for group in _outside_search(study).values())]
    return pd.concat([trials.reindex(columns=columns) for trials in every], ignore_index=True)


def count_retried(study: StudyFrames) -> int:
    """How many trials failed, which are run again together; 0 where each would fail again."""
    trials = trial_states(study)
    codes = trials["reason_code"][trials["state"] == "FAIL"]
    return len(codes) if study.invocation.may_mend(codes) else 0


def planned_trials(study: StudyFrames) -> int:
    """How many trials are planned, those of baseline and choice too."""
    return study.planned + sum(group.planned for group in _outside_search(study).values())


def describe_status(study: StudyFrames) -> Status:
    """The study's state (`find_state`), its trials in each, the commonest reasons of failures.

    The trials of a baseline and of a choice count too.
    """
    trials, planned = trial_states(study), planned_trials(study)
    states = trials["state"].value_counts()
    done, failed, pruned, running = (
        int(states.get(name, 0)) for name in ("COMPLETE", "FAIL", "PRUNED", "RUNNING")
    )
    waiting = max(planned - done - failed - pruned - running, 0)
    counts = {"COMPLETE": done, "RUNNING": running, "WAITING": waiting}
    kind = find_state(counts, begun=len(trials))
    others = {"failed": failed, "pruned": pruned, "running": running, "waiting": waiting}
    parts = [f"{amount:,} {name}" for name, amount in others.items() if amount]
    if kind == "complete" and not failed:
        parts.append("none failed")
    outside = [f"{group.planned:,} {role}" for role, group in _outside_search(study).items()]
    whole = format_count(planned, "trial") + (f" ({', '.join(outside)})" if outside else "")
    text = ", ".join([f"{done:,} of {whole} complete", *parts])
    retry = ""
    if count_retried(study) and study.invocation.command == "sweep":
        retry = str(study.invocation.retrying())
    failed_trials = trials[trials["state"] == "FAIL"]
    # of the dev pairs and of the test pairs it is recorded in other words
    is_collapse = failed_trials["reason_code"] == "collapsed"
    why = failed_trials["reason"].mask(is_collapse, "collapsed: all cosines are equal")
    reasons = why.replace("", "reason not recorded").value_counts()
    failures = [
        f"{format_count(int(amount), 'trial')} failed: {clean(str(reason), most=_MOST_LETTERS)}"
        for reason, amount in reasons.head(_MOST_REASONS).items()
    ]
    if (more := len(reasons) - _MOST_REASONS) > 0:
        failures.append(f"{format_count(more, 'more reason')}: see the trials")
    return Status(kind, text, tuple(failures), clean(retry, most=MOST_COMMAND))


def list_varied(study: StudyFrames) -> Mapping[str, str]:
    """The varied settings with the values tried, many as a range; the seeds stand last.

    Settings that follow from the method are left out.
    """
    listed = {}
    for name in [*free_settings(study.trials, study.settings), "seed"]:
        column = study.trials[name]
        values = _list_values(column, name)
        # a table's runs without a value have one too: none
        if study.table and is_missing(column).any() and "method" not in study.settings:
            values += ", none"
        chosen = ", chosen for each" if name in study.nuisance else ""
        listed[_label(study, name)] = values + chosen
    return listed


def describe_choice(study: StudyFrames) -> str:
    """The tried values of nuisance settings: how often each was chosen, how many runs failed."""
    if (tuning := study.tuning) is None or not len(tuning.trials):
        return ""
    table, names, texts = compare_nuisance_values(tuning), [*tuning.names], list[str]()
    groups = format_count(table["group"].nunique(), "value" if tuning.per else "configuration")
    groups += f" of {' and '.join(tuning.per)}" if tuning.per else ""
    for values, runs in tuning.trials.groupby(names):
        chosen = int(table["chosen"][(table[names] == [*values]).all(axis="columns")].sum())
        failed = int((runs["state"] == "FAIL").sum())
        facts = [f"chosen for {chosen} of {groups}"] if tuning.chosen else []
        facts += [f"{failed} of {format_count(len(runs), 'run')} failed"] if failed else []
        tried = (
            f"{_label(study, name)} {format_value(name, value)}"
            for name, value in zip(names, values, strict=True)
        )
        texts.append(f"{', '.join(tried)}{': ' * bool(facts)}{', '.join(facts)}")
    return "; ".join(texts)


def list_fixed(study: StudyFrames) -> Mapping[str, str]:
    """What all trials share: how they were compared, then settings that are not at their default.

    A setting that no trial recorded is left out; the study's profile and `--set` are in it.
    """
    trials, known = study.trials, study.environment.set_index("number")
    for name in {"device", "precision"} & set(known) & set(trials):
        # what the trials' machines made of auto
        used = trials["number"].map(known[name])
        auto = (trials[name] == "auto") & used.notna() & (used != "")
        trials = trials.assign(**{name: trials[name].mask(auto, used)})
    varied = varied_settings(trials, study.settings)
    general = {
        "metric": study.score_format.name,
        "select_by": as_read(study.select_by or study.metric),
        "sampler": study.sampler,
        "margin": study.score_format.stated_margin,
        "alpha": f"{study.alpha:g}",
    }
    if study.score_format.is_turned:
        general["direction"] = "minimize"
    if study.table:
        del general["select_by"], general["sampler"]
    fixed = {name: clean(value) for name, value in general.items()}
    for name in (str(name) for name in trials if name in study.settings and name not in varied):
        default, value = study.settings[name].default, _list_values(trials[name], name)
        is_default = default is not None and value == clean(format_value(name, default))
        if not is_default and not is_missing(trials[name]).all():
            fixed[_label(study, name)] = value
    return fixed


def describe_cost(study: StudyFrames) -> str:
    """A sentence on the time that trials took, those of baseline and choice too, or empty."""
    seconds = completed_runs(trial_states(study))["wall_seconds"].astype("float64")
    if not np.isfinite(seconds).any():
        return ""
    return (
        f"The trials took {format_seconds(float(seconds.sum()))} in all, "
        f"{format_seconds(float(seconds.median()))} each (median)."
    )


def _label(study: StudyFrames, name: str) -> str:
    setting = study.settings.get(name)
    return clean(setting.label if setting else name)


def _list_values(column: pd.Series, name: str) -> str:
    return list_values(name, column[~is_missing(column)].unique()) or "none yet"


_MOST_LETTERS = 160


def describe_scope(context: StudyContext) -> str:
    """What the answer covers: seeds, items, encoder and text; then, for these items alone."""
    answer = context.answer
    if answer.number is None:
        return ""
    return join_sentences(f"{answer.scope}; all of {describe_encoder(context)}.", answer.these)


def define_points(context: StudyContext) -> str:
    """A sentence on what a point is: of which metric, on which data."""
    study, label, write = context.study, context.score_label, context.write
    name = clean(write.name, most=40)
    if label.endswith(_PLAIN_LABELS):
        of = f", as {clean(study.program, most=_MOST_LETTERS)} returns it" if study.program else ""
        points = "Points" if write.unit else "Scores"
        return f"{points} are those of {name}{of}; {write.say('higher')} is better."
    return f"Points of {name}: {label}; higher is better."


def define_asked(context: StudyContext) -> str:
    """What the settings that the question names are, a sentence each; empty without any."""
    if not isinstance(context.question, DifferencesQuestion):
        return ""
    asked, known = context.question.asked, context.study.settings
    texts = {
        name: known[name].description for name in (*asked.names, *asked.within) if name in known
    }
    return " ".join(
        f"{capitalise(name_setting(key))}: "
        f"{clean(re.split('[;:] ', text.replace('`', ''))[0], most=_MOST_LETTERS)}."
        for key, text in texts.items()
    )


_PLAIN_LABELS = (" (points)", " (higher is better)", " (lower is better)")
_DIRTY = "-dirty"


def describe_rerun(study: StudyFrames) -> tuple[str, str]:
    """The commands that run the study again, of the last commit of its trials where it is known.

    A study file that lies in the repository may have got more seeds since the first trial.

    Returns:
        The commands, a line each, and where to run them; both are empty where none was recorded.
    """
    if not study.command or not study.commits or study.program:
        return study.command, ""
    commit = study.commits[-1]
    checkout = f"git checkout {commit.removesuffix(_DIRTY)} && pip install ."
    changed = ", whose uncommitted changes are not known" if commit.endswith(_DIRTY) else ""
    return f"{checkout}\n{study.command}", f"in a clone of mtdlab's repository{changed}"


def describe_encoder(context: StudyContext) -> str:
    """The encoder with its number of weights, and whether the text is synthetic."""
    study = context.study
    if study.table:
        return "data and models as in the table"
    if study.program:
        return f"program {clean(study.program, most=_MOST_LETTERS)}"
    encoder, corpus = study.ran_with.encoder, study.ran_with.corpus
    encoders = context.trials.reindex(columns=["encoder", "encoder_layers"])
    if (count := len(encoders.dropna(subset="encoder").drop_duplicates())) > 1:
        named = format_count(count, "encoder")
    elif encoder is None:
        named = "encoder not recorded"
    elif encoder.name == BUILT_IN:
        named = f"the built-in encoder ({encoder.size})"
    else:
        named = f"encoder {clean(encoder.name, most=_MOST_LETTERS)} ({encoder.size})"
    if corpus is None:
        return f"{named}, text not recorded"
    is_synthetic = corpus.name == BUILT_IN
    return f"{named}, {'synthetic text' if is_synthetic else f'text {clean(corpus.name)}'}"


def list_facts(context: StudyContext) -> Mapping[str, str]:
    """The facts of the first screen: what varied, how many seeds, data, untrained scores."""
    study, used = context.study, context.study.ran_with
    if not len(study.trials):
        return {}
    listed = list_varied(study)
    varied = [f"{name}: {values}" for name, values in listed.items() if name != "seed"]
    free = free_settings(study.trials, study.settings)
    if also := [name for name in varied_settings(study.trials, study.settings) if name not in free]:
        varied.append(f"with these {', '.join(map(clean, also))}")
    so_far = "" if study.table or describe_status(study).is_over else " so far"
    varied.append(format_count(int(study.trials["seed"].nunique()), "seed") + so_far)
    data = [study.score_format.name]
    if used.corpus:
        data.append(f"trained on {_name_built_in(used.corpus.size, 'text')}")
    if study.program:
        data.append(f"as returned by {study.program}")
    if study.table:
        data.append(f"table {study.table['table']}")
    if used.evaluation:
        data.append(f"evaluated on {_name_built_in(used.evaluation.size, 'pairs')}")
    facts = {"Varied": "; ".join(varied), "Data and metric": clean("; ".join(data))}
    if untrained := choose_lines(context):
        write = study.score_format
        scores = (f"{name} {write.score(score)}" for name, score in untrained.items())
        facts["Without training"] = f"{write.name}: {'; '.join(scores)}"
    return facts


def _name_built_in(size: str, kind: str) -> str:
    """A size, which begins with the name of the data, with the built-in data in words."""
    return size.replace(f"{BUILT_IN}:", f"the built-in {kind}:", 1)


def describe_model(context: StudyContext, number: int) -> tuple[str, str]:
    """The kept model in a sentence, and the command for one of a complete trial's configuration.

    Both are empty where no model is recorded, the command also where it is of that configuration.
    """
    study = context.study
    kept = study.model.get("trial")
    if kept is None:
        return "", ""
    completed = completed_runs(context.trials).set_index("number", drop=False)
    if kept not in completed.index:
        return "", ""
    varied = free_settings(completed, study.settings)
    same = select_configuration(completed, study.settings, number)
    row = completed.loc[[kept]].iloc[0]
    # a setting that the trial's method does not have is missing
    own = [name for name in varied if not is_missing(row[[name]]).all()]
    named = ", ".join(write_setting(name, row[name]) for name in own)
    select_by = study.select_by or study.metric
    by, of = clean(as_read(select_by)), " of the search" if study.baseline else ""
    highest = "lowest" if is_negated(select_by) else "highest"
    text = (
        f"Kept model: {place_of_model(study)}, of trial {kept} (seed {row['seed']:.0f}), which "
        f"has the {highest} {by} of all trials{of}"
    )
    if kept in same.index:
        return f"{text} and this configuration.", ""
    ranking = find_scores(same, study.scores, select_by).fillna(same["score"].astype("float64"))
    median = same.iloc[int(np.argsort(ranking.to_numpy(), kind="stable")[(len(same) - 1) // 2])]
    text += f" and another configuration ({clean(named)})."
    if not (folder := model_folder(study)):
        return text, ""
    trial, out = f"{median['number']:.0f}", f"{folder}-median"
    command = clean(command_on(study, "reproduce", trial, out=out), most=MOST_COMMAND)
    return f"{text} The model of this one, of the seed with its median {by}:", command


def place_of_model(study: StudyFrames) -> str:
    """The kept model's folder, from the one in which the sweep ran or in the study's artifacts.

    Elsewhere on a machine it is the whole path with the host; a URL is written as it is.
    """
    folder, relative = str(study.model["folder"]), model_folder(study)
    if relative and folder.endswith(f"/{relative}"):
        return clean(relative)
    _, shared, name = folder.rpartition(f"/{study.name}/models/")
    if folder.startswith("file://") and shared:
        return clean(f"{shared[1:]}{name} of the study's artifacts")
    if "://" in folder:
        return clean(folder.removeprefix("file://"))
    return clean(f"{folder} on host {study.model['host']}")
