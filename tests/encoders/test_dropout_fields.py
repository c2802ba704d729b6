"""The dropout fields of every family: each exists, is read back and changes the forward pass."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from mtdlab.encoders.families import FAMILIES, check_kind, dropout_fields
from mtdlab.encoders.traits import check_pooling, read_traits
from mtdlab.errors import MtdlabError
from mtdlab.settings import Representation
from tests.encoders.random_encoders import small_config

IDS = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12] * 2])
CAUSAL = """
gemma gemma2 gemma3_text gpt2 granite llama mistral modernbert-decoder olmo2 qwen2 qwen3 smollm3
""".split()  # noqa: SIM905


def model_of(kind: str, **rates: float) -> Any:
    config = small_config(kind)
    for field, rate in rates.items():
        setattr(config, field, rate)
    torch.manual_seed(0)
    return AutoModel.from_config(config)


def vectors(model: Any) -> Tensor:
    with torch.no_grad():
        hidden: Tensor = model(input_ids=IDS, attention_mask=IDS.clamp(max=1)).last_hidden_state
    return hidden


@pytest.mark.parametrize("kind", FAMILIES)
def test_each_field_alone_makes_two_passes_differ(kind: str) -> None:
    names = FAMILIES[kind]
    for field in names:
        rates = dict.fromkeys(names, 0.0) | {field: 0.37}
        model = model_of(kind, **rates)
        read_traits(kind, model, names, 0.37)
        model.train()
        assert not torch.equal(vectors(model), vectors(model)), field
        model.eval()
        assert torch.equal(vectors(model), vectors(model)), field
    model = model_of(kind, **dict.fromkeys(names, 0.0)).train()
    assert torch.equal(vectors(model), vectors(model))


@pytest.mark.parametrize("kind", FAMILIES)
def test_causal_families_are_found_and_word_embeddings_replace_ids(kind: str) -> None:
    model = model_of(kind).eval()
    traits = read_traits(kind, model, FAMILIES[kind], None)
    assert traits.causal == (kind in CAUSAL)
    assert not model.training
    words = model.get_input_embeddings()(IDS)
    with torch.no_grad():
        hidden = model(inputs_embeds=words, attention_mask=IDS.clamp(max=1)).last_hidden_state
    assert torch.allclose(hidden, vectors(model), atol=1e-5)


def test_a_decoder_that_sees_both_directions_is_not_causal() -> None:
    config = small_config("gemma3_text")
    config.use_bidirectional_attention = True
    model = AutoModel.from_config(config)
    assert not read_traits("a", model, None, None).causal


def test_cls_pooling_of_a_causal_encoder_is_refused() -> None:
    traits = read_traits("a", model_of("qwen3"), ("attention_dropout",), 0.0)
    with pytest.raises(MtdlabError, match=r"encoder a is causal, .* choose pooling last-token or"):
        check_pooling("a", traits, Representation("cls"))
    for pooling in ("mean", "last-token"):
        check_pooling("a", traits, Representation(pooling))


def test_a_rate_that_no_module_has_is_refused() -> None:
    model = model_of("qwen3", attention_dropout=0.2)
    with pytest.raises(MtdlabError, match=r"no module of the family qwen3 has the dropout rate"):
        read_traits("a", model, ("classifier_dropout",), 0.1)


def test_embeddings_that_do_not_give_the_output_of_their_ids_are_refused() -> None:
    model = model_of("qwen3")
    forward = model.forward

    def scaling(attention_mask: Tensor, input_ids: Tensor | None = None, **inputs: Any) -> Any:
        if input_ids is not None:
            # not where only the embeddings are asked for, as in a model that scales them later
            inputs = {"inputs_embeds": 4 * model.get_input_embeddings()(input_ids)}
        return forward(attention_mask=attention_mask, **inputs)

    model.forward = scaling
    with pytest.raises(MtdlabError, match="gives other vectors for word embeddings than for their"):
        read_traits("a", model, None, None)


CONFIG = {"model_type": "newbert", "resid_drop": 0.1, "drop_rate": 0, "dropless": True, "width": 3}


def test_an_unknown_family_is_refused_with_what_to_declare() -> None:
    with pytest.raises(
        MtdlabError,
        match=r"family newbert are not known; .* trainer\.dropout_fields: \[drop_rate, resid_drop\]"
        ", or none; or choose BERT",
    ):
        dropout_fields("a", CONFIG, "")
    assert dropout_fields("a", CONFIG, "resid_drop") == ("resid_drop",)
    assert dropout_fields("a", CONFIG, "none") == ()
    with pytest.raises(MtdlabError, match=r"newbert has no field hidden_dropout .* drop_rate, res"):
        dropout_fields("a", CONFIG, "hidden_dropout,resid_drop")


def test_a_family_without_a_field_has_no_dropout() -> None:
    assert dropout_fields("a", {"model_type": "newbert", "width": 3}, "") == ()


def test_a_declaration_for_a_known_family_must_be_the_known_one() -> None:
    config = {"model_type": "qwen3", "attention_dropout": 0.0, "other_dropout": 0.0}
    assert dropout_fields("a", config, "attention_dropout") == ("attention_dropout",)
    with pytest.raises(MtdlabError, match=r"qwen3 are known \(attention_dropout\); remove"):
        dropout_fields("a", config, "other_dropout")


@pytest.mark.parametrize(
    ("config", "width", "message"),
    [
        ({"model_type": "bart", "is_encoder_decoder": True}, True, "'bart' is an encoder with a d"),
        ({"model_type": "gemma3"}, False, "'gemma3' has no hidden_size, .* the text model alone"),
    ],
)
def test_what_is_no_text_encoder_is_refused(
    config: dict[str, Any], width: bool, message: str
) -> None:
    with pytest.raises(MtdlabError, match=message):
        check_kind("a", config, has_width=width)
