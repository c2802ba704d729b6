"""What a sweep needs, checked before it writes to the database.

A sweep that is refused leaves no study behind: the corrected file then begins one.
"""

import sys
import tempfile
from pathlib import Path

from mtdlab.analysis.data.beyond_run import describe_lengths
from mtdlab.config import MethodSpec, StudySpec
from mtdlab.config.paths import locate_augmentation, resolve_paths
from mtdlab.errors import MtdlabError
from mtdlab.terminal import print_text
from mtdlab.trial.study import Job


def check_training(job: Job, spec: MethodSpec) -> dict[str, str]:
    """Check what trials of mtdlab's trainer need. Raises MtdlabError for the first mistake.

    Returns digests of the texts and encoders, by setting and value.
    """
    # these import torch and transformers
    from mtdlab.training.export import check_model_folder
    from mtdlab.training.inputs import check_inputs
    from mtdlab.training.present import check_present
    from mtdlab.trial.tracking import check_tracking

    check_tracking(spec.tracking)
    check_model_folder(job.model)
    check_writable(job.models)
    augmentations = tuple(
        locate_augmentation(each, spec.places) for each in spec.possible_values("augmentation")
    )
    by_inputs, digests = spec.trials_by_inputs(), dict[str, str]()
    check_present(resolve_paths(trials[0], spec.places) for trials in by_inputs.values())
    for trials in by_inputs.values():
        settings = trials[0]
        found = check_inputs(
            resolve_paths(settings, spec.places),
            augmentations,
            int(min(spec.possible_values("batch_size"))),
            trials,
            (spec.metric, spec.select_by),
        )
        digests |= {f"{name} {getattr(settings, name)}": text for name, text in found.items()}
    for warning in spec.warnings() + selection_warnings(spec) + shortfall_warnings(spec):
        print_text(f"mtdlab: {warning}", file=sys.stderr)
    return digests


def length_warnings(spec: StudySpec) -> list[str]:
    """A sentence for each history that is long beside the run, and for levels beyond the run."""
    return list(describe_lengths(spec.configurations().values(), spec.beyond_run))


def selection_warnings(spec: MethodSpec) -> list[str]:
    """A sentence for each value of `evaluation` that lacks sets of `select_on: sts_average`.

    Raises MtdlabError for an evaluation folder that is not there.
    """
    # it imports transformers
    from mtdlab.training.selection import warn_of_missing_sets

    if "sts_average" not in spec.possible_values("select_on"):
        return []
    sources = dict.fromkeys(resolve_paths(each, spec.places).evaluation for each in spec.inputs())
    return [warning for source in sources if (warning := warn_of_missing_sets(source))]


def shortfall_warnings(spec: MethodSpec) -> list[str]:
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
        (resolve_paths(each, spec.places).evaluation, each.tasks): None for each in spec.inputs()
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
