"""The examples of docs/how-to/many-machines.md, run as they are printed, with a small study.

Slurm's are run by `tests/long/test_slurm_cluster.py`.
"""

import re
import shlex
from pathlib import Path

import pytest

from mtdlab.store.progress import list_studies
from tests.many_machines.conftest import Runs, ended
from tests.many_machines.test_dask_cluster import DaskCluster

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "many-machines.md"
SERVER, SCHEDULER, BUCKET = (
    "postgresql+psycopg://user@host/studies",
    "tcp://host:8786",
    "s3://bucket/runs",
)
TRIALS = 4


def commands_of(section: str) -> list[list[str]]:
    """The words of each command in the first console block of a section."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    block = re.search(r"```console\n(.*?)```", text, re.DOTALL)
    assert block is not None, section
    return [shlex.split(line[2:]) for line in block[1].splitlines() if line.startswith("$ ")]


@pytest.fixture
def study(runs_on_server: Runs, tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path) -> Runs:
    """A study under the name that the document uses, of trials of four steps."""
    folder = runs_on_server.folder / "studies"
    folder.mkdir()
    (folder / "mtd.yaml").write_text(
        f"study: mtd\ntrainer:\n  encoder: {tiny_encoder}\n  corpus: {tiny_corpus}\n"
        f"  evaluation: {tiny_pairs}\n  batch_size: 8\n  queue_size: 16\n  steps: 4\n"
        "  evaluate_every: 2\n  max_length: 16\n  device: cpu\n  pooling: mean\n"
        "search: {ema_decay: [0.5, 0.75]}\nseeds: [0, 1]\n"
    )
    return runs_on_server


def run(study: Runs, words: list[str], **places: str) -> str:
    """Run a command of mtdlab with the places of this test; what it prints."""
    line = shlex.join(words).replace("--jobs 8", "--jobs 2")
    for old, new in {SERVER: study.url, SCHEDULER: places.get("scheduler", "")}.items():
        line = line.replace(old, new)
    line = line.replace(BUCKET, places.get("bucket", ""))
    program, *given = shlex.split(line)
    assert program == "mtdlab"
    return ended(study.command(*given))


def assert_complete(study: Runs) -> None:
    [found] = list_studies(study.url)
    assert (found.name, found.planned, found.counts) == ("mtd", TRIALS, {"COMPLETE": TRIALS})


@pytest.mark.slow
def test_a_shared_server(study: Runs) -> None:
    export, *commands = commands_of("Many machines: PostgreSQL")
    # `Runs.start` sets the variable
    assert export == ["export", f"MTDLAB_STORAGE={SERVER}"]
    printed = [run(study, words) for words in commands]
    assert "0 of 4 trials done (4 waiting)" in printed[0]
    assert_complete(study)


@pytest.mark.slow
def test_a_shared_place(study: Runs, tmp_path: Path) -> None:
    [sweep] = commands_of("Checkpoints and models that all machines see")
    place = tmp_path / "share"
    place.mkdir()
    printed = run(study, sweep, bucket=str(place))
    assert "complete, 4 of 4 trials done" in printed
    assert_complete(study)
    assert list(place.glob("mtd/models/trial-*/modules.json"))


@pytest.mark.slow
def test_a_cluster(study: Runs) -> None:
    scheduler, worker, sweep = commands_of("A dask cluster")
    assert (scheduler[:2], worker[:3]) == (["dask", "scheduler"], ["dask", "worker", SCHEDULER])
    assert worker[worker.index("--nthreads") + 1] == "1"
    cluster = DaskCluster(study)
    cluster.start_worker()
    run(study, sweep, scheduler=cluster.address)
    assert_complete(study)
