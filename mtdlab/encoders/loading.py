"""Loading of encoders and tokenizers by name.

Python code of an encoder's own is never run, and no weight of an encoder is drawn at random: files
that lack one, or hold others, are refused.
"""

import copy
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
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
from mtdlab.encoders.embed import MAX_LENGTH, Sentences
from mtdlab.encoders.folders import (
    check_declared,
    declared_limit,
    encoder_path,
    find_file,
    limit_file,
    quiet,
    reachable,
    read_json,
    why_missing,
)
from mtdlab.encoders.pooling import position_limit
from mtdlab.encoders.traits import check_kind, dropout_fields, read_causality
from mtdlab.errors import MtdlabError, one_line
from mtdlab.settings.representation import Representation, describe

NEVER: dict[str, Any] = {"trust_remote_code": False}
"""The arguments of every `from_pretrained`. Without them transformers asks on the terminal whether
to run the folder's code."""

POOLER = "pooler"
ADAPTERS = "adapter_config.json"
"""The file by which transformers, where peft is installed, adds adapters to a model unasked."""
_HEADS = (
    "classifier cls decoder dense discriminator_predictions generator_lm_head "
    "generator_predictions head lm_head lm_predictions logits_proj mask_predictions mlp "
    "pre_classifier pred_layer predictions qa_classifier qa_outputs score sequence_summary "
    "sop_classifier vocab_layer_norm vocab_projector vocab_transform"
)
HEADS = frozenset(_HEADS.split())
"""The first parts of the names of task heads, which sentence vectors are computed without.

Those of the classes of transformers with a head, for each of the known families; of DeBERTa's
published files, `lm_predictions` and `mask_predictions`; and of SimCSE's program, `mlp`.
"""

_MOST_SAID = 300
"""The most characters of an error of transformers that are shown; some list every weight."""


def refuse_own_code(what: str, name: str) -> None:
    """Raise MtdlabError for a model or tokenizer of a class that transformers does not have."""
    for file, field_of_class, is_known in (
        ("config.json", "model_type", CONFIG_MAPPING.__contains__),
        ("tokenizer_config.json", "tokenizer_class", partial(hasattr, transformers)),
    ):
        fields: dict[str, Any] = {}
        # what is missing or damaged is reported by loading
        with suppress(MtdlabError):
            fields = read_json(name, file)
        if fields.get("auto_map") and not is_known(str(fields.get(field_of_class))):
            raise MtdlabError(
                f"{what}: needs Python code of its own ({file} has auto_map), which mtdlab never "
                "runs; choose an encoder of a family that transformers has"
            )


def weights_digest(model: PreTrainedModel) -> str:
    """The SHA-256 of a model's weights in float32, without adapters that were added to it."""
    sha256 = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        if ".lora_" not in name:
            sha256.update(name.replace(".base_layer", "").encode())
            sha256.update(value.float().cpu().numpy().tobytes())
    return sha256.hexdigest()


@dataclass(frozen=True)
class Encoder:
    """A pre-trained model and its tokenizer, whose `model_max_length` is what its files declare.

    Attributes:
        pooler: the model's, removed from it because sentence vectors do not need it, and saved
            again because AutoModel expects one; None if architecture or loaded weights have none.
        causal: whether a token sees only those before it.
        dropout_fields: those of its configuration that hold the dropout rate; None if they were
            left as they are, for evaluation.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    pooler: nn.Module | None = None
    causal: bool = False
    dropout_fields: tuple[str, ...] | None = None

    def token_limit(self, wanted: int) -> int:
        """The least of `wanted`, the encoder's number of positions, and the declared limit."""
        return min(wanted, position_limit(self.model), int(self.tokenizer.model_max_length))

    def reading(self, representation: Representation) -> str:
        """How an evaluation reads a text: `cls pooling, up to 64 tokens in evaluation`."""
        return (
            f"{describe(representation)}, up to {self.token_limit(MAX_LENGTH)} tokens in evaluation"
        )

    def sentences(self, texts: Iterable[str], prompt: str = "") -> Sentences:
        """The distinct sentences among some texts, tokenised as in an evaluation."""
        return Sentences(texts, self.tokenizer, self.token_limit(MAX_LENGTH), prompt)


