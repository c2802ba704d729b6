"""Families of encoders: which fields of their configurations are dropout rates.

A family is known by the `model_type` of its configuration. Every field listed here changes the
forward pass in training mode, which a test shows for each family; rates of task heads
(`classifier_dropout`) and of whole layers (`layerdrop`) are left as they are.
"""

from collections.abc import Mapping
from typing import Any

from mtdlab.errors import MtdlabError

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

    Args:
        has_width: whether it has a `hidden_size`, the dimension of sentence vectors.
        layers: the number of its layers, by whichever name its family has for it.
    """
    kind = config.get("model_type")
    if config.get("is_encoder_decoder"):
        raise MtdlabError(
            f"encoder {name}: architecture {kind!r} is an encoder with a decoder, which gives no "
            f"sentence vectors; choose {RECOMMENDED}"
        )
    if layers > MOST_LAYERS:
        raise MtdlabError(
            f"encoder {name}: its config.json says {layers:,} layers, at most {MOST_LAYERS:,} are "
            "loaded; get the folder again"
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
