"""A task of MTEB on a local folder: against its own evaluator, and what is refused."""

import json
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
import torch

from mtdlab.device import Device
from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.loading import load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.mteb import MtebTask
from mtdlab.evaluation.pairs import Pairs
from mtdlab.evaluation.sts import StsTask
from mtdlab.settings import Representation
from mtdlab.training.inputs import check_inputs, load_inputs
from mtdlab.training.loop import train
from tests.conftest import WORDS, Settings

pytestmark = [
    pytest.mark.filterwarnings("default"),
    # found, not imported: that takes seconds, in each process that collects the tests
    pytest.mark.skipif(find_spec("mteb") is None, reason="the extra mteb is missing"),
]


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


def test_it_scores_as_our_own_spearman(rows: list[dict[str, object]], tiny_encoder: Path) -> None:
    import numpy as np

    encoder = load_encoder(str(tiny_encoder), 0.1)
    embedder = Embedder(
        encoder.model, Representation("mean"), Device(torch.device("cpu"), torch.float32)
    )
    [score] = MtebTask("mteb:STSBenchmark", encoder).score(embedder, "test")
    pairs = Pairs(
        [str(row["sentence1"]) for row in rows],
        [str(row["sentence2"]) for row in rows],
        np.array([float(str(row["score"])) for row in rows]),
    )
    ours = StsTask(pairs, encoder)
    assert score.task == "mteb:STSBenchmark"
    assert score.score == pytest.approx(ours.measure(embedder)[1].score, abs=1e-3)


@pytest.mark.usefixtures("rows")
def test_it_is_reported_while_the_dev_pairs_select(settings_of: Settings) -> None:
    settings = settings_of(tasks="mteb:STSBenchmark")
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    score, before = outcome.score_of("mteb:STSBenchmark")
    assert outcome.all_scores()["mteb:STSBenchmark"] == score
    assert -100 <= score <= 100
    assert score != before
    with pytest.raises(ValueError, match="write the dev score of a task, beir:FOLDER:dev or"):
        settings_of(tasks="mteb:STSBenchmark", select_on="mteb:STSBenchmark:dev")


def test_an_unknown_task_is_refused_with_the_nearest(settings_of: Settings) -> None:
    with pytest.raises(MtdlabError, match=r"mteb has no such task; did you mean STSBenchmark\?"):
        check_inputs(settings_of(tasks="mteb:STSBenchmrk"))
    with pytest.raises(MtdlabError, match=r"mteb has no such task; mteb.get_tasks\(\) lists"):
        check_inputs(settings_of(tasks="mteb:zzzzqqqq"))


@pytest.mark.usefixtures("rows")
def test_a_task_without_data_is_refused(settings_of: Settings) -> None:
    with pytest.raises(MtdlabError, match=r"its data cannot be loaded .* into mteb/STS16"):
        check_inputs(settings_of(tasks="mteb:STS16"))
