"""Graded pairs of a user's own: a folder with dev.tsv and test.tsv."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import load_pairs
from mtdlab.sweep.environment import environment
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train

DEV = "eine Katze\tein Hund\t0.5\nein Satz\tnoch ein Satz\t3,5\na\tb\t2\n"


@pytest.fixture
def own(tmp_path: Path, tiny_sentences: list[str]) -> Path:
    """24 dev and 24 test pairs with scores from 0 to 1."""
    for split, first in (("dev", 0), ("test", 24)):
        some = tiny_sentences[first : first + 25]
        rows = [f"{some[i]}\t{some[i + 1]}\t{i / 24}\n" for i in range(24)]
        (tmp_path / f"{split}.tsv").write_text("".join(rows))
    return tmp_path


def test_each_file_is_a_split_with_sentence_sentence_score(own: Path) -> None:
    (own / "dev.tsv").write_text(DEV.replace("3,5", "3.5"), encoding="utf-8")
    pairs = load_pairs(str(own), "dev")
    assert (pairs.first, pairs.second) == (
        ["eine Katze", "ein Satz", "a"],
        ["ein Hund", "noch ein Satz", "b"],
    )
    assert pairs.gold.tolist() == [0.5, 3.5, 2]
    assert len(load_pairs(str(own), "test")) == 24


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (DEV, r"dev\.tsv:2: '3,5' is no score; a finite number is needed$"),
        ("first\tsecond\tscore\n", r"dev\.tsv:1: 'score' is no score; .*; a header line is not"),
        ("a\tb\n", r"dev\.tsv:1: 2 columns; 3 are needed, separated by tabs"),
        ("a\t\t1\n", r"dev\.tsv:1: holds an empty sentence"),
        ("a\tb\t1\n", r"dev\.tsv: 1 scored pairs; at least 2 are needed"),
        ("a\tb\t1\nc\td\t2\n", r"dev\.tsv: all 2 pairs are too few; at least 3 are needed"),
        ("a\tb\t2\nc\td\t2\ne\tf\t2\n", r"dev\.tsv: all 3 pairs have the score 2; scores must"),
        ("a\tb\t1\nb\ta\t2\na\tb\t3\n", r"dev\.tsv: all 3 pairs are the same two sentences"),
        ("a\ta\t1\nb\tb\t2\nc\tc\t3\n", r"dev\.tsv: all 3 pairs are a sentence with itself"),
    ],
)
def test_a_mistake_is_named_by_file_and_line(own: Path, content: str, message: str) -> None:
    (own / "dev.tsv").write_text(content)
    with pytest.raises(MtdlabError, match=message):
        load_pairs(str(own), "dev")


def test_both_files_are_needed(own: Path) -> None:
    (own / "test.tsv").unlink()
    with pytest.raises(MtdlabError, match=r"test\.tsv: cannot be read: .* dev\.tsv and test\.tsv"):
        load_pairs(str(own), "test")


def test_a_run_is_chosen_on_dev_and_reported_on_test(
    own: Path, settings_of: Callable[..., Any]
) -> None:
    settings = settings_of(evaluation=str(own))
    inputs = load_inputs(settings)
    outcome = train(settings, inputs, lambda _step, _evaluation: None)
    scores = outcome.all_scores()
    curve = outcome.curve["score"]
    assert scores["sts_dev"] == pytest.approx(curve[outcome.best_step - 1], abs=1e-3)
    assert scores["sts_test"] != scores["sts_dev"]
    described = environment(settings, inputs)["evaluation"]
    assert described == f"{own}: 24 dev pairs (sts_dev) and 24 test pairs (sts_test)"
