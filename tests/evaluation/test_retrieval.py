"""nDCG@10 on folders in BEIR's layout: an oracle of trec_eval's rules, ties, and damaged files."""

import json
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import numpy as np
import pytest

from mtdlab.config.reader import parse_study
from mtdlab.config.source import SpecError
from mtdlab.encoders.loading import Encoder, load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.retrieval import RetrievalTask, ndcg, rank_documents, read_folder
from mtdlab.training.inputs import check_inputs, load_inputs
from mtdlab.training.loop import train
from tests.conftest import WORDS, Settings
from tests.evaluation.conftest import embedder_of

Write = Callable[..., Path]
CORPUS = {"d1": "a dog runs", "d2": "a cat sleeps", "d3": "the red house", "d4": "a bird sings"}
QUERIES = {"q1": "dog", "q2": "cat", "q3": "house", "q4": "bird"}
JUDGED = {
    "dev": [("q1", "d1", 1), ("q2", "d2", 2)],
    "test": [("q3", "d3", 1), ("q4", "d4", 2), ("q4", "d1", 1)],
}


def lines_of(texts: Mapping[str, str], **more: str) -> str:
    rows = ({"_id": name, "text": text, **more} for name, text in texts.items())
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(folder: Path, **changed: str) -> Path:
    """A folder in BEIR's layout; `changed` replaces files by name: corpus, queries, dev, test."""
    texts = {"corpus": lines_of(CORPUS), "queries": lines_of(QUERIES)} | {
        split: "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{r}\n" for q, d, r in rows)
        for split, rows in JUDGED.items()
    }
    (folder / "qrels").mkdir(parents=True)
    for name, text in (texts | changed).items():
        suffix = f"{name}.jsonl" if name in ("corpus", "queries") else f"qrels/{name}.tsv"
        if text:
            (folder / suffix).write_text(text)
    return folder


def oracle(judged: Mapping[str, int], scores: Mapping[str, float]) -> float:
    """trec_eval's ndcg_cut_10, slowly: by similarity, then by id, both descending."""
    order = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
    gained = 0.0
    for place in range(min(10, len(order))):
        relevance = judged.get(order[place], 0)
        if relevance > 0:
            gained += relevance / (math.log(place + 2) / math.log(2))
    best, place = 0.0, 0
    for relevance in sorted(judged.values(), reverse=True):
        if relevance > 0 and place < 10:
            best += relevance / (math.log(place + 2) / math.log(2))
            place += 1
    return gained / best if best else 0.0


def test_against_the_oracle() -> None:
    """Random vectors with ties, graded judgments, negative ones, and queries without any hit."""
    random = np.random.default_rng(0)
    ids = np.array([f"d{number}" for number in range(40)])
    documents = random.standard_normal((40, 3)).astype(np.float32)
    documents[10:20] = documents[:10]
    queries = random.standard_normal((30, 3)).astype(np.float32)
    names = [f"q{number}" for number in range(29)] + ["d5"]
    unit = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    found = dict(rank_documents(queries, documents, names, ids))
    values = []
    lengths = np.linalg.norm(queries, axis=1, keepdims=True)
    for name, query in zip(names, queries / lengths, strict=True):
        judged = {str(document): int(random.integers(-1, 4)) for document in random.choice(ids, 6)}
        cosines = np.float32(unit.astype(np.float64) @ query.astype(np.float64))
        # the document of the query's own id is no result
        scores = {
            document: float(c) for document, c in zip(ids, cosines, strict=True) if document != name
        }
        values.append(ndcg(judged, found[name]))
        assert values[-1] == pytest.approx(oracle(judged, scores))
    assert min(values) == 0 < max(values)
    assert "d5" not in found["d5"]
    assert all(len(ranking) == 10 for ranking in found.values())


