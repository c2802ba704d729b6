"""Whether encoders, texts and pairs that settings name exist, and what is told of them.

It is said before an encoder is loaded, and of the default method before torch is imported.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from mtdlab.analysis.data.tasks import STS
from mtdlab.analysis.measures.repeats import RunSizes, describe_repeats
from mtdlab.config.method_study import MethodSpec
from mtdlab.config.paths import INPUTS, resolve_paths
from mtdlab.config.study import StudySpec
from mtdlab.corpus.corpus import check_corpus, open_corpus
from mtdlab.corpus.survey import count_repeats
from mtdlab.data_paths import is_folder
from mtdlab.encoders.folders import encoder_path, find_file, why_missing
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import (
    describe_pairs,
    describe_shortfall,
    evaluation_folder,
    load_splits,
    load_task,
    task_folder,
)
from mtdlab.methods.registry import SETTINGS, find_method
from mtdlab.settings import TrainerSettings
from mtdlab.settings.tasks import published_tasks


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


def reads_documents(settings: TrainerSettings) -> bool:
    """Whether a method joins the lines of a corpus, so that its rows are not those."""
    # to find another one imports torch
    return settings.method not in SETTINGS and any(
        view.document for view in find_method(settings.method).views(settings)
    )


def averaged_sets(evaluation: str) -> tuple[str, ...]:
    """The STS sets in a folder in SentEval's layout. Raises MtdlabError where it is not there."""
    folder = evaluation_folder(evaluation)
    return tuple(name for name in STS if (path := task_folder(name, folder)) and path.is_dir())


def describe_sets(evaluation: str) -> str:
    """The sets that the average is over, as text, such as `STS12, STSB (STS13 missing)`."""
    sets = averaged_sets(evaluation)
    if not sets:
        return "the test pairs of `evaluation`, which holds none of the seven STS sets"
    missing = ", ".join(name for name in STS if name not in sets)
    return ", ".join(sets) + (f" ({missing} missing)" if missing else "")


def warn_of_missing_sets(evaluation: str) -> str:
    """A sentence that names the sets that the average lacks; empty where all seven are there."""
    if len(averaged_sets(evaluation)) == len(STS):
        return ""
    return (
        f"select_on: sts_average with evaluation {evaluation}: checkpoints are selected on "
        f"{describe_sets(evaluation)}; published programs average all seven"
    )


def check_batch(rows: int, size: int) -> None:
    """Raise MtdlabError for a corpus of fewer rows than a batch has."""
    if rows < size:
        raise MtdlabError(
            f"batch_size is {size}, but the corpus has {rows} sentences (or documents, for a "
            "method that joins them, or pairs); reduce batch_size"
        )


def data_warnings(spec: StudySpec) -> list[str]:
    """The sentences of `warn_of_data` on a study's trials; none where a program trains them."""
    if not isinstance(spec, MethodSpec):
        return []
    trials = [trial for trials in spec.trials_by_inputs().values() for trial in trials]
    if spec.sampler == "grid":
        trials += [spec.settings(point, spec.seeds[0]) for point in spec.grid_points().values()]
    return warn_of_data(resolve_paths(trial, spec.places) for trial in trials)


def warn_of_data(trials: Iterable[TrainerSettings]) -> list[str]:
    """What is told of the data of settings, whose paths were found, before anything trains.

    A sentence each on lines that are left out, pairs in both splits, averaged STS sets and parts of
    a task's files that folders lack, texts that are negatives of themselves, and on what cannot be
    read.
    """
    evaluated, runs = dict[tuple[str, str, bool], None](), dict[str, set[RunSizes]]()
    for trial in trials:
        evaluated[trial.evaluation, trial.tasks, trial.select_on == "sts_average"] = None
        sizes = runs.setdefault(trial.corpus, set())
        if not reads_documents(trial):
            queue = int(getattr(trial, "queue_size", 0))
            sizes.add(RunSizes(trial.batch_size, queue, trial.steps, trial.mtd))
    # each sentence once
    found = dict[str, None]()
    asked: list[Callable[[], Iterable[str]]] = [
        *(partial(describe_pairs, evaluation) for evaluation, _, _ in evaluated),
        *(partial(_warn_of_tasks, *each) for each in evaluated),
        *(partial(_warn_of_corpus, *each) for each in runs.items()),
    ]
    for warn in asked:
        try:
            for warning in warn():
                found[warning] = None
        except MtdlabError as error:
            found[str(error)] = None
    return list(filter(None, found))


def _warn_of_tasks(evaluation: str, tasks: str, averages: bool) -> Iterator[str]:
    """Which averaged STS sets, and which parts of a task's files, a folder lacks."""
    if averages:
        yield warn_of_missing_sets(evaluation)
    data = evaluation_folder(evaluation)
    for name in published_tasks(tasks):
        folder = task_folder(name, data)
        if folder is not None and folder.is_dir():
            text = describe_shortfall(name, load_task(name, folder))
            yield text and f"task {name}: {text}"


def _warn_of_corpus(name: str, runs: set[RunSizes]) -> Iterator[str]:
    """What is left out, and whether texts are negatives of themselves; `runs` of no documents."""
    corpus = open_corpus(name)
    if not runs:
        return
    texts, chance, left_out = count_repeats(corpus)
    yield left_out and f"corpus {name}: {left_out}"
    check_batch(texts, max(run.batch_size for run in runs))
    text = describe_repeats(texts, corpus.unit, chance, runs)
    yield text and f"corpus {name}: {text}"
