"""Families of encoders: which fields of their configurations are dropout rates.

A family is known by the `model_type` of its configuration. Every field listed here changes the
forward pass in training mode, which a test shows for each family; rates of task heads
(`classifier_dropout`) and of whole layers (`layerdrop`) are left as they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mtdlab.errors import MtdlabError

NONE = "none"
"""The value of `dropout_fields` that declares a family without dropout."""
RECOMMENDED = "BERT, RoBERTa, XLM-R, DistilBERT, MPNet, DeBERTa, ModernBERT, EuroBERT or Qwen3"


@dataclass(frozen=True)
class DropoutFields:
    """The fields of a configuration that are dropout rates, by what they act on.

    Attributes:
        attention: attention weights.
        residual: outputs of attention and MLP, or the inner layer of the MLP.
        embedding: the output of the embedding block.
    """

    attention: str = ""
    residual: str = ""
    embedding: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, each once, in alphabetical order."""
        return tuple(sorted({self.attention, self.residual, self.embedding} - {""}))


_BERT = DropoutFields("attention_probs_dropout_prob", "hidden_dropout_prob", "hidden_dropout_prob")
_DISTILBERT = DropoutFields("attention_dropout", "dropout", "dropout")
_MODERNBERT = DropoutFields("attention_dropout", "mlp_dropout", "embedding_dropout")
_ATTENTION = DropoutFields("attention_dropout")
_GPT = DropoutFields("attn_pdrop", "resid_pdrop", "embd_pdrop")

FAMILIES: Mapping[str, DropoutFields] = {
    **dict.fromkeys(
        (
            "albert",
            "bert",
            "big_bird",
            "camembert",
            "convbert",
            "data2vec-text",
            "deberta",
            "deberta-v2",
            "electra",
            "ernie",
            "gte",
            "jina_embeddings_v3",
            "layoutlm",
            "megatron-bert",
            "mobilebert",
            "mpnet",
            "nomic_bert",
            "rembert",
            "roberta",
            "roberta-prelayernorm",
            "roformer",
            "xlm-roberta",
            "xlm-roberta-xl",
        ),
        _BERT,
    ),
    # its approximation of attention applies no dropout to the weights
    "nystromformer": DropoutFields("", "hidden_dropout_prob", "hidden_dropout_prob"),
    **dict.fromkeys(("distilbert", "flaubert", "xlm"), _DISTILBERT),
    **dict.fromkeys(("modernbert", "modernbert-decoder"), _MODERNBERT),
    **dict.fromkeys(
        (
            "eurobert",
            "gemma",
            "gemma2",
            "gemma3_text",
            "granite",
            "llama",
            "mistral",
            "olmo2",
            "qwen2",
            "qwen3",
            "smollm3",
        ),
        _ATTENTION,
    ),
    "gpt2": _GPT,
}
"""The known families by `model_type`."""


def check_kind(name: str, config: Mapping[str, Any], *, has_width: bool) -> None:
    """Raise MtdlabError for a configuration that is not that of a text encoder or decoder.

    Args:
        has_width: whether it has a `hidden_size`, the dimension of sentence vectors.
    """
    kind = config.get("model_type")
    if config.get("is_encoder_decoder"):
        raise MtdlabError(
            f"encoder {name}: architecture {kind!r} is an encoder with a decoder, which gives no "
            f"sentence vectors; choose {RECOMMENDED}"
        )
    if not has_width:
        raise MtdlabError(
            f"encoder {name}: architecture {kind!r} has no hidden_size, as those of images and "
            f"text together; give the text model alone, or choose {RECOMMENDED}"
        )


def dropout_fields(name: str, config: Mapping[str, Any], declared: str) -> tuple[str, ...]:
    """The fields of an encoder's configuration that are dropout rates; none without dropout.

    Args:
        declared: the setting `dropout_fields`: names separated by commas, `none`, or empty.

    Raises:
        MtdlabError: with what to declare, for a family that is not known, and for a declaration
            that does not fit the configuration.
    """
    kind = str(config.get("model_type"))
    known = FAMILIES.get(kind)
    wanted = () if declared == NONE else tuple(sorted(filter(None, declared.split(","))))
    if known is not None:
        if declared and wanted != known.names:
            raise MtdlabError(
                f"encoder {name}: the dropout rates of the family {kind} are known "
                f"({', '.join(known.names)}); remove trainer.dropout_fields {declared}"
            )
        return known.names
    candidates = _candidates(config)
    if not declared and candidates:
        raise MtdlabError(
            f"encoder {name}: the dropout rates of the family {kind} are not known; declare the "
            "fields of its configuration that are rates of the encoder, among "
            f"trainer.dropout_fields: [{', '.join(candidates)}], or {NONE}; or choose {RECOMMENDED}"
        )
    if missing := [field for field in wanted if field not in config]:
        raise MtdlabError(
            f"encoder {name}: the configuration of the family {kind} has no field {missing[0]} "
            f"(trainer.dropout_fields); choose among {_list_fields(candidates)}"
        )
    return wanted


def _candidates(config: Mapping[str, Any]) -> list[str]:
    """The fields that may be dropout rates: numbers with `drop` in their names."""
    return sorted(
        field
        for field, value in config.items()
        if "drop" in field and isinstance(value, int | float) and not isinstance(value, bool)
    )


def _list_fields(fields: Iterable[str]) -> str:
    return ", ".join(fields) or "none: no field has drop in its name"
