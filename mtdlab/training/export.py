"""Export of a trained encoder to a folder that AutoModel and SentenceTransformer can load.

FOLDER/           config, weights, tokenizer; modules.json, 1_Pooling for SentenceTransformer
FOLDER/mtdlab/    heads, target branch, queue, state of dropout; settings and scores (run.json)
FOLDER/README.md  the model card
"""

import copy
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from safetensors.torch import save_file

from mtdlab.config import TrainerSettings
from mtdlab.data_paths import RUN
from mtdlab.device import choose_device
from mtdlab.encoders.adapters import has_adapters, load_own_state, merge_adapters
from mtdlab.encoders.embed import MAX_LENGTH
from mtdlab.encoders.loading import load_encoder
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.files import make_folder, new_folder, remove_leftovers
from mtdlab.training.card import SENTENCE_TRANSFORMER_POOLING, method_text, model_card
from mtdlab.training.inputs import RunInputs
from mtdlab.training.outcome import Outcome

SAME_SCORE = 0.01
"""Tolerance, in points, of the score after loading: the order of summation may differ."""
MERGED_SCORE = 1.0
"""The same where adapters are merged: sums are rounded elsewhere, and near ties change ranks."""


def save_model(
    folder: Path,
    settings: TrainerSettings,
    inputs: RunInputs,
    outcome: Outcome,
    facts: Mapping[str, Any],
) -> None:
    """Write a run's best checkpoint to `folder`, replacing an earlier one (atomic).

    facts  provenance of the run: study, trial, corpus, versions.

    The saved model is loaded and scored before it replaces an earlier one. Raises TrialError if
    this score differs, MtdlabError if the folder contains anything but a saved model, OSError if
    writing fails.
    """
    folder = folder.absolute()
    check_model_folder(folder)
    run = _run(settings, outcome, facts)
    needed = sum(tensor.nbytes for state in outcome.states.values() for tensor in state.values())
    with new_folder(folder, replace=True, needed=needed) as building:
        _write_encoder(building, settings, inputs, outcome)
        _write_other_parts((building / RUN).parent, outcome, run)
        card = model_card(run, method_text(settings), sorted(_other_parts(outcome)))
        (building / "README.md").write_text(card, encoding="utf-8")
        _verify_score(building, settings, inputs, outcome)
        _make_readable(building)


def check_model_folder(folder: Path) -> None:
    """Raise MtdlabError if `folder` exists and is neither empty nor a saved model."""
    if folder.is_dir() and (not any(folder.iterdir()) or (folder / RUN).exists()):
        return
    if folder.exists():
        raise MtdlabError(f"{folder}: exists and is not a saved model; choose a new folder")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock `folder` against other processes that save to it; call `save_model` inside.

    Temporary folders of killed processes are removed.
    """
    make_folder(folder.parent)
    with FileLock(folder.parent / f".{folder.name}.lock"):
        remove_leftovers(folder)
        yield


def _run(settings: TrainerSettings, outcome: Outcome, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "mtd": settings.mtd,
        "seed": settings.seed,
        "best_step": outcome.best_step,
        "scores": _known(outcome.all_scores()),
        "scores_before": _known(outcome.all_scores_before()),
        "settings": settings.model_dump(),
        **facts,
    }


def _known(scores: Mapping[str, float]) -> dict[str, float]:
    return {task: score for task, score in scores.items() if math.isfinite(score)}


def _write_encoder(
    folder: Path, settings: TrainerSettings, inputs: RunInputs, outcome: Outcome
) -> None:
    model = copy.deepcopy(inputs.encoder.model).cpu()
    load_own_state(model, outcome.weights)
    merge_adapters(model)
    if inputs.encoder.pooler is not None:
        # AutoModel would otherwise initialise one at random
        model.pooler = inputs.encoder.pooler
    model.save_pretrained(folder)
    inputs.encoder.tokenizer.save_pretrained(folder)
    kind = SENTENCE_TRANSFORMER_POOLING.get(settings.pooling)
    if kind is None:
        return  # SentenceTransformer lacks the others: it opens the folder, with another pooling
    module = "sentence_transformers.models."
    width = int(model.config.hidden_size)
    (folder / "1_Pooling").mkdir()
    _write_json(
        folder / "modules.json",
        [
            {"idx": 0, "name": "0", "path": "", "type": module + "Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": module + "Pooling"},
        ],
    )
    _write_json(
        folder / "1_Pooling" / "config.json",
        {
            "word_embedding_dimension": width,
            **{
                f"pooling_mode_{each}": each == kind
                for each in SENTENCE_TRANSFORMER_POOLING.values()
            },
        },
    )
    _write_json(
        folder / "sentence_bert_config.json",
        {
            "max_seq_length": inputs.encoder.token_limit(MAX_LENGTH),
            "do_lower_case": False,
        },
    )
    _write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "cosine"})


def _write_other_parts(folder: Path, outcome: Outcome, run: Mapping[str, Any]) -> None:
    folder.mkdir()
    for name in _other_parts(outcome):
        save_file(outcome.states[name], folder / f"{name}.safetensors")
    _write_json(folder / RUN.name, run)


def _other_parts(outcome: Outcome) -> set[str]:
    return outcome.states.keys() - {"encoder"}


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _verify_score(
    folder: Path, settings: TrainerSettings, inputs: RunInputs, outcome: Outcome
) -> None:
    encoder = load_encoder(str(folder), None)
    device = choose_device(settings)
    encoder.model.to(device.device)  # type: ignore[arg-type]
    vectors = inputs.dev.embed(encoder.model, settings.representation, device)
    score = inputs.dev.evaluate(vectors).score
    tolerance = MERGED_SCORE if has_adapters(inputs.encoder.model) else SAME_SCORE
    if not abs(score - outcome.after.dev.score) < tolerance:
        raise TrialError(
            f"the saved model scores {score:.2f} on dev, the trained one "
            f"{outcome.after.dev.score:.2f}"
        )


def _make_readable(folder: Path) -> None:
    """Make the model readable to others: temporary files are created with private permissions."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
