"""Families of encoders, and what an encoder does, which is read from the loaded model.

A family is known by the `model_type` of its configuration. Every field listed here as a dropout
rate changes the forward pass in training mode; rates of task heads (`classifier_dropout`) and of
whole layers (`layerdrop`) are left as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mtdlab.encoders.adapters import has_adapters
from mtdlab.encoders.dropout import evaluation_mode
from mtdlab.encoders.fast import is_fast
from mtdlab.errors import MtdlabError
from mtdlab.settings import Representation

NONE = "none"
"""The value of `dropout_fields` that declares a family without dropout."""
MOST_LAYERS = 1_000
"""The most layers of an encoder: published ones have fewer than 200; 100,000 take minutes."""
RECOMMENDED = "BERT, RoBERTa, XLM-R, DistilBERT, MPNet, DeBERTa, ModernBERT, EuroBERT or Qwen3"

_KINDS: Mapping[tuple[str, ...], str] = {
    ("attention_probs_dropout_prob", "hidden_dropout_prob"): (
        "albert bert big_bird camembert convbert data2vec-text deberta deberta-v2 electra ernie "
        "gte jina_embeddings_v3 layoutlm megatron-bert mobilebert mpnet nomic_bert rembert roberta "
        "roberta-prelayernorm roformer xlm-roberta xlm-roberta-xl"
    ),
    # its approximation of attention applies no dropout to the weights
    ("hidden_dropout_prob",): "nystromformer",
    ("attention_dropout", "dropout"): "distilbert flaubert xlm",
    ("attention_dropout", "embedding_dropout", "mlp_dropout"): "modernbert modernbert-decoder",
    ("attention_dropout",): (
        "eurobert gemma gemma2 gemma3_text granite llama mistral olmo2 qwen2 qwen3 smollm3"
    ),
    ("attn_pdrop", "embd_pdrop", "resid_pdrop"): "gpt2",
}
FAMILIES: Mapping[str, tuple[str, ...]] = {
    kind: fields for fields, kinds in _KINDS.items() for kind in kinds.split()
}
"""The dropout fields of the known families, in alphabetical order, by `model_type`."""


def check_kind(name: str, config: Mapping[str, Any], *, has_width: bool, layers: int = 0) -> None:
    """Raise MtdlabError for a configuration that is not that of a text encoder or decoder.

    `has_width`: whether it has a `hidden_size`; `layers`: their number. Both are read by whichever
    name the family has for it.
    """
    if layers > MOST_LAYERS:
        raise MtdlabError(
            f"encoder {name}: its config.json says {layers:,} layers, at most {MOST_LAYERS:,} are "
            "loaded; get the folder again"
        )
    if config.get("is_encoder_decoder") or not has_width:
        raise MtdlabError(
            f"encoder {name}: architecture {config.get('model_type')!r} gives no sentence vectors: "
            "it has a decoder beside its encoder, or no hidden_size, as those of images and text "
            f"together; give the text model alone, or choose {RECOMMENDED}"
        )


def dropout_fields(name: str, config: Mapping[str, Any], declared: str) -> tuple[str, ...]:
    """The fields of an encoder's configuration that are dropout rates; none without dropout.

    `declared` is the setting `dropout_fields`: names separated by commas, `none`, or empty. Raises
    MtdlabError, with what to declare, where it is missing or does not fit the configuration.
    """
    kind = str(config.get("model_type"))
    known = FAMILIES.get(kind)
    wanted = () if declared == NONE else tuple(sorted(filter(None, declared.split(","))))
    if known is not None:
        if declared and wanted != known:
            raise MtdlabError(
                f"encoder {name}: the dropout rates of the family {kind} are known "
                f"({', '.join(known)}); remove trainer.dropout_fields {declared}"
            )
        return known
    candidates = sorted(
        field
        for field, value in config.items()
        if "drop" in field and isinstance(value, int | float) and not isinstance(value, bool)
    )
    listed = ", ".join(candidates)
    if not declared and candidates:
        raise MtdlabError(
            f"encoder {name}: the dropout rates of the family {kind} are not known; declare the "
            "fields of its configuration that are rates of the encoder, among "
            f"trainer.dropout_fields: [{listed}], or {NONE}; or choose {RECOMMENDED}"
        )
    if missing := [field for field in wanted if field not in config]:
        raise MtdlabError(
            f"encoder {name}: the configuration of the family {kind} has no field {missing[0]} "
            f"(trainer.dropout_fields); choose among "
            f"{listed or 'none: no field has drop in its name'}"
        )
    return wanted


TOLERANCE = 1e-4
"""The relative difference of two forward passes up to which they count as the same."""


def read_causality(
    name: str, model: PreTrainedModel, fields: tuple[str, ...] | None, rate: float | None
) -> bool:
    """Whether a token sees only those before it, in a model loaded with these fields set to `rate`.

    Raises MtdlabError if the rate is in no module, if word embeddings do not give the output of
    their token ids, or if the model cannot read text.
    """
    kind = str(model.config.model_type)
    if fields and rate and rate not in set(_rates(model)):
        raise MtdlabError(
            f"encoder {name}: no module of the family {kind} has the dropout rate {rate} of "
            f"{', '.join(fields)}; declare other fields in trainer.dropout_fields, or none"
        )
    if is_fast(model):
        return False
    try:
        with evaluation_mode(model):
            return _is_causal(name, model)
    except MtdlabError:
        raise
    except Exception as error:
        # what an architecture for another purpose raises depends on the architecture
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise MtdlabError(
            f"encoder {name}: the family {kind} gives no token vectors of text ({reason})"
        ) from None


def _rates(model: nn.Module) -> Iterator[float]:
    """The dropout rates of all modules: of dropout layers, and those passed to attention."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            yield module.p
        for attribute, value in vars(module).items():
            if "drop" in attribute and isinstance(value, float):
                yield value


