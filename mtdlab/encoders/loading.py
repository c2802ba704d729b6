"""Loading of encoders and tokenizers by name; Python code of an encoder's own is never run."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import transformers
from torch import nn
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from mtdlab.data_paths import is_folder
from mtdlab.encoders import hub
from mtdlab.encoders.embed import MAX_LENGTH, Sentences
from mtdlab.encoders.families import check_kind, dropout_fields
from mtdlab.encoders.folders import encoder_path, read_json, why_missing
from mtdlab.encoders.pooling import position_table
from mtdlab.encoders.traits import Traits, read_traits
from mtdlab.errors import MtdlabError

NEVER: dict[str, Any] = {"trust_remote_code": False}
"""Argument of every `from_pretrained`. Without it transformers asks on the terminal whether to run
the folder's code."""


def refuse_own_code(what: str, name: str) -> None:
    """Raise MtdlabError for a model or tokenizer of a class that is only in its own folder.

    A folder whose `auto_map` names code beside a class that transformers has too is loaded as that
    class. `what` names the model in the message.
    """
    known: dict[str, Callable[[dict[str, Any]], bool]] = {
        "config.json": lambda fields: str(fields.get("model_type")) in CONFIG_MAPPING,
        "tokenizer_config.json": lambda fields: hasattr(
            transformers, str(fields.get("tokenizer_class"))
        ),
    }
    for file, is_known in known.items():
        # what is missing or damaged is reported by loading
        fields = read_json(name, file)
        if fields.get("auto_map") and not is_known(fields):
            raise MtdlabError(
                f"{what}: needs Python code of its own ({file} has auto_map), which mtdlab never "
                "runs; choose an encoder of a family that transformers has"
            )


def weights_digest(model: PreTrainedModel) -> str:
    """SHA-256 of a model's weights in float32, without adapters that were added to it."""
    found = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        if ".lora_" not in name:
            found.update(name.replace(".base_layer", "").encode())
            found.update(value.float().cpu().numpy().tobytes())
    return found.hexdigest()


UNLIMITED = 1 << 20
"""Positions of an encoder without a limit, such as one whose attention is biased by distance."""


@dataclass(frozen=True)
class Encoder:
    """A pre-trained model and its tokenizer.

    Attributes:
        model: without its pooler, which is not used for sentence vectors and therefore neither
            computed nor trained.
        pooler: the model's pooler, which is saved again because AutoModel expects one; None if the
            architecture or the loaded weights have none.
        traits: what the model does, read back from it.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    pooler: nn.Module | None = None
    traits: Traits = field(default_factory=Traits)

    def token_limit(self, wanted: int) -> int:
        """`wanted`, or the encoder's number of positions if that is smaller."""
        return min(wanted, position_limit(self.model))

    def sentences(self, texts: Iterable[str], prompt: str = "") -> Sentences:
        """The distinct ones of some texts, tokenised as in an evaluation."""
        return Sentences(texts, self.tokenizer, self.token_limit(MAX_LENGTH), prompt)


def position_limit(model: PreTrainedModel) -> int:
    """The maximum number of tokens, by the encoder's positions.

    Rotary positions have no table: there the limit is that of the configuration.
    """
    if (table := position_table(model)) is None:
        return int(getattr(model.config, "max_position_embeddings", None) or UNLIMITED)
    return len(table)


def load_encoder(name: str, dropout: float | None, declared: str = "") -> Encoder:
    """Load `builtin`, a folder or a Hugging Face name.

    Args:
        dropout: rate of every dropout of the encoder; None: left as it is, for evaluation.
        declared: the setting `dropout_fields`, for a family that is not known.

    Raises:
        MtdlabError: with a way to get it, if the encoder cannot be found or loaded, and with what
            to declare, if its family is not known.
    """
    tokenizer, path = load_tokenizer(name), encoder_path(name)
    how: dict[str, Any] = {"local_files_only": is_local(name), **NEVER}
    with explain_errors(f"encoder {name}", name):
        config = AutoConfig.from_pretrained(path, **how)
    plain = config.to_dict()
    check_kind(name, plain, has_width=hasattr(config, "hidden_size"))
    fields = None if dropout is None else dropout_fields(name, plain, declared)
    rates = dict.fromkeys(fields or (), dropout)
    with explain_errors(f"encoder {name}", name):
        model, report = AutoModel.from_pretrained(path, output_loading_info=True, **how, **rates)
    pooler = _take_pooler(model.float(), report["missing_keys"])
    return Encoder(model, tokenizer, pooler, read_traits(name, model, fields, dropout))


def _take_pooler(model: PreTrainedModel, missing: Iterable[str]) -> nn.Module | None:
    """Remove the pooler of a model and return it; None if missing or randomly initialised."""
    if not isinstance(pooler := getattr(model, "pooler", None), nn.Module):
        return None
    model.register_module("pooler", None)
    if any(name.startswith("pooler.") for name in missing):
        return None
    return pooler.requires_grad_(False)


def load_tokenizer(name: str, what: str = "") -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder, by the encoder's name; it pads on the right, as training does.

    A decoder's tokenizer without a padding token pads with its end token. Raises MtdlabError, with
    a way to get it, if it cannot be found or loaded, if it or the encoder needs code of its own, or
    if it has neither of these tokens. `what` names a model that is no encoder in messages.
    """
    what = what or f"encoder {name}"
    refuse_own_code(what, name)
    with explain_errors(what, name):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            encoder_path(name), local_files_only=is_local(name), **NEVER
        )
    if len(tokenizer.get_vocab()) <= len(tokenizer.all_special_ids):
        raise MtdlabError(f"{what}: no vocabulary; its tokenizer files are missing")
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token is None:
            raise MtdlabError(
                f"{what}: its tokenizer has neither a padding nor an end token; set "
                "pad_token in its tokenizer_config.json"
            )
        tokenizer.pad_token = tokenizer.eos_token
    # exported with it: from the left, absolute positions would begin at the padding
    tokenizer.padding_side = "right"
    return tokenizer


def is_local(name: str) -> bool:
    """Whether a model is loaded without asking the hub: of a folder, or the hub is not reached."""
    return is_folder(Path(encoder_path(name))) or not hub.reachable()


@contextmanager
def explain_errors(what: str, name: str) -> Iterator[None]:
    """Turn any error of loading a model into an MtdlabError with a way to get it."""
    try:
        with hub.quiet():
            yield
    except Exception as error:
        # its type for a damaged folder depends on the damaged file
        raise MtdlabError(f"{what}: {_reason(name, error)}") from None


def _reason(name: str, error: Exception) -> str:
    if "weights_only" in str(error) or "Weights only" in str(error):
        # torch advises to load the file without this check, which would run its code
        return (
            "its weights file is a pickle with more in it than tensors, which could run code when "
            "it is read, and is not loaded; get the encoder with model.safetensors, or convert a "
            "file that you trust at https://huggingface.co/spaces/safetensors/convert"
        )
    if isinstance(error, ImportError) and "sentencepiece" in str(error).lower():
        return "needs the library sentencepiece; install the extra: pip install 'mtdlab[augment]'"
    if is_folder(Path(name)):
        return f"the folder cannot be loaded: {type(error).__name__}: {error}".splitlines()[0]
    return why_missing(name)
