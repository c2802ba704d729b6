"""Graded pairs as people have them, and their scores: against SciPy, batches, and by hand."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from mtdlab.encoders import embed
from mtdlab.encoders.loading import Encoder
from mtdlab.encoders.pooling import encode
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.evaluation.pairs import (
    Pairs,
    describe_pairs,
    load_pairs,
    load_scored,
    load_splits,
)
from mtdlab.evaluation.suite import StsTask
from mtdlab.settings import Pooling, Representation
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from mtdlab.training.present import check_input
from mtdlab.trial.environment import environment_of
from tests.conftest import Settings
from tests.evaluation.conftest import SHARED, embedder_of

GOOD = "g\tf\ty\t0001\t5.000\ta dog .\ta dog runs .\n"
OTHER = "g\tf\ty\t0002\t1.000\ta cat .\ta dog runs .\n"
DEV = "eine Katze\tein Hund\t0.5\nein Satz\tnoch ein Satz\t3,5\na\tb\t2\n"
GLUE = "index\tsentence1\tsentence2\tscore\n0\ta dog .\ta dog runs .\t5.000\n"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tlabel\n6\ta dog .\ta dog runs .\t5\tX\n"
TRANSFORMERS = "split\tsid\tscore\tsentence1\tsentence2\ndev\t1\t5.0\ta dog .\ta dog runs .\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sts-dev.csv"


def test_columns_5_to_7_are_score_and_sentences(file: Path) -> None:
    row = 'g\tf\ty\t2\t0.25\tHe said "no .\tna\u00efve\u2028\x85 one\textra\n'
    file.write_text(GOOD + row + GOOD)
    pairs = load_pairs(str(file.parent), "dev")
    assert pairs.first == ["a dog .", 'He said "no .', "a dog ."]
    assert pairs.second == ["a dog runs .", "na\u00efve one", "a dog runs ."]
    assert pairs.gold.tolist() == [5, 0.25, 5]


def test_windows_line_ends_and_no_end_at_all(file: Path) -> None:
    file.write_bytes((GOOD + OTHER + GOOD).replace("\n", "\r\n").encode().rstrip())
    assert load_pairs(str(file.parent), "dev").second[::2] == ["a dog runs ."] * 2


def test_a_pair_without_a_score_is_left_out(file: Path) -> None:
    file.write_text(GOOD + GOOD.replace("5.000", "") + OTHER + GOOD)
    assert load_pairs(str(file.parent), "dev").gold.tolist() == [5, 1, 5]


@pytest.fixture
def own(tmp_path: Path, tiny_sentences: list[str]) -> Path:
    """24 dev and 24 test pairs with scores from 0 to 1."""
    for split, first in (("dev", 0), ("test", 24)):
        some = tiny_sentences[first : first + 25]
        rows = [f"{some[i]}\t{some[i + 1]}\t{i / 24}\n" for i in range(24)]
        (tmp_path / f"{split}.tsv").write_text("".join(rows))
    return tmp_path


def test_each_file_of_ones_own_is_a_split_with_sentence_sentence_score(own: Path) -> None:
    (own / "dev.tsv").write_text(DEV.replace("3,5", "3.5"), encoding="utf-8")
    pairs = load_pairs(str(own), "dev")
    assert (pairs.first, pairs.second) == (
        ["eine Katze", "ein Satz", "a"],
        ["ein Hund", "noch ein Satz", "b"],
    )
    assert pairs.gold.tolist() == [0.5, 3.5, 2]
    assert len(load_pairs(str(own), "test")) == 24


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("sts-dev.csv", GOOD + "g\tf\ty\t1\t5\tone\n" + GOOD, ":2: 6 columns; 7 are needed"),
        ("sts-dev.csv", GOOD * 2 + GOOD.replace("5.000", "high"), ":3: 'high' is no score"),
        ("sts-dev.csv", GOOD * 2 + GOOD.replace("5.000", "inf"), ":3: 'inf' is no score"),
        ("sts-dev.csv", GOOD, ": 1 scored pairs; at least 2 are needed"),
        ("sts-dev.csv", "", ": is empty; fetch it again"),
        ("sts-dev.csv", GOOD.replace("5.000", ""), ": 0 scored pairs; at least 2 are needed"),
        ("dev.tsv", DEV, r":2: '3,5' is no score; .* is needed; write a decimal point$"),
        (
            "dev.tsv",
            "a\tb\t1\n" + "a\tb\n" * 4 + "a\tb\thigh\n" * 2,
            r": 6 lines do not fit, the first 5: .*:2: 2 columns; .*:6: 'high' is no score[^\n]*$",
        ),
        ("dev.tsv", "a\tb\t1\tc\n" * 3, r":1: 4 columns \('a', 'b', '1', 'c'\) are no first"),
        ("dev.tsv", GLUE.replace("\tscore", ""), ":1: 3 columns .* there is no score; keep"),
        ("dev.tsv", "first\tsecond\tscore\n", ":1: 'score' is no score; .*; a header line is not"),
        ("dev.tsv", "text 1\ttext 2\tgold score\n" + DEV[-6:], ":1: .*; a header line is not"),
        (
            "dev.tsv",
            "a cat\tb\thigh\nc\td\tlow\n",
            r": 2 lines .*: 'high' [^;]*; [^;]* needed; eval",
        ),
        ("dev.tsv", "a cat\tb\t3,5\nc\td\t2\n", r":1: '3,5' [^;]*; [^;]*; write a decimal point$"),
        ("dev.tsv", "a cat\tb\t9e99\nc\td\t2\n", r":1: '9e99' is no score; [^;]* is needed$"),
        ("dev.tsv", "a\tb\n", ":1: 2 columns; 3 are needed, separated by tabs"),
        ("dev.tsv", "a\tb\t1\n", ": 1 scored pairs; at least 2 are needed"),
        ("dev.tsv", "a\tb\t1\nc\td\t2\n", ": no encoder .* its 2 pairs; at least 3 are"),
        (
            "dev.tsv",
            "a\tb\t2\nc\td\t2\ne\tf\t2\n",
            ": no encoder .* 3 pairs; .* whose scores",
        ),
        ("dev.tsv", "a\tb\t1\nb\ta\t2\na\tb\t3\n", ": no encoder .* 3 pairs; .* sentences differ"),
        ("dev.tsv", "a\ta\t1\nb\tb\t2\nc\tc\t3\n", ": no encoder .* not a sentence with itself"),
    ],
)
def test_what_does_not_fit_is_pointed_at(
    tmp_path: Path, name: str, rows: str, message: str
) -> None:
    (tmp_path / name).write_text(rows)
    with pytest.raises(MtdlabError, match=re.escape(name) + message):
        load_pairs(str(tmp_path), "dev")


@pytest.mark.parametrize(
    "text", [GLUE, SICK, TRANSFORMERS, GOOD.replace("g\t", "main-captions\t", 1)]
)
@pytest.mark.parametrize("name", ["dev.tsv", "sts-dev.csv"])
def test_a_known_layout_is_read_whatever_the_file_is_called(
    tmp_path: Path, text: str, name: str
) -> None:
    head, row = text.splitlines()[:-1], text.splitlines()[-1]
    rows = [row, row.replace("a dog .", "a cat ."), row.replace("5", "1")]
    (tmp_path / name).write_text("\n".join([*head, *rows]) + "\n")
    pairs = load_pairs(str(tmp_path), "dev")
    assert pairs.first == ["a dog .", "a cat .", "a dog ."]
    assert pairs.second == ["a dog runs ."] * 3
    assert pairs.gold.tolist() == [5, 5, 1]


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no published pairs at {SHARED}")
@pytest.mark.parametrize(
    ("published", "count"),
    [("STS/STSBenchmark/sts-dev.csv", 1500), ("SICK/SICK_trial.txt", 500)],
)
def test_published_pairs_are_read_under_the_name_of_ones_own(
    tmp_path: Path, published: str, count: int
) -> None:
    (tmp_path / "dev.tsv").write_bytes((SHARED / published).read_bytes())
    assert len(load_pairs(str(tmp_path), "dev")) == count


def test_what_is_left_out_is_counted_by_one_rule(tmp_path: Path) -> None:
    left = ["a\tb\t", "a\tb\tNA", "a\tb\tnan", "a\t\t1", "\u200b\tb\t2", "", " \ufeff"]
    rows = ["a\tb\t1", "a\tNA\t2", "a\td\t3", *left]
    (tmp_path / "dev.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    pairs = load_pairs(str(tmp_path), "dev")
    assert pairs.second == ["b", "NA", "d"]
    assert pairs.left_out == (
        "7 of 10 lines left out: 3 without a score, 2 without one of the sentences, 2 blank"
    )


def test_missing_and_unreadable_files(file: Path) -> None:
    with pytest.raises(MtdlabError, match=r"sts-dev.csv: cannot be read: .*give a folder"):
        load_pairs(str(file.parent), "dev")
    with pytest.raises(MtdlabError, match=r"sts-test.csv: cannot be read: "):
        load_pairs(str(file.parent), "test")
    with pytest.raises(MtdlabError, match="cannot be read: "):
        load_pairs("a\0b", "dev")
    file.write_bytes(GOOD.encode() + b"\xff\n")
    with pytest.raises(MtdlabError, match=r"sts-dev.csv:2: holds byte 0xff; save it as UTF-8"):
        load_pairs(str(file.parent), "dev")


def test_the_builtin_pairs_are_another_for_each_split() -> None:
    dev, test = load_pairs("builtin", "dev"), load_pairs("builtin", "test")
    assert not set(dev.first + dev.second) & set(test.first + test.second)
    assert len(dev.first) == len(dev.second) == len(dev.gold)


def test_both_files_are_needed(own: Path) -> None:
    (own / "test.tsv").unlink()
    with pytest.raises(MtdlabError, match=r"test\.tsv: cannot be read: .* dev\.tsv and test\.tsv"):
        load_pairs(str(own), "test")


def test_a_run_is_chosen_on_dev_and_reported_on_test(own: Path, settings_of: Settings) -> None:
    settings = settings_of(evaluation=str(own))
    inputs = load_inputs(settings)
    outcome = train(settings, inputs, lambda *_: None)
    scores = outcome.after.by_name()
    curve = outcome.curve["score"]
    assert scores["sts_dev"] == pytest.approx(curve[outcome.best_step - 1], abs=1e-3)
    assert scores["sts_test"] != scores["sts_dev"]
    described = environment_of(settings, inputs).evaluation
    assert str(described) == f"{own}: 24 dev pairs (sts_dev) and 24 test pairs (sts_test)"


@pytest.fixture
def pairs(tiny_pairs: Path) -> Pairs:
    return load_pairs(str(tiny_pairs), "dev")


@pytest.fixture
def task(pairs: Pairs, encoder: Encoder) -> StsTask:
    return StsTask(pairs, encoder)


def toy_task(encoder: Encoder) -> StsTask:
    """a-b, a-c and b-c of three sentences; vectors come in the order a, b, c."""
    gold = np.array([1.0, 5.0, 3.0])
    return StsTask(Pairs(["dog", "bird", "dog"], ["cat", "dog", "cat"], gold), encoder)


def test_each_distinct_sentence_is_encoded_once(task: StsTask, pairs: Pairs) -> None:
    distinct = {*pairs.first, *pairs.second}
    assert len(task.sentences) == len(distinct) < 2 * len(pairs.first)
    ordered = sorted(distinct)
    assert [ordered[at] for at in task.first] == pairs.first
    assert [ordered[at] for at in task.second] == pairs.second


def test_the_score_is_scipys_spearman_of_cosines(pairs: Pairs, encoder: Encoder) -> None:
    # a sentence with itself has cosine 1 but for rounding, which would break the ties
    keep = [at for at, first in enumerate(pairs.first) if first != pairs.second[at]]
    chosen = Pairs(
        [pairs.first[at] for at in keep], [pairs.second[at] for at in keep], pairs.gold[keep]
    )
    task = StsTask(chosen, encoder)
    vectors = task.embed(embedder_of(encoder)).astype(np.float64)
    cosines = [
        float(vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]))
        for a, b in zip(task.first, task.second, strict=True)
    ]
    expected = 100 * spearmanr(cosines, task.gold).statistic
    assert task.evaluate(vectors.astype(np.float32)).score == pytest.approx(expected, abs=1e-6)


def test_a_score_by_hand(encoder: Encoder) -> None:
    """Cosines .8, 0, .8 (bird-dog is 0) against gold 1, 5, 3: ranks 2.5, 1, 2.5 and 1, 3, 2."""
    vectors = np.array([[0, 2], [3, 4], [5, 0]], dtype=np.float32)  # bird, cat, dog
    task = toy_task(encoder)
    assert (task.first.tolist(), task.second.tolist()) == ([2, 0, 2], [1, 2, 1])
    evaluation = task.evaluate(vectors)
    assert evaluation.score == pytest.approx(-100 * np.sqrt(3) / 2)
    assert evaluation.alignment == pytest.approx(2)
    assert evaluation.mean_cosine == pytest.approx((0.8 + 0.6 + 0) / 3)


def test_a_constant_embedding_has_no_score(encoder: Encoder) -> None:
    task = toy_task(encoder)
    evaluation = task.evaluate(np.ones((3, 4), dtype=np.float32))
    assert np.isnan(evaluation.score)
    assert evaluation.mean_cosine == pytest.approx(1)
    nearly = 1 + 1e-5 * np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    assert np.isnan(task.evaluate(nearly.astype(np.float32)).score)


def test_a_constant_gold_has_no_score_and_no_positive_no_alignment(encoder: Encoder) -> None:
    task = toy_task(encoder)
    task.gold = np.full(3, 2.0)
    evaluation = task.evaluate(np.eye(3, dtype=np.float32) + 0.1)
    assert np.isnan(evaluation.score)
    assert np.isnan(evaluation.alignment)
    assert np.isfinite(evaluation.uniformity)


def test_vectors_that_are_not_finite_end_the_trial(task: StsTask, encoder: Encoder) -> None:
    with torch.no_grad():
        list(encoder.model.parameters())[-1][0] = float("nan")
    with pytest.raises(TrialError, match="sentence vectors are not finite"):
        task.embed(embedder_of(encoder))


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_batches_do_not_change_vectors(
    task: StsTask,
    encoder: Encoder,
    pairs: Pairs,
    pooling: Pooling,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batched = []
    for tokens in (1, 40, 200):
        monkeypatch.setattr(embed, "TOKENS_PER_BATCH", tokens)
        batched.append(task.embed(embedder_of(encoder, pooling)))
    encoder.model.eval()
    for row, sentence in enumerate(sorted({*pairs.first, *pairs.second})):
        batch = encoder.tokenizer(sentence, return_tensors="pt")
        with torch.no_grad():
            ids, mask = batch["input_ids"], batch["attention_mask"]
            words = encoder.model.get_input_embeddings()(ids)
            [one] = encode(encoder.model, mask, Representation(pooling), inputs_embeds=words)
            alone = one.numpy()
        for vectors in batched:
            assert np.abs(vectors[row] - alone).max() < 1e-5


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_batches_hold_every_row_once_and_no_more_than_fits(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TOKENS_PER_BATCH", size)
    lengths = np.random.default_rng(0).integers(3, 30, 50).tolist()
    order = np.argsort(lengths, kind="stable")
    batches = embed.batches(order, lengths)
    assert np.concatenate(batches).tolist() == order.tolist()
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= size
    assert len(batches) < 50 or size < 64


@pytest.mark.parametrize("training", [True, False])
def test_the_models_mode_is_kept_and_dropout_is_off(
    task: StsTask, encoder: Encoder, training: bool
) -> None:
    encoder.model.train(training)
    first = task.embed(embedder_of(encoder))
    assert encoder.model.training is training
    assert np.array_equal(first, task.embed(embedder_of(encoder)))


def test_long_sentences_are_cut(pairs: Pairs, encoder: Encoder) -> None:
    sentences = embed.Sentences(pairs.first, encoder.tokenizer, 4)
    assert {len(tokens) for tokens in sentences.tokens} == {4}


def test_equal_splits_are_refused(own: Path) -> None:
    rows = [line.split("\t") for line in (own / "dev.tsv").read_text().splitlines()]
    exchanged = [f"{second.upper()} .\t{first}\t{score}" for first, second, score in rows]
    (own / "test.tsv").write_text("\n".join(exchanged) + "\n")
    with pytest.raises(MtdlabError, match="each of its 24 test pairs is a dev pair too"):
        load_splits(str(own))
    with pytest.raises(MtdlabError, match="each of its 24 test pairs is a dev pair too"):
        check_input("evaluation", str(own))


def test_pairs_in_both_splits_are_counted(own: Path, settings_of: Settings) -> None:
    dev = (own / "dev.tsv").read_text().splitlines(keepends=True)
    others = [f"another {at}\tone {at}\t{at}\n" for at in range(20)]
    (own / "test.tsv").write_text("".join([*dev[:4], *others, "a\tb\t\n"]))
    assert describe_pairs(str(own)) == [
        f"evaluation {own}: test pairs: 1 of 25 lines left out: 1 without a score",
        f"evaluation {own}: 4 of 24 test pairs are dev pairs too, on which checkpoints are chosen, "
        "so that sts_test is too high",
    ]
    settings = settings_of(evaluation=str(own))
    described = environment_of(settings, load_inputs(settings)).evaluation
    assert described is not None
    assert (described.shared, [*described.left_out]) == (4, ["test"])


def test_the_built_in_splits_share_nothing() -> None:
    assert describe_pairs("builtin") == []


def test_a_score_is_computed_from_its_split_or_its_task() -> None:
    found = [load_scored(score, "builtin").digest for score in ("sts_dev", "sts_test", "builtin")]
    dev, test = (load_pairs("builtin", split).digest for split in ("dev", "test"))
    assert found == [dev, test, test]
