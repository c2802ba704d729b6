"""What a sweep needs, checked before it writes to the database.

A sweep that is refused leaves no study behind: the corrected file then begins one.
"""

import itertools
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.data.beyond_run import describe_lengths
from mtdlab.config import StudySpec, TrainerSettings
from mtdlab.config.paths import INPUTS, locate_augmentation, resolve_paths
from mtdlab.config.program_study import ProgramSpec
from mtdlab.config.search import Choices
from mtdlab.config.study import has_own_pooling
from mtdlab.encoders.folders import POOLING_FILE, declared_pooling
from mtdlab.errors import MtdlabError
from mtdlab.terminal import print_text
from mtdlab.trial.study import Job


def check_training(job: Job) -> dict[str, str]:
    """Check what trials of mtdlab's trainer need. Raises MtdlabError for the first mistake.

    Returns digests of the texts and encoders, by setting and value.
    """
    # these import torch and transformers
    from mtdlab.training.export import check_model_folder
    from mtdlab.training.inputs import check_inputs
    from mtdlab.training.present import check_present
    from mtdlab.trial.tracking import check_tracking

    spec = job.spec
    check_tracking(spec.tracking)
    check_model_folder(job.model)
    check_writable(job.models)
    augmentations = tuple(
        locate_augmentation(each, spec.places) for each in spec.possible_values("augmentation")
    )
    trials, digests = _trials(spec), dict[str, str]()
    check_present(resolve_paths(settings, spec.places) for settings in _inputs(spec))
    for settings in _inputs(spec):
        found = check_inputs(
            resolve_paths(settings, spec.places),
            augmentations,
            int(min(spec.possible_values("batch_size"))),
            trials.get(_inputs_of(settings), []),
            (spec.metric, spec.select_by),
        )
        digests |= {f"{name} {getattr(settings, name)}": text for name, text in found.items()}
    for warning in setting_warnings(spec) + selection_warnings(spec) + shortfall_warnings(spec):
        print_text(f"mtdlab: {warning}", file=sys.stderr)
    return digests


def length_warnings(spec: StudySpec) -> list[str]:
    """A sentence for each history that is long beside the run, and for levels beyond the run."""
    return list(describe_lengths(spec.configurations().values(), spec.beyond_run))


def setting_warnings(spec: StudySpec) -> list[str]:
    """A sentence for each pooling that is not the encoder's, and for queues below a batch."""
    if isinstance(spec, ProgramSpec):
        return []
    return [*_pooling_warnings(spec), *_queue_warnings(spec)]


def _pooling_warnings(spec: StudySpec) -> Iterator[str]:
    """Name poolings that are not their encoders'; one that is searched was chosen on purpose."""
    if "pooling" in spec.search:
        return
    found = {}
    for settings in _inputs(spec):
        is_own = "pooling" not in spec.trainer and has_own_pooling(type(settings))
        if not is_own and settings.pooling != "mask":
            found[settings.encoder] = settings.pooling
    for encoder, pooling in found.items():
        declared = declared_pooling(spec.places.find("encoder", encoder))
        if declared not in (None, pooling):
            yield (
                f"encoder {encoder} was made with {declared} pooling ({POOLING_FILE}), this study "
                f"reads it with {pooling}; unless this is meant, set trainer.pooling to {declared}"
                + (", or search pooling too" if "encoder" in spec.search else "")
            )


def _queue_warnings(spec: StudySpec) -> Iterator[str]:
    if spec.sampler != "grid":
        return
    every = [spec.trainer_settings(point, spec.seeds[0]) for point in _points(spec)]
    every += _baselines(spec)
    sizes = {(getattr(each, "queue_size", 0), each.batch_size) for each in every}
    for queue, batch in sorted(sizes):
        if 0 < queue < batch:
            yield (
                f"queue_size {queue} is below batch_size {batch}: of the {batch} keys of a step "
                f"{queue} enter the queue, and replace all that are in it; the others are never "
                "negatives of a later step"
            )


