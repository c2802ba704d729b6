"""Augmented corpora: line for line their source's, the same in every process; typos."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock, create_autospec

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerBase

from mtdlab.corpus import augmented as module
from mtdlab.corpus.augmented import NEIGHBOURS, AugmentedCorpus, augment, repetition, typos
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.tokens import tokenise
from mtdlab.device import Device
from mtdlab.encoders.loading import load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.settings.augmentation import parse_augmentation
from mtdlab.training import inputs
from mtdlab.training.inputs import check_inputs, load_inputs
from mtdlab.training.loop import train
from tests.conftest import Settings

CPU = Device(torch.device("cpu"), torch.float32)
NOISE = "typos:0.4+repetition:0.32"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of the test's own, on disk and in this process."""
    monkeypatch.setenv("MTDLAB_CACHE", str(tmp_path / "cache"))
    inputs._view_tokens.cache_clear()
    yield tmp_path / "cache"
    inputs._view_tokens.cache_clear()


def augmented(corpus: Path, text: str = NOISE) -> AugmentedCorpus:
    changed = augment(open_corpus(str(corpus)), parse_augmentation(text), CPU)
    assert changed is not None
    return changed


def test_only_what_acts_on_text_makes_another_corpus(tiny_corpus: Path) -> None:
    corpus = open_corpus(str(tiny_corpus))
    for text in ("none", "position-shuffle", "token-cutoff:0.1+feature-cutoff:0.2"):
        assert augment(corpus, parse_augmentation(text), CPU) is None
    mixed = augmented(tiny_corpus, f"token-cutoff:0.1+{NOISE}+position-shuffle")
    assert mixed == augmented(tiny_corpus)
    assert mixed.name == f"{tiny_corpus}, {NOISE}"


