"""Negation of sentences by rules, case by case."""

import pytest
import torch

from mtdlab.corpus.augmented import augment
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.negation import negate
from mtdlab.device import Device
from mtdlab.methods.registry import make_settings
from mtdlab.settings.augmentation import parse_augmentation
from tests.corpus.conftest import Write


@pytest.mark.parametrize(
    ("sentence", "negated"),
    [
        # after the first auxiliary
        ("The girl is eating.", "The girl is not eating."),
        ("It was said that she can swim.", "It was not said that she can swim."),
        ("Is, perhaps, so", "Is, not perhaps, so"),
        ("They have quickly eaten it.", "They have not quickly eaten it."),
        ("The rabbit did stroll.", "The rabbit did not stroll."),
        # a form of do
        ("The cook boiled the coffee.", "The cook did not boil the coffee."),
        ("The man grabbed it.", "The man did not grab it."),
        ("The pupil studied.", "The pupil did not study."),
        ("The dog chased the cat.", "The dog did not chase the cat."),
        ("The club promoted him.", "The club did not promote him."),
        ("The man quoted it.", "The man did not quote it."),
        ("The crew pivoted.", "The crew did not pivot."),
        ("I heard a dog.", "I did not hear a dog."),
        ("She has a dog.", "She does not have a dog."),
        ("He watches it.", "He does not watch it."),
        ("A man, who carries it,", "A man, who does not carry it,"),
        # no verb, or a participle before a noun
        ("Blue sky", "Not Blue sky"),
        ("The painted wall", "Not The painted wall"),
        ("Painted by hand", "Not Painted by hand"),
        # a negation is removed
        ("It is not true.", "It is true."),
        ("I don't know.", "I do know."),
        ("He can't swim, or won't.", "He can swim, or won't."),
        ("not", ""),
    ],
)
def test_a_sentence_is_negated(sentence: str, negated: str) -> None:
    assert negate(sentence) == negated


@pytest.mark.parametrize(
    ("sentence", "negated"),
    [
        ("It isn't true.", "It is not n't true."),
        ("He can't swim, or won't.", "He ca not n't swim, or won't."),
        ("It is not true.", "It is true."),
        ("It cannot be.", "It can be."),
        ("She has a dog.", "She does not have a dog."),
    ],
)
def test_a_contraction_that_is_kept_gets_a_not(sentence: str, negated: str) -> None:
    assert negate(sentence, keeping=True) == negated


def test_a_negated_corpus_has_a_line_per_line_and_its_own_fingerprint(write: Write) -> None:
    source = open_corpus(write("A dog is here.\nnot\nBlue sky\n"))
    cpu = Device(torch.device("cpu"), torch.float32)
    negated = augment(source, parse_augmentation("negation"), cpu)
    assert negated is not None
    # a change that leaves nothing is undone
    assert list(negated.sentences()) == ["A dog is not here.", "not", "Not Blue sky"]
    assert negated.fingerprint != source.fingerprint


def test_negation_is_refused_as_an_augmentation_of_a_study() -> None:
    with pytest.raises(ValueError, match="negation reverses the meaning of a sentence"):
        make_settings(method="simcse", augmentation="typos:0.1+negation")
