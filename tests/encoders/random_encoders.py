"""Encoders of each family with random weights, and tokenizers as their families have them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    CONFIG_MAPPING,
    AutoModel,
    DebertaV2Config,
    EuroBertConfig,
    ModernBertConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
    XLMRobertaConfig,
)

POSITIONS = 40
DECODERS = ("qwen3",)
SIZE: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": POSITIONS,
}
SPECIAL = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
ROTARY: dict[str, Any] = {**SIZE, **SPECIAL, "num_key_value_heads": 1, "head_dim": 8}
FAMILIES: dict[str, Callable[[int], Any]] = {
    "modernbert": lambda size: ModernBertConfig(
        vocab_size=size,
        local_attention=8,
        num_hidden_layers=3,
        **{name: value for name, value in (SIZE | SPECIAL).items() if "layers" not in name},
        cls_token_id=0,
        sep_token_id=2,
    ),
    "deberta-v2": lambda size: DebertaV2Config(vocab_size=size, **SIZE),
    # the published third version: relative positions alone, whose projections are shared
    "deberta-v3": lambda size: DebertaV2Config(
        vocab_size=size,
        relative_attention=True,
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        **SIZE,
    ),
    "xlm-roberta": lambda size: XLMRobertaConfig(
        vocab_size=size, **SIZE | {"max_position_embeddings": POSITIONS + 2}
    ),
    "eurobert": lambda size: EuroBertConfig(vocab_size=size, **ROTARY),
    "qwen3": lambda size: Qwen3Config(vocab_size=size, **ROTARY | {"pad_token_id": None}),
}


def write_encoder(
    folder: Path, config: Callable[[int], Any], words: Sequence[str], **tokenizer: Any
) -> Path:
    """A random encoder and its tokenizer; `tokenizer`: further arguments of the latter."""
    write_tokenizer(folder, words, **tokenizer)
    torch.manual_seed(0)
    model = AutoModel.from_config(config(len(words) + 5))
    # at the usual deviation a small encoder's vectors of different sentences are nearly equal
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3, generator=torch.Generator().manual_seed(len(name)))
    model.save_pretrained(folder)
    return folder


def write_tokenizer(folder: Path, words: Sequence[str], **changed: Any) -> None:
    """A tokenizer of words; its padding has id 1, as RoBERTa's has.

    changed   `special=False`: no token before and after a sentence; other arguments as they are.
    """
    vocabulary = {
        word: at for at, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", *words])
    }
    plain = Tokenizer(WordLevel(vocabulary, "<unk>"))
    plain.pre_tokenizer = Whitespace()
    if changed.pop("special", True):
        plain.post_processor = TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 2)])
    names: dict[str, Any] = {
        "cls_token": "<s>",
        "pad_token": "<pad>",
        "sep_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    PreTrainedTokenizerFast(tokenizer_object=plain, **names | changed).save_pretrained(folder)


def write_family(folder: Path, family: str, words: Sequence[str]) -> Path:
    """An encoder of one of `FAMILIES`; decoders without start, end and padding tokens."""
    decoder = {
        "special": False,
        "cls_token": None,
        "sep_token": None,
        "pad_token": None,
        "mask_token": None,
        "eos_token": "</s>",
        "padding_side": "left",
    }
    tokenizer = decoder if family in DECODERS else {}
    return write_encoder(folder, FAMILIES[family], words, **tokenizer)


def small_config(kind: str) -> Any:
    """A small configuration of a `model_type`, by the names of sizes that it has."""
    plain = CONFIG_MAPPING[kind]()
    wanted = {"vocab_size": 50, **ROTARY, "cls_token_id": 0, "sep_token_id": 2}
    wanted |= {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}
    # for short text it is replaced by this one anyway
    wanted |= {"attention_type": "original_full"}
    wanted |= {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "embedding_size": 32}
    return CONFIG_MAPPING[kind](**{k: v for k, v in wanted.items() if hasattr(plain, k)})