def load_encoder(
    name: str, dropout: float | None, declared: str = "", kept: int | None = None
) -> Encoder:
    """Load `builtin`, a folder or a Hugging Face name.

    `dropout` is the rate of every dropout, None: left as it is, for evaluation; `declared` and
    `kept` are the settings `dropout_fields` and `encoder_layers`. Raises MtdlabError with a way to
    get an encoder that cannot be found or loaded, with what to declare for a family that is not
    known, or where it has fewer layers than are to be kept.
    """
    check_declared(name)
    tokenizer, path = load_tokenizer(name), encoder_path(name)
    # saved with it, for whatever reads the tokenizer alone; one token at least is the text's
    tokenizer.model_max_length = declared_limit(
        name, tokenizer.model_max_length, tokenizer.num_special_tokens_to_add() + 1
    )
    how: dict[str, Any] = {"local_files_only": is_local(name), **NEVER}
    with explain_errors(f"encoder {name}", name):
        config = AutoConfig.from_pretrained(path, **how)
    plain = config.to_dict()
    # T5's encoder alone declares no decoder, but is loaded as the whole model
    plain["is_encoder_decoder"] |= type(config).is_encoder_decoder
    layers = int(getattr(config, "num_hidden_layers", 0))
    check_kind(name, plain, has_width=hasattr(config, "hidden_size"), layers=layers)
    fields = None if dropout is None else dropout_fields(name, plain, declared)
    rates = dict.fromkeys(fields or (), dropout)
    model, missing = load_weights(AutoModel, f"encoder {name}", name, **rates)
    _check_tokens(name, model, tokenizer)
    if kept is not None:
        model = _keep_layers(model, name, kept)
    pooler = _take_pooler(model.float(), missing)
    causal = read_causality(name, model, fields, dropout)
    return Encoder(model, tokenizer, pooler, causal, fields)