def test_a_line_is_the_same_in_every_process_and_chunk(
    tiny_corpus: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "three.txt"
    path.write_text("the old dog sleeps near a house\n" * 3)
    # as another process drew them: this one hashes strings with another seed
    assert list(augmented(path).sentences()) == [
        "the ld dog sleeps near a jouse jouse",
        "th oldd oldd dog sleeps enar a house",
        "the oldd dog sleeps sleeps neear aa house house",
    ]
    mine = list(augmented(tiny_corpus).sentences())
    monkeypatch.setattr(module, "SENTENCES", 7)
    assert list(augmented(tiny_corpus).sentences()) == mine


def test_what_a_line_becomes_depends_on_itself_and_its_number(
    tiny_corpus: Path, tiny_sentences: list[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("\n".join(["something else", *tiny_sentences[1:-1], "the end"]))
    mine, its = (list(augmented(path).sentences()) for path in (tiny_corpus, other))
    assert mine[1:-1] == its[1:-1]
    assert sum(new != old for new, old in zip(mine, tiny_sentences, strict=True)) > 30
    other.write_text("\n".join(["the dog sleeps near the house"] * 50))
    assert len(set(augmented(other).sentences())) > 25


def test_blank_lines_count_for_neither(tmp_path: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    path = tmp_path / "gaps.txt"
    path.write_text("\n the dog \n\t\n\0\na\n\n7\n")
    source, changed = open_corpus(str(path)), augmented(path, "typos:0.9")
    assert list(source.sentences()) == ["the dog", "a", "7"]
    assert len(list(changed.sentences())) == 3
    assert len(tokenise(source, tokenizer, 8)) == len(tokenise(changed, tokenizer, 8)) == 3


def test_a_sentence_of_which_nothing_is_left_stays(
    tiny_corpus: Path, tiny_sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def emptied(sentence: str, *_rest: Any) -> str:
        return " \n" if sentence in tiny_sentences[:3] else "red"

    monkeypatch.setattr(module, "typos", emptied)
    expected = tiny_sentences[:3] + ["red"] * 57
    assert list(augmented(tiny_corpus, "typos:0.1").sentences()) == expected


def test_the_fingerprint_tells_corpus_augmentation_and_model_apart(
    tiny_corpus: Path, tmp_path: Path
) -> None:
    model, copy, other = tmp_path / "model", tmp_path / "copy", tmp_path / "other.txt"
    for folder in (model, copy):
        folder.mkdir()
        (folder / "weights").write_text("one")
    other.write_text("a dog\n")
    noise = ["typos:0.1", "typos:0.2", "repetition:0.1", "typos:0.1+repetition:0.1"]
    named = ["synonyms:a/b", "paraphrase:a/b", "paraphrase:a/c", f"synonyms:{model}"]
    both = ["back-translation:a/b,a/c", "back-translation:a/c,a/b"]
    texts = [*noise, "repetition:0.1+typos:0.1", *named, *both]
    prints = {augmented(tiny_corpus, text).fingerprint for text in texts}
    prints |= {open_corpus(str(tiny_corpus)).fingerprint, augmented(other, texts[0]).fingerprint}
    assert len(prints) == len(texts) + 2
    before = augmented(tiny_corpus, f"synonyms:{model}").fingerprint
    assert augmented(tiny_corpus, f"synonyms:{copy}").fingerprint == before
    (model / "weights").write_text("two")
    assert augmented(tiny_corpus, f"synonyms:{model}").fingerprint != before


def test_run_inputs_hold_the_augmented_tokens(settings_of: Settings, tiny_corpus: Path) -> None:
    both = ("position-shuffle", NOISE)
    plain, changed = (load_inputs(settings_of(augmentation=augmentation)) for augmentation in both)
    assert plain.views == (plain.tokens,)
    assert plain.encoder is changed.encoder
    assert plain.tokens is changed.tokens
    expected = tokenise(augmented(tiny_corpus), plain.encoder.tokenizer, 16)
    online, target = changed.views
    assert target is changed.tokens
    assert np.array_equal(online.ids, expected.ids)
    assert not np.array_equal(online.ids, changed.tokens.ids)
    assert load_inputs(settings_of(augmentation=NOISE, max_length=8)).views[0].ids.shape == (60, 8)


def test_a_study_of_augmentations_loads_its_encoder_once_and_augments_each_once(
    settings_of: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = create_autospec(AugmentedCorpus.sentences, side_effect=AugmentedCorpus.sentences)
    loaded = Mock(side_effect=load_encoder)
    monkeypatch.setattr(AugmentedCorpus, "sentences", read)
    monkeypatch.setattr(inputs, "load_encoder", loaded)
    inputs._load.cache_clear()
    values = ("none", "typos:0.1", "typos:0.2")
    check_inputs(settings_of(), values)
    assert (read.call_count, loaded.call_count) == (2, 1)
    settings = [settings_of(augmentation=value, seed=seed) for seed in (0, 1) for value in values]
    stores = [load_inputs(run).views[0] for run in settings]
    assert (read.call_count, loaded.call_count) == (2, 2)
    assert stores[:3] == stores[3:]
    assert len({store.fingerprint for store in stores}) == 3


def test_a_missing_model_is_said_before_anything_is_trained(
    settings_of: Settings, cache: Path
) -> None:
    for name, more in (("synonyms", ""), ("paraphrase", ""), ("back-translation", ",b")):
        said = f"^{name} model no/model: neither a folder here nor in"
        for act in (check_inputs, load_inputs):
            with pytest.raises(MtdlabError, match=said):
                act(settings_of(augmentation=f"{name}:no/model{more}"))
    assert not list((cache / "tokens").glob(".*building-*"))


def test_a_run_learns_from_augmented_text(settings_of: Settings) -> None:
    def losses(augmentation: str) -> list[float]:
        settings = settings_of(augmentation=augmentation, steps=4)
        return list(train(settings, load_inputs(settings), lambda *_: None).curve["loss"])

    changed = losses(NOISE)
    assert changed == losses(NOISE)
    assert changed != losses("none")
    assert np.isfinite(changed).all()


WORDS = "the old dog sleeps near a small happy house and 3 children sing".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("key", "beside"), [("g", "tyfhvb"), ("q", "12wa"), ("p", "0ol"), ("m", "jkn"), ("1", "2q")]
)
def test_neighbours_of_a_key(key: str, beside: str) -> None:
    assert sorted(NEIGHBOURS[key]) == sorted(beside)


def test_neighbours_are_each_others() -> None:
    assert all(key in NEIGHBOURS[other] for key in NEIGHBOURS for other in NEIGHBOURS[key])


def _possible(word: str) -> set[str]:
    """Every way to mistype a word in one character, kind by kind."""
    found = set()
    for place, letter in enumerate(word):
        found.add(word[:place] + 2 * letter + word[place + 1 :])
        found.add(word[:place] + word[place + 1 :])
        found.update(
            word[:place] + (key.upper() if letter.isupper() else key) + word[place + 1 :]
            for key in NEIGHBOURS.get(letter.lower(), "")
        )
        found.add(word[:place] + word[place + 1 : place + 2] + letter + word[place + 2 :])
    return found - {word, ""}


@pytest.mark.parametrize("word", ["cat", "All", "ok", "a", "7", "é", "東京", "x.", "oo"])
def test_a_typo_is_any_of_the_possible_and_nothing_else(word: str) -> None:
    drawn = {typos(word, 1.0, Random(seed)) for seed in range(3000)}
    assert drawn == _possible(word)


def test_typos_reach_their_share_of_words_and_leave_the_spaces() -> None:
    sentence = "  ".join(WORDS)
    changed: Counter[str] = Counter()
    for seed in range(2000):
        new = typos(sentence, 0.2, Random(seed)).split("  ")
        changed.update(old for old, word in zip(WORDS, new, strict=True) if old != word)
    # 2000 draws of 0.2 have a standard deviation of 0.009
    assert all(0.16 < changed[word] / 2000 < 0.24 for word in WORDS)


def test_repetition_doubles_words_in_place() -> None:
    assert {repetition("the old  dog", 0.5, Random(seed)) for seed in range(200)} == {
        "the old dog",
        "the the old dog",
        "the old old dog",
        "the old dog dog",
        "the the old old dog",
        "the the old dog dog",
        "the old old dog dog",
    }


def _doubled(old: list[str], new: list[str]) -> list[bool]:
    """Which words of `old`, all different, stand twice in `new`; fails for anything else."""
    counts = Counter(new)
    assert new == [word for word in old for _ in range(counts[word])]
    assert set(counts.values()) <= {1, 2}
    return [counts[word] == 2 for word in old]


def test_the_number_repeated_is_uniform_up_to_the_share() -> None:
    numbers, places = Counter[int](), Counter[int]()
    for seed in range(4000):
        doubled = _doubled(WORDS, repetition(" ".join(WORDS), 0.32, Random(seed)).split())
        numbers[sum(doubled)] += 1
        places.update(place for place, twice in enumerate(doubled) if twice)
    # 13 words: 0 to 4 of them, 800 times each, give or take 25; 2 on average, so 615 a place
    assert set(numbers) == {0, 1, 2, 3, 4}
    assert all(abs(count - 800) < 125 for count in numbers.values())
    assert all(abs(count - 4000 * 2 / 13) < 125 for count in places.values())


@pytest.mark.parametrize(("sentence", "most"), [("one", 1), ("one two", 2), ("a b c d e", 2)])
def test_a_short_sentence_repeats_up_to_two_words(sentence: str, most: int) -> None:
    words = sentence.split()
    counts = {
        sum(_doubled(words, repetition(sentence, 0.32, Random(seed)).split())) for seed in range(99)
    }
    assert counts == set(range(most + 1))