def test_closed_forms() -> None:
    assert ndcg({"a": 1}, ["a", "b"]) == 1
    assert ndcg({"a": 1}, ["b", "a"]) == pytest.approx(1 / math.log2(3))
    assert ndcg({"a": 2, "b": 1}, ["b", "a"]) == pytest.approx(
        (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    )
    assert ndcg({"a": 0, "b": -1}, ["a", "b"]) == 0
    assert ndcg({"a": 1}, [*"bcdefghijk", "a"]) == 0


def test_equal_similarities_rank_by_descending_id() -> None:
    same = np.ones((12, 4), np.float32)
    ids = np.array([f"d{number:02}" for number in range(12)])
    [(_, found)] = rank_documents(same[:1], same, ["q"], ids)
    assert found == [f"d{number:02}" for number in range(11, 1, -1)]


def test_a_title_stands_before_the_text(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", corpus=lines_of(CORPUS, title="T"))
    assert read_folder(folder)[0]["d1"] == "T a dog runs"


def test_prompts_of_queries_alone_are_refused(tmp_path: Path, tiny_encoder: Path) -> None:
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    prompts = {"prompts": {"query": "a ", "document": ""}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    encoder, task = load_encoder(str(folder), 0.1), f"beir:{write(tmp_path / 'mine')}"
    told = r"for queries or documents \(config_sentence_transformers\.json: query\), which mtdlab"
    with pytest.raises(MtdlabError, match=told):
        RetrievalTask(task, encoder, "")
    assert RetrievalTask(task, encoder, "a {sentence}").has_dev


def test_the_splits_are_scored_apart(tmp_path: Path, encoder: Encoder) -> None:
    task = RetrievalTask(f"beir:{write(tmp_path / 'mine')}", encoder, "")
    embedder = embedder_of(encoder, "mean")
    [dev], [test] = task.score(embedder, "dev"), task.score(embedder, "test")
    assert (dev.task, dev.n, test.task, test.n) == ("beir:mine:dev", 2, "beir:mine", 2)
    # other judgments of test leave dev as it is
    other = write(tmp_path / "b" / "mine", test="q3\td1\t1\nq4\td2\t1\n")
    changed = RetrievalTask(f"beir:{other}", encoder, "")
    assert changed.score(embedder, "dev") == [dev]
    assert changed.score(embedder, "test") != [test]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"corpus": ""}, "corpus.jsonl: cannot be read: no such file or directory; BEIR's layout"),
        ({"corpus": "\n"}, "corpus.jsonl: holds no text; one JSON object is expected a line"),
        ({"corpus": "{}\n"}, "corpus.jsonl:1: not a JSON object with the keys _id and text"),
        ({"queries": "[1]\n"}, "queries.jsonl:1: not a JSON object with the keys"),
        ({"test": ""}, "test.tsv: cannot be read"),
        ({"test": "query-id\tcorpus-id\tscore\n"}, "test.tsv: judges no query"),
        ({"test": "h\nq3\td3\n"}, "test.tsv:2: not query id, document id and a whole number"),
        ({"test": "h\nq9\td3\t1\n"}, "test.tsv:2: the query 'q9' is not in queries.jsonl"),
        ({"test": "h\nq3\td9\t1\n"}, "test.tsv:2: the document 'd9' is not in corpus.jsonl"),
        ({"test": "h\nq1\td3\t1\n"}, "1 queries are judged in both dev.tsv and test.tsv"),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    with pytest.raises(MtdlabError, match=message):
        read_folder(write(tmp_path / "mine", **changed))


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MtdlabError, match="no such folder; give one in BEIR's layout"):
        read_folder(tmp_path / "nowhere")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder of 40 documents and 20 queries."""
    random = Random(0)
    texts = {f"d{n}": " ".join(random.choices(WORDS, k=6)) for n in range(40)}
    queries = {f"q{n}": " ".join(texts[f"d{n}"].split()[:2]) for n in range(20)}
    rows = [f"q{n}\td{n}\t1\n" for n in range(20)]
    return write(
        tmp_path / "own",
        corpus=lines_of(texts),
        queries=lines_of(queries),
        dev="".join(rows[:10]),
        test="".join(rows[10:]),
    )


def test_the_dev_judgments_select_and_the_test_judgments_are_reported(
    own: Path, settings_of: Settings
) -> None:
    settings = settings_of(tasks=f"beir:{own}", select_on="beir:own:dev", evaluate_every=2)
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    scores = outcome.after.by_name()
    seen = [float(value) for value in outcome.curve["score"] if math.isfinite(value)]
    assert scores["beir:own:dev"] == pytest.approx(max(seen))
    assert outcome.best_step == 2 * (1 + seen.index(max(seen)))
    assert outcome.score_of("beir:own")[0] == scores["beir:own"] != scores["beir:own:dev"]
    # the judgments of test do not take part in the training
    (own / "qrels" / "test.tsv").write_text("q12\td3\t1\nq13\td4\t1\n")
    other = settings.model_copy(update={"corpus": settings.corpus, "seed": 0})
    load_inputs(settings_of(seed=1, dropout=0.2))
    again = train(other, load_inputs(other), lambda *_: None)
    assert again.best_step == outcome.best_step
    assert again.after.by_name()["beir:own:dev"] == scores["beir:own:dev"]
    assert again.after.by_name()["beir:own"] != scores["beir:own"]


def test_selection_without_dev_judgments_is_refused(own: Path, settings_of: Settings) -> None:
    (own / "qrels" / "dev.tsv").unlink()
    settings = settings_of(tasks=f"beir:{own}", select_on="beir:own:dev")
    with pytest.raises(MtdlabError, match=r"no dev data; add qrels/dev.tsv to its folder, or"):
        check_inputs(settings)


STUDY = "study: a\nmetric: beir:data/own\nsearch: {ema_decay: [0.5, 0.9]}\n"
MORE = "select_by: sts_dev\ntrainer: {tasks: [STSB, beir:data/own], select_on: dev}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STUDY, ("beir:own", "beir:own:dev", "beir:data/own", "beir:own:dev")),
        (STUDY + MORE, ("beir:own", "sts_dev", "STSB,beir:data/own", "dev")),
    ],
)
def test_the_metric_alone_is_enough_and_what_the_file_says_is_kept(
    text: str, expected: tuple[str, ...]
) -> None:
    spec = parse_study("a.yaml", text)
    trainer = spec.fixed()
    assert (spec.metric, spec.select_by, trainer.tasks, trainer.select_on) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STUDY.replace("own\n", "own:dev\n"), "dev data select; report beir:own"),
        (STUDY + "select_by: beir:own\n", "beir:own is what is reported; rank by sts_dev"),
        (STUDY.replace("beir:", "bier:"), "'bier:data/own' is not known; .* write beir:FOLDER"),
        (STUDY + "trainer: {select_on: 'beir:x'}\n", "write the dev score of a task, beir"),
        (STUDY + "trainer: {select_on: 'beir:x:dev'}\n", "needs the task beir:x, which tasks lack"),
        (STUDY + "trainer: {tasks: [beir:a/x, beir:b/x]}\n", "beir:x is the name of two tasks'"),
    ],
)
def test_a_study_that_would_report_what_selects_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_study("a.yaml", text)