def _check_tokens(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise MtdlabError where tokens have no word embedding, or capitals stay that should not."""
    last = max(tokenizer.get_vocab().values())
    if last >= (rows := len(model.get_input_embeddings().weight)):
        raise MtdlabError(
            f"encoder {name}: its tokenizer has token ids up to {last:,}, but there are {rows:,} "
            "word embeddings; get both from one source, or add embeddings with "
            "resize_token_embeddings and save_pretrained of transformers"
        )
    small = read_json(name, file := limit_file(name)).get("do_lower_case")
    if small and tokenizer.tokenize("A") != tokenizer.tokenize("a"):
        raise MtdlabError(
            f"encoder {name}: reads small letters alone (do_lower_case in {file}), which its "
            "tokenizer does not make; add a Lowercase normalizer to its tokenizer.json"
        )


def load_weights(
    kind: Any, what: str, name: str, **fields: Any
) -> tuple[PreTrainedModel, Set[str]]:
    """Load a model whose weights are all those of its files, except for a pooler.

    `kind` is the class of transformers, such as AutoModel, `what` names the model in messages, and
    `fields` replace those of its configuration. Returns the model, and the names of its pooler's
    weights that were drawn at random. Raises MtdlabError if it cannot be found or loaded, or its
    files hold adapters, lack a weight, or hold one of another shape, or of no known part.
    """
    if find_file(name, ADAPTERS) is not None:
        raise MtdlabError(
            f"{what}: holds adapters ({ADAPTERS}), which mtdlab does not add to an encoder; merge "
            "them into its weights with peft (merge_and_unload, then save_pretrained) and name "
            "that folder"
        )
    with explain_errors(what, name):
        model, report = kind.from_pretrained(
            encoder_path(name),
            local_files_only=is_local(name),
            output_loading_info=True,
            # they are in the report, instead of an error that does not name them
            ignore_mismatched_sizes=True,
            **NEVER,
            **fields,
        )
    if errors := report["error_msgs"]:
        raise MtdlabError(f"{what}: the folder cannot be loaded: {errors[0]}"[:_MOST_SAID])
    return model, _check_fit(f"{what}: its weights do not fit its config.json", kind, model, report)


def _check_fit(what: str, kind: Any, model: PreTrainedModel, report: Mapping[str, Any]) -> Set[str]:
    """The names of the weights of the pooler that were drawn. Raises MtdlabError for others."""
    sizes = {mismatch[0]: mismatch for mismatch in report["mismatched_keys"]}
    drawn = {*report["missing_keys"], *sizes}
    in_pooler = {weight for weight in drawn if _first_part(weight, model) == POOLER}
    differences = {
        "missing": drawn - in_pooler - sizes.keys(),
        "in no layer": {one for one in report["unexpected_keys"] if not _is_unused(one, model)},
        "of another size": {
            f"{weight} {list(file)}, not {list(own)}"
            for weight, file, own in sizes.values()
            if weight not in in_pooler
        },
    }
    listed = "; ".join(
        f"{how}: {len(weights)}, such as {', '.join(sorted(weights)[:3])}"
        for how, weights in differences.items()
        if weights
    )
    if listed:
        raise MtdlabError(
            f"{what} ({listed}): the files are incomplete, or one is of another model; get both "
            "from one source, remove a prefix from the names of the weights, or save the model "
            f"alone, with save_pretrained of {kind.__name__}"
        )
    return in_pooler


def _first_part(weight: str, model: PreTrainedModel) -> str:
    """The first part of a weight's name, without the prefix of a model with a task head."""
    return weight.removeprefix(f"{model.base_model_prefix}.").partition(".")[0]


def _is_unused(weight: str, model: PreTrainedModel) -> bool:
    part = _first_part(weight, model)
    # the name of a head may be that of a part of another family, such as `decoder`
    parts = {name for name, _ in model.base_model.named_children()}
    return part == POOLER or (part in HEADS and part not in parts)


def _keep_layers(model: PreTrainedModel, name: str, count: int) -> PreTrainedModel:
    """A model of the same family with the first layers of another, and what is outside layers."""
    config = copy.deepcopy(model.config)
    layers = int(getattr(config, "num_hidden_layers", 0))
    if not 1 <= count <= layers:
        raise MtdlabError(
            f"encoder {name}: encoder_layers {count}: it has {layers} layers; choose 1 to {layers}"
        )
    with explain_errors(f"encoder {name}, layers 1 to {count}", name):
        config.num_hidden_layers = count
        if getattr(config, "layer_types", None):
            # what each layer attends to
            config.layer_types = config.layer_types[:count]
        kept, report = type(model).from_pretrained(
            None, config=config, state_dict=model.state_dict(), output_loading_info=True
        )
    assert not report["missing_keys"], "a weight of a kept layer was drawn at random"
    kept.name_or_path = model.name_or_path
    return kept


def _take_pooler(model: PreTrainedModel, missing: Set[str]) -> nn.Module | None:
    """Remove the pooler of a model and return it; None if weights of it are missing."""
    if not isinstance(pooler := getattr(model, POOLER, None), nn.Module):
        return None
    model.register_module(POOLER, None)
    return None if missing else pooler.requires_grad_(False)


def load_tokenizer(name: str, what: str = "") -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder, by the encoder's name; it pads on the right, as training does.

    One without a padding token pads with its end token. Raises MtdlabError if it cannot be found or
    loaded, needs code of its own, lacks its unknown token or both of padding and end. `what` names
    the model in messages.
    """
    what = what or f"encoder {name}"
    refuse_own_code(what, name)
    with explain_errors(what, name):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            encoder_path(name), local_files_only=is_local(name), **NEVER
        )
    vocabulary, unknown = tokenizer.get_vocab(), tokenizer.unk_token
    # transformers looks such a token up as unknown, without an end
    if unknown is not None and unknown not in vocabulary:
        raise MtdlabError(f"{what}: its unk_token {unknown!r} is not in its vocabulary")
    if len(vocabulary) <= len(tokenizer.all_special_ids):
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
    """Whether a model is loaded without the hub: it is a folder, or the hub cannot be reached."""
    return is_folder(Path(encoder_path(name))) or not reachable()


@contextmanager
def explain_errors(what: str, name: str) -> Iterator[None]:
    """Turn any error of loading a model into an MtdlabError with a way to get it."""
    try:
        with quiet():
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
        return f"the folder cannot be loaded: {one_line(error)[:_MOST_SAID]}"
    return why_missing(name)