@torch.no_grad()
def _is_causal(name: str, model: PreTrainedModel) -> bool:
    """Whether the first token's vector does not depend on the next token."""
    size = int(model.config.vocab_size)
    ids = torch.tensor([[size // 2, size // 3]], device=model.device)
    words = model.get_input_embeddings()(ids)
    vectors, expected = _vectors(model, inputs_embeds=words), _vectors(model, input_ids=ids)
    if (vectors - expected).norm() > TOLERANCE * expected.norm():
        raise MtdlabError(
            f"encoder {name}: the family {model.config.model_type} gives other vectors for word "
            "embeddings than for their token ids, so it cannot be trained here"
        )
    other = words.clone()
    other[:, 1] = torch.linspace(-1, 1, words.shape[2], device=model.device)
    return torch.equal(vectors[:, 0], _vectors(model, inputs_embeds=other)[:, 0])


def _vectors(model: PreTrainedModel, **inputs: Tensor) -> Tensor:
    mask = torch.ones(1, 2, dtype=torch.long, device=model.device)
    output: Any = model(attention_mask=mask, **inputs)
    hidden: Tensor = output.last_hidden_state
    return hidden


def check_pooling(name: str, representation: Representation, *, causal: bool) -> None:
    """Raise MtdlabError for a pooling that reads nothing of the sentence."""
    if causal and representation.pooling == "cls":
        raise MtdlabError(
            f"pooling cls: encoder {name} is causal, so that its first token does not see the "
            "sentence; choose pooling last-token or mean"
        )


def describe_encoder(model: PreTrainedModel, fields: Sequence[str] | None) -> str:
    """The family, the forward pass that runs, and the fields that the dropout rate is set in."""
    kind = str(model.config.model_type)
    if has_adapters(model):
        sizes = [(parameter.numel(), parameter.requires_grad) for parameter in model.parameters()]
        trained = sum(size for size, is_trained in sizes if is_trained)
        share = trained / (sum(size for size, _ in sizes) - trained)
        kind += f", adapters of {100 * share:.2g} % of its parameters"
    if is_fast(model):
        return f"{kind}, the fast forward pass"
    rates = f"dropout in {', '.join(fields)}" if fields else "without dropout"
    return f"{kind}, transformers' own forward pass, {rates}"