def selection_warnings(spec: StudySpec) -> list[str]:
    """A sentence for each value of `evaluation` that lacks sets of `select_on: sts_average`.

    Raises MtdlabError for an evaluation folder that is not there.
    """
    # it imports transformers
    from mtdlab.training.selection import warn_of_missing_sets

    if "sts_average" not in spec.possible_values("select_on"):
        return []
    sources = dict.fromkeys(resolve_paths(each, spec.places).evaluation for each in _inputs(spec))
    return [warning for source in sources if (warning := warn_of_missing_sets(source))]


def shortfall_warnings(spec: StudySpec) -> list[str]:
    """A sentence for each task of the study whose files are shorter than published.

    Raises MtdlabError for evaluation data that are missing or damaged.
    """
    # they import scikit-learn and torch
    from mtdlab.evaluation.pairs import evaluation_folder
    from mtdlab.evaluation.tasks import describe_shortfall, load_task, task_folder
    from mtdlab.settings.tasks import BUILTIN, published_tasks

    found: dict[str, None] = {}
    # once where methods differ alone
    sources = {
        (resolve_paths(each, spec.places).evaluation, each.tasks): None for each in _inputs(spec)
    }
    for evaluation, tasks in sources:
        data = evaluation_folder(evaluation)
        for name in published_tasks(tasks):
            folder = task_folder(name, data)
            if name == BUILTIN or folder is None:
                continue
            if text := describe_shortfall(name, load_task(name, folder)):
                found[f"task {name}: {text}"] = None
    return list(found)


def check_writable(folder: Path) -> None:
    """Raise MtdlabError if files cannot be written to a folder, or it cannot be created."""
    existing = folder
    try:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        # a file without a name where the system has them: nothing is left behind
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = f"cannot be written to ({reason})" if existing.is_dir() else "is not a folder"
        raise MtdlabError(
            f"models cannot be saved in {folder}: {existing} {problem}; "
            "name another folder with --models"
        ) from None


def _inputs(spec: StudySpec) -> Iterator[TrainerSettings]:
    """The fixed settings of each method with each combination of the searched inputs.

    Also those of the baseline, where it has other inputs.
    """
    searched = {name: spec.search[name] for name in INPUTS if name in spec.search}
    columns = [each.values for each in searched.values() if isinstance(each, Choices)]
    found = {}
    for method, *values in itertools.product(spec.methods, *columns):
        each = spec.fixed(method).model_copy(update=dict(zip(searched, values, strict=True)))
        found[_inputs_of(each)] = each
    for baseline in _baselines(spec):
        found.setdefault(_inputs_of(baseline), baseline)
    yield from found.values()


def _baselines(spec: StudySpec) -> list[TrainerSettings]:
    """The settings of the baseline, in a list of one; empty without one."""
    found = spec.baseline_settings()
    return [found] if isinstance(found, TrainerSettings) else []


def _inputs_of(settings: TrainerSettings) -> tuple[str, ...]:
    return tuple(getattr(settings, name) for name in ("method", *INPUTS))


def _trials(spec: StudySpec) -> Mapping[tuple[str, ...], list[TrainerSettings]]:
    """The settings of the trials by method and inputs, without values relative to others.

    A sampled study has those of all combinations of values that are no numbers: these decide
    whether an encoder fits.
    """
    found: dict[tuple[str, ...], list[TrainerSettings]] = {}
    for point in _points(spec):
        values = {name: value for name, value in point.items() if "/" not in name}
        trial = spec.fixed(point.get("method", spec.methods[0])).model_copy(update=values)
        found.setdefault(_inputs_of(trial), []).append(trial)
    for baseline in _baselines(spec):
        found.setdefault(_inputs_of(baseline), []).append(baseline)
    return found


def _points(spec: StudySpec) -> list[dict[str, Any]]:
    if spec.sampler == "grid":
        return [unit.parameters or {} for unit in spec.units() if unit.seed == spec.seeds[0]]
    pairs = [
        [(name, value) for value in dimension.values]
        for name, dimension in spec.search.items()
        if isinstance(dimension, Choices) and not spec.known[name].is_number
    ]
    return [dict(point) for point in itertools.product(*pairs)]
