"""Scores in MTEB's tree of results, for `mteb` to read.

`results/<org>__<model>/<revision>/<Task>.json` with `model_meta.json` beside it. Only tasks that
MTEB has are written: the seven of STS, whose main score is the same Spearman of cosines.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from mtdlab.encoders.digest import weights_digest
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.suite import TaskScore

NAMES = {year: year for year in ("STS12", "STS13", "STS14", "STS15", "STS16")} | {
    "STSB": "STSBenchmark",
    "SICKR": "SICK-R",
}
"""What MTEB calls our tasks."""


def write_mteb(
    folder: Path, name: str, model: PreTrainedModel, scores: Sequence[TaskScore]
) -> list[Path]:
    """Write the scored STS tasks under folder/results; the files, model_meta.json first.

    name  an encoder's: `org/model` becomes org__model, `builtin` mtdlab__builtin, and a folder
          local__<its name>. The revision is a fingerprint of the weights, so that no checkpoint
          overwrites another's.

    Raises MtdlabError where the folder cannot be written.
    """
    full, revision = _model_name(name), weights_digest(model)[:40]
    place = folder / "results" / full.replace("/", "__") / revision
    contents: dict[str, dict[str, Any]] = {"model_meta.json": _meta(full, revision, model)}
    for score in scores:
        if score.task in NAMES and score.score is not None:
            contents[f"{NAMES[score.task]}.json"] = _result(score.task, score.score / 100)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file, content in contents.items():
            (place / file).write_text(json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise MtdlabError(
            f"mteb {place}: cannot be written: {error.strerror}; give a folder you may write to"
        ) from None
    return [place / file for file in contents]


def _model_name(name: str) -> str:
    if name == "builtin":
        return "mtdlab/builtin"
    if Path(name).is_dir():
        return f"local/{Path(name).resolve().name}"
    return name if name.count("/") == 1 else f"local/{name.replace('/', '_')}"


def _meta(name: str, revision: str, model: PreTrainedModel) -> dict[str, Any]:
    return {
        "name": name,
        "revision": revision,
        "release_date": None,
        "languages": ["eng-Latn"],
        "loader": None,
        "n_parameters": sum(one.numel() for one in model.parameters()),
        "memory_usage_mb": None,
        "max_tokens": None,
        "embed_dim": int(model.config.hidden_size),
        "license": None,
        "open_weights": None,
        "public_training_code": None,
        "public_training_data": None,
        "framework": ["PyTorch"],
        "similarity_fn_name": "cosine",
        "use_instructions": False,
        "training_datasets": None,
    }


def _result(task: str, score: float) -> dict[str, Any]:
    row = {
        "hf_subset": "default",
        "languages": ["eng-Latn"],
        "main_score": score,
        "cosine_spearman": score,
    }
    return {
        "dataset_revision": "local-senteval-files",
        "task_name": NAMES[task],
        "mteb_version": None,
        "evaluation_time": None,
        "scores": {"test": [row]},
    }
