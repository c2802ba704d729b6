"""Corpora of pairs: what is read, left out or refused, and what a step then reads."""

import gzip
from pathlib import Path
from random import Random

import pandas as pd
import pytest
import torch
from transformers import PreTrainedTokenizerBase

from mtdlab.config.paths import Places, resolve_paths
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.lines import Tally
from mtdlab.corpus.survey import count_repeats, survey
from mtdlab.corpus.tokens import tokenise
from mtdlab.errors import MtdlabError
from mtdlab.methods.base import View
from mtdlab.methods.registry import find_method
from mtdlab.training.inputs import check_inputs, load_inputs
from mtdlab.training.loop import train
from tests.conftest import WORDS, Settings
from tests.corpus.conftest import Write

PAIRS = [("a dog runs", "the dog walks"), ("a cat sleeps", "the cat"), ("red house", "old house")]
BOTH = {"mocose": {}, "simcse": {}, "esimcse": {"queue_size": 20}, "mixcse": {}, "consert": {}}
BOTH["hicl"] = {"segment_length": 4}


def lines_of(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{anchor}\t{positive}\n" for anchor, positive in pairs)


def opened(path: str, columns: str = "") -> list[tuple[str, ...]]:
    sides = open_corpus(f"pairs:{path}{columns}").sides()
    return list(zip(*(side.sentences() for side in sides), strict=True))


@pytest.fixture
def many(write: Write) -> str:
    """A corpus of 40 pairs whose two sides differ."""
    random = Random(0)
    texts = [" ".join(random.choices(WORDS, k=random.randint(3, 9))) for _ in range(80)]
    return f"pairs:{write(lines_of(list(zip(texts[::2], texts[1::2], strict=True))))}"


def test_a_file_of_two_columns(write: Write) -> None:
    plain = write("\ufeff" + lines_of(PAIRS))
    packed = write(gzip.compress(lines_of(PAIRS).replace("\n", "\r\n").encode()), "pairs.tsv.gz")
    assert opened(plain) == opened(packed) == PAIRS


def test_named_columns_of_a_header(write: Write) -> None:
    path = write("id\tanswer\tquestion\n1\tyes\tdoes it\n2\tno\tis it\n")
    named = opened(path, "#question,answer")
    assert named == [("does it", "yes"), ("is it", "no")]
    assert opened(path, "#answer,question") == [pair[::-1] for pair in named]


@pytest.mark.parametrize("columns", [("anchor", "positive"), ("query", "passage")])
def test_parquet(tmp_path: Path, columns: tuple[str, str]) -> None:
    path = tmp_path / "pairs.parquet"
    frame = pd.DataFrame([*PAIRS, ("only one", None)], columns=columns)
    frame.assign(number=1).to_parquet(path)
    assert opened(str(path), "" if columns[0] == "anchor" else "#query,passage") == PAIRS


def test_pairs_without_one_of_the_texts_are_left_out_and_counted(
    write: Write, tokenizer: PreTrainedTokenizerBase
) -> None:
    path = write("\tno anchor\n\n" + lines_of(PAIRS) + "no positive\t\u200b\nzero\t\0\n")
    assert opened(path) == PAIRS
    for side in open_corpus(f"pairs:{path}").sides():
        assert len(tokenise(side, tokenizer, 8)) == len(PAIRS)
    said = count_repeats(open_corpus(f"pairs:{path}"))[2]
    assert "pairs without one of the texts left out: 3" in said
    assert "blank lines left out: 1 of 7" in said


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a\tb\nonly one\n", "", r"pairs.tsv:2: 1 columns separated by tabs, not 2; a pair is"),
        ("a\tb\n" + 7 * "c\n", "", r"pairs.tsv: 7 lines do not fit, the first 5: .*:2: 1 .*:6: 1"),
        ("a\tb\tc\n", "", r"pairs.tsv:1: 3 columns .* two columns of a header: pairs:FILE#"),
        ("x\ty\na\tb\nc\n", "#x,y", r"pairs.tsv:3: 1 columns separated by tabs, not 2"),
        ("query\ty\na\tb\n", "#qury,y", r"no column 'qury' of text; did you mean query\?"),
        ("a\tb\n", "#x", "not the name of a file of pairs; it is spelled pairs:FILE, or pairs:"),
        ("a\tb\n", "#x,", "not the name of a file of pairs"),
        ("\t\n \t\n", "", "holds no pair of two texts; one is expected a line"),
        ("x" * 200_001 + "\ty\n", "", "the line is longer than 200,000 characters"),
        ("PAR1 and no more", "", "the Parquet file cannot be read: .*; write it again"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    write: Write, text: str, columns: str, message: str
) -> None:
    with pytest.raises(MtdlabError, match=message):
        opened(write(text, "pairs.tsv"), columns)


def test_parquet_without_the_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    pd.DataFrame({"anchor": ["a"], "positive": [1]}).to_parquet(path)
    with pytest.raises(MtdlabError, match=r"no column 'positive' of text; choose from anchor"):
        opened(str(path))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(MtdlabError, match=r"corpus nowhere.tsv: cannot be read: no such file"):
        open_corpus("pairs:nowhere.tsv")


def test_the_fingerprint_is_that_of_content_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("x\ty\na\tb\n")
    names = ["", "#x,y", "#y,x"]
    prints = {open_corpus(f"pairs:{path}{name}").fingerprint for name in names}
    prints |= {side.fingerprint for side in open_corpus(f"pairs:{path}").sides()}
    assert len(prints) == 4
    path.write_text("x\ty\na\tc\n")
    assert open_corpus(f"pairs:{path}").fingerprint not in prints


def test_a_path_is_looked_up_beside_the_study_file(tmp_path: Path, settings_of: Settings) -> None:
    (tmp_path / "my.tsv").write_text(lines_of(PAIRS))
    found = resolve_paths(settings_of(corpus="pairs:my.tsv#x,y"), Places(tmp_path))
    assert found.corpus == f"pairs:{tmp_path / 'my.tsv'}#x,y"


def test_a_survey_counts_the_texts_of_both_sides(write: Write, tiny_encoder: Path) -> None:
    corpus, mine = f"pairs:{write(lines_of(PAIRS))}", {"mine": ["the cat", "no such"]}
    found = survey(corpus, str(tiny_encoder), 4, mine)
    assert (found.lines, found.sentences) == (3, 6)
    assert found.overlaps[0].in_corpus == 1


def test_a_survey_counts_what_is_left_out(write: Write, tiny_encoder: Path) -> None:
    path = write(lines_of(PAIRS) + "\t \n\nx\t\n")
    found = survey(f"pairs:{path}", str(tiny_encoder), 4)
    assert (found.lines, found.blank, found.halves) == (6, 2, 1)


@pytest.mark.parametrize("method", BOTH)
def test_the_online_branch_reads_anchors_and_the_other_positives(
    many: str, settings_of: Settings, method: str
) -> None:
    """Ids of every batch are those of the two texts of the same rows."""
    settings = settings_of(method=method, corpus=many, steps=3, **BOTH[method])
    inputs = load_inputs(settings)
    assert [view.positive for view in find_method(method).views(settings)] == [False, True]
    pairs = list(zip(*(side.sentences() for side in inputs.corpus.sides()), strict=True))
    texts = inputs.encoder.tokenizer.batch_decode
    order = inputs.batches(8, seed=0)
    rows = inputs.batches(8, seed=0).next_rows()
    read = [texts(ids, skip_special_tokens=True) for ids, _ in next(order)]
    assert read == [list(side) for side in zip(*(pairs[row] for row in rows), strict=True)]
    outcome = train(settings, inputs)
    assert torch.isfinite(torch.tensor(outcome.curve["loss"])).all()


def test_an_augmentation_changes_the_branch_that_it_names(settings_of: Settings) -> None:
    for branch, expected in (("online", ("typos:0.1", "none")), ("target", ("none", "typos:0.1"))):
        settings = settings_of(
            corpus="pairs:x.tsv", augmentation="typos:0.1", augmented_branch=branch
        )
        views = find_method("mocose").views(settings)
        assert [view.positive for view in views] == [False, True]
        assert tuple(view.augmentation for view in views) == expected
    assert find_method("mocose").views(settings_of()) == (View(),)


def test_pairs_train_otherwise_than_their_anchors_alone(
    many: str, settings_of: Settings, tmp_path: Path
) -> None:
    anchors = tmp_path / "anchors.txt"
    anchors.write_text("\n".join(open_corpus(many).sentences()) + "\n")
    pairs, alone = (settings_of(corpus=corpus) for corpus in (many, str(anchors)))
    losses = [train(settings, load_inputs(settings)).curve["loss"] for settings in (pairs, alone)]
    assert not torch.equal(*map(torch.tensor, losses))


@pytest.mark.parametrize("method", ["sncse", "contriever"])
def test_methods_of_a_single_text_refuse_pairs(
    many: str, settings_of: Settings, method: str
) -> None:
    settings = settings_of(method=method, corpus=many)
    with pytest.raises(MtdlabError, match=f"method {method} makes its views of a single text"):
        check_inputs(settings)


def test_the_corpus_says_that_it_holds_pairs(many: str) -> None:
    corpus = open_corpus(many)
    assert corpus.unit == "pairs"
    tally = Tally()
    assert len(list(corpus.sentences(tally))) == 40
    assert tally.done == tally.total > 0
