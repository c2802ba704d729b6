"""Export of a trained encoder to a folder that AutoModel and SentenceTransformer can load.

FOLDER/           config, weights, tokenizer; modules.json, 1_Pooling for SentenceTransformer
FOLDER/mtdlab/    heads, target branch, queue, state of dropout; settings and scores (run.json)
FOLDER/README.md  the model card
"""

import copy
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock
from safetensors.torch import save_file

from mtdlab.analysis.data.markdown import markdown_table
from mtdlab.data_paths import DATABASE, RUN
from mtdlab.device import choose_device
from mtdlab.encoders.adapters import has_adapters, load_own_state, merge_adapters
from mtdlab.encoders.embed import MAX_LENGTH, Embedder
from mtdlab.encoders.folders import POOLING_FILE, POOLINGS, PROMPT_FILE
from mtdlab.encoders.loading import load_encoder
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.files import make_folder, new_folder, remove_leftovers
from mtdlab.methods.registry import find_method
from mtdlab.settings import Representation, TrainerSettings
from mtdlab.settings.representation import SENTENCE, describe
from mtdlab.training.inputs import RunInputs
from mtdlab.training.loop import Outcome

CARD = Path(__file__).with_name("model_card.md")
"""The template of the model card."""

_SENTENCE_TRANSFORMER = """\
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("this folder").encode(["A sentence.", "Another one."])"""

_OTHER = """\
import mtdlab

# SentenceTransformer opens this folder too, but its vectors are others: the scores below need
# {representation}
vectors = mtdlab.load_encoder("this folder").encode(["A sentence.", "Another one."])"""


def model_card(run: Mapping[str, Any], settings: TrainerSettings, saved: Iterable[str]) -> str:
    """The card as Markdown. run: content of `run.json`; saved: names of the other saved parts."""
    method, representation = find_method(settings.method), describe(settings.representation)
    plain = replace(settings.representation, prompt="")
    known = plain in map(Representation, POOLINGS) and (
        not settings.prompt or bool(_prompts(settings.prompt))
    )
    after, before = run["scores"], run["scores_before"]
    lower = ", ".join(task for task in after if after[task] <= before.get(task, -math.inf))
    no_gain = f" Training did not raise the score on {lower} above the untrained encoder's."
    elsewhere = ("scores", "scores_before", "settings", DATABASE)
    scores = (
        (task, f"{before[task]:.2f}" if task in before else "–", f"{score:.2f}")
        for task, score in after.items()
    )
    return CARD.read_text(encoding="utf-8").format(
        run=run,
        settings=settings,
        method=method,
        text=method.describe(settings),
        representation=representation,
        saved=", ".join(saved),
        use=_SENTENCE_TRANSFORMER if known else _OTHER.format(representation=representation),
        scores=_table(("task", "before training", "score"), scores),
        no_gain=no_gain if lower else "",
        facts=_table(("", ""), (fact for fact in run.items() if fact[0] not in elsewhere)),
        values=_table(("setting", "value"), run["settings"].items()),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return markdown_table(head, cells)


SAME_SCORE = 0.01
"""The tolerance, in points, of the score after loading: the order of summation may differ."""
MERGED_SCORE = 1.0
"""The tolerance, in points, where adapters are merged: rounding changes the ranks of near ties."""


def save_model(
    folder: Path,
    settings: TrainerSettings,
    inputs: RunInputs,
    outcome: Outcome,
    facts: Mapping[str, Any],
) -> None:
    """Write a run's best checkpoint to `folder`, once it is loaded and scored there (atomic).

    Raises TrialError if this score differs, MtdlabError if the folder contains anything but a saved
    model, OSError if writing fails. `facts` are the run's: study, trial, corpus, versions.
    """
    folder = folder.absolute()
    check_model_folder(folder)
    run = {
        "mtd": settings.mtd,
        "seed": settings.seed,
        "precision": choose_device(settings).precision,
        "best_step": outcome.best_step,
        "scores": outcome.after.finite(),
        "scores_before": outcome.before.finite(),
        "settings": settings.model_dump(),
        **facts,
    }
    needed = sum(tensor.nbytes for state in outcome.states.values() for tensor in state.values())
    with new_folder(folder, replace=True, needed=needed) as building:
        _write_encoder(building, settings, inputs, outcome)
        others = sorted(outcome.states.keys() - {"encoder"})
        (building / RUN).parent.mkdir()
        for name in others:
            save_file(outcome.states[name], (building / RUN).with_name(f"{name}.safetensors"))
        _write_json(building / RUN, run)
        card = model_card(run, settings, others)
        (building / "README.md").write_text(card, encoding="utf-8")
        _verify_score(building, settings, inputs, outcome)
        # temporary files are created with private permissions
        for path in (building, *building.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


def check_model_folder(folder: Path) -> None:
    """Raise MtdlabError if `folder` exists and is neither empty nor a saved model."""
    if folder.is_dir() and (not any(folder.iterdir()) or (folder / RUN).exists()):
        return
    if folder.exists():
        raise MtdlabError(f"{folder}: exists and is not a saved model; choose a new folder")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock `folder` to call `save_model` inside; what killed processes left is removed."""
    make_folder(folder.parent)
    with FileLock(folder.parent / f".{folder.name}.lock"):
        remove_leftovers(folder)
        yield


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
    if settings.pooling not in POOLINGS:
        return  # SentenceTransformer lacks the others: it opens the folder, with another pooling
    module, limit = "sentence_transformers.models.", inputs.encoder.token_limit(MAX_LENGTH)
    modes = {f"pooling_mode_{its}": ours == settings.pooling for ours, its in POOLINGS.items()}
    (folder / POOLING_FILE).parent.mkdir()
    files = {
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": module + "Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": module + "Pooling"},
        ],
        POOLING_FILE: {"word_embedding_dimension": model.config.hidden_size, **modes},
        "sentence_bert_config.json": {"max_seq_length": limit, "do_lower_case": False},
        PROMPT_FILE: {"similarity_fn_name": "cosine"} | _prompts(settings.prompt),
    }
    for name, value in files.items():
        _write_json(folder / name, value)


def _prompts(prompt: str) -> dict[str, Any]:
    """The fields by which sentence-transformers puts a prompt before each text."""
    if not prompt.endswith(SENTENCE):
        return {}
    prompts = {"mtdlab": prompt.removesuffix(SENTENCE)}
    return {"prompts": prompts, "default_prompt_name": "mtdlab"}


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _verify_score(
    folder: Path, settings: TrainerSettings, inputs: RunInputs, outcome: Outcome
) -> None:
    encoder = load_encoder(str(folder), None)
    device = choose_device(settings)
    encoder.model.to(device.device)
    embedder = Embedder(encoder.model, settings.representation, device)
    score = inputs.dev.measure(embedder)[1].score
    tolerance = MERGED_SCORE if has_adapters(inputs.encoder.model) else SAME_SCORE
    if not abs(score - outcome.after.dev.score) < tolerance:
        raise TrialError(
            f"the saved model scores {score:.2f} on dev, the trained one "
            f"{outcome.after.dev.score:.2f}"
        )
