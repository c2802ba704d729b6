"""The commands: exit codes, sentences, JSON, signals.

Most run inside the test's process, by the function that the installed command calls: that saves
the seconds in which a process imports torch. What only a process shows is run as one.
"""

import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from forked_commands import ForkedCommand

from mtdlab.analysis.data.runs import format_mtd
from tests.commands.conftest import Command, Printed, command, folder, query

ROOT = Path(__file__).parents[1]
MTDLAB = str(Path(sys.executable).parent / "mtdlab")
SMALL = """
study: mtd
trainer: {batch_size: 16, steps: 3, evaluate_every: 3, learning_rate: 1e-3}
search:
  ema_decay: [0.75, 0.85]
  queue_size: {times: batch_size, values: [1, 2]}
  initial_queue_size: {share_of: queue_size, values: [0.25]}
beyond_run: keep
"""


__all__ = ["command", "folder"]
Begin = Callable[[str], ForkedCommand]


@pytest.fixture(autouse=True)
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder with a study whose trials have three steps."""
    (folder / "studies").mkdir()
    (folder / "studies" / "mtd.yaml").write_text(SMALL)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return folder


@pytest.fixture
def run(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process, as on a machine with one core: without worker processes."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    return command


@pytest.fixture
def tiny(tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path) -> str:
    """Options for an encoder, a corpus and an evaluation that take next to no time."""
    return (
        f"--set trainer.encoder={tiny_encoder} --set trainer.corpus={tiny_corpus} "
        f"--set trainer.evaluation={tiny_pairs}"
    )


def installed(command: str) -> Printed:
    """Run the installed command as a process."""
    done = subprocess.run(
        [MTDLAB, *shlex.split(command)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return Printed(done.stdout, done.stderr)


@pytest.fixture
def begin(place: Path) -> Iterator[Begin]:
    """Start a command as a process; one that is left when a test fails is ended."""
    begun: list[ForkedCommand] = []

    def call(command: str) -> ForkedCommand:
        begun.append(ForkedCommand(shlex.split(command), place, {}))
        return begun[-1]

    yield call
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_help_imports_no_large_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    done = installed("--help")
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "mtdlab.cli" in imported
    large = {"torch", "transformers", "numpy", "pandas", "scipy", "optuna", "sqlalchemy"}
    assert imported.isdisjoint(large)
    for name in ("sweep", "report", "plan", "train", "evaluate", "corpus", "studies"):
        assert name in done.stdout


def test_help_gives_a_flag_no_type(run: Command) -> None:
    for name in ("", "sweep"):
        text = run(f"{name} --help").stdout
        assert "bool" not in text
    assert re.search(r"--json +Print one JSON", text)
    assert re.search(r"--jobs +<int range>", text)


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_sweep_and_its_report_end_to_end(run: Command, place: Path, tiny: str) -> None:
    command = f"sweep studies/mtd.yaml {tiny}"
    swept = run(command).stdout
    assert "complete, 4 of 4 trials done; 4 run now" in swept
    assert "4 of 4 trials done; 0 run now" in run(command).stdout

    written = json.loads(run("report --study mtd --json").stdout)
    page = place / written["page"]
    assert page == place / "reports" / "mtd" / "index.html"
    assert "mtdlab sweep studies/mtd.yaml" in page.read_text()
    assert "<dt>processor</dt>" in page.read_text()
    curve = (page.parent / "tables" / "mtd_curve.csv").read_text().splitlines()
    assert curve[0].split(",")[:5] == ["mtd", "n", "mean", "low", "high"]
    assert len(curve) == 5
    assert len((page.parent / "tables" / "trials.csv").read_text().splitlines()) == 5
    assert list((page.parent / "figures").glob("*.png"))
    assert_ranked_by_dev(swept, written, place)

    together = json.loads(run("report --study mtd --name all --json").stdout)
    assert place / together["page"] == place / "reports" / "all" / "index.html"
    assert together["pages"]["mtd"]["page"] == written["page"]
    assert "../mtd/index.html" in (place / together["page"]).read_text()
    assert "no study mdt" in run("report --study mtd --study mdt", 5).stderr
    assert "the study's own page" in run("report --study mtd --name mtd", 2).stderr


def assert_ranked_by_dev(swept: str, written: dict[str, Any], place: Path) -> None:
    """What was printed, the page, Optuna and the kept model agree on the best trial."""
    assert (written["metric"], written["select_by"]) == ("sts_test", "sts_dev")
    best = written["best"]
    scores = f"sts_dev {best['select_by_score']:.2f}, sts_test {best['score']:.2f}"
    mtd = format_mtd(best["mtd"])
    assert f"best trial by sts_dev: {best['trial']} (MTD {mtd}), {scores}\n" in swept
    assert "model: models/mtd\nnext: mtdlab report --study mtd\n" in swept
    opened = optuna.load_study(study_name="mtd", storage=f"sqlite:///{place / 'mtdlab.db'}")
    assert opened.best_trial.number == best["trial"]
    assert opened.best_value == pytest.approx(best["select_by_score"])
    kept = json.loads((place / "models" / "mtd" / "mtdlab" / "run.json").read_text())
    assert kept["trial"] == best["trial"]
    assert kept["scores"]["sts_test"] == pytest.approx(best["score"])
    choices = pd.read_csv(place / Path(written["page"]).parent / "tables" / "best_trial.csv")
    assert choices["number"][0] == best["trial"]


def test_jobs_share_the_work_and_json_stays_alone_on_standard_output(
    run: Command, begin: Begin, tiny: str
) -> None:
    process = begin(f"sweep studies/mtd.yaml --jobs 2 --json {tiny}")
    output, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    summary = json.loads(output)
    assert (summary["trials"], summary["ran"]) == ({"complete": 4}, 4)
    assert (summary["metric"], summary["select_by"]) == ("sts_test", "sts_dev")
    listed = json.loads(run("studies --json").stdout)["studies"]
    assert (listed[0]["metric"], listed[0]["select_by"]) == ("sts_test", "sts_dev")
    assert [(row["study"], row["planned"], row["complete"]) for row in listed] == [("mtd", 4, 4)]

    # the same trials in one process have the same scores, bit for bit
    run(f"sweep studies/mtd.yaml --jobs 1 --storage one.db --models of-one {tiny}")
    assert len(trial_scores("mtdlab.db")) == 4 * 2
    assert trial_scores("mtdlab.db") == trial_scores("one.db")


def trial_scores(database: str) -> dict[tuple[str, int, str], float]:
    """Each trial's scores, by configuration, seed and task."""
    scores = (
        "SELECT configuration, seed, task, scores.score FROM mtdlab_trials AS trials "
        "JOIN mtdlab_scores AS scores ON trials.id = scores.trial_id"
    )
    return {tuple(key): score for *key, score in query(Path(), scores, database)}


@pytest.mark.usefixtures("few_simulated_studies")
def test_the_plan_shows_every_setting_by_its_mtd(run: Command) -> None:
    done = run("plan studies/mtd.yaml --json --no-measure")
    begun = r"[\d.]+ s: importing the packages that plan\n[\d.]+ s: reading the texts\n"
    assert re.fullmatch(begun, done.stderr)
    found = json.loads(done.stdout)
    rows = found["settings"]
    assert [row["mtd"] for row in rows] == [5, 6, 7.667, 8.667]
    assert rows[-1]["queue_size"] == 32
    assert "estimate" not in found


@pytest.mark.slow
@pytest.mark.usefixtures("few_simulated_studies")
def test_the_plan_says_what_a_study_costs_or_why_not(run: Command) -> None:
    printed = run("plan studies/mtd.yaml").stdout.splitlines()
    # that a trial evaluates longer than it trains, which depends on the machine
    lines = [line for line in printed if not line.startswith("warning a trial evaluates for")]
    *table, count = lines[: 1 + next(at for at, line in enumerate(lines) if "4 trials" in line)]
    text = " ".join(" ".join(lines[len(table) + 1 : -4]).split())
    lasting, memory, disk, encoder = lines[-4:]
    assert "8.667" in table[-1]
    assert count == "study mtd: 4 configurations x 1 seed = 4 trials"
    needed = r"(\d+ seeds|[\d,]+ items or more \(now 1,500\)|more than 512 seeds)"
    for sentence in (
        "power found with 1 seed 80 % power takes",
        rf"peak of 2 points \([\d.]+ at MTD [\d.]+\) \d+ % {needed} peak of 2 points with 5 levels",
        rf"peak of 2 points with 9 levels {needed} slope",
        rf"slope of 2 points over the range \d+ % {needed}",
        "one seed finds nothing: a comparison takes at least two residual standard deviation 1.5",
        "points, assumed; correlations assumed .* standard error of a difference: ",
        r"from 1,500 items; more seeds help more evaluation items assumed: 21 over the root",
        r"warning .* verdict margin 0.5 points, alpha 0.05, .* recorded before trial 1 SHA-256 ",
    ):
        assert re.search(sentence, text)
    assert max(map(len, lines)) <= 100
    times = r"time    about .* (s|min): .* to start, 4 trials of .* on \d+ workers? with \d+ thread"
    assert re.match(times, lasting)
    assert re.match(r"memory  up to [\d.]+ [MG]B: \d+ workers? of [\d.]+ [MG]B$", memory)
    assert re.match(r"disk    [\d.]+ kB of database, [\d.]+ MB for the best model$", disk)
    reading = "cls pooling, up to 64 tokens in evaluation"
    assert encoder == f"encoder builtin: {reading}; bert, the fast forward pass"
    done = run("plan studies/mtd.yaml --json --set trainer.encoder=no/such", 2)
    # found before what takes seconds
    assert re.fullmatch(r"[\d.]+ s: importing the packages that plan\n", done.stderr)
    found = json.loads(done.stdout)
    assert len(found["settings"]) == 4
    assert found["estimate"]["reason"].startswith("encoder no/such: neither a folder here nor")


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_studies")
def test_the_plan_is_recorded_before_the_first_trial_and_shown_on_the_page(
    run: Command, place: Path, tiny: str
) -> None:
    until = "--set until.decided=true --set until.max_seeds=2 --no-measure"
    found = json.loads(run(f"plan studies/mtd.yaml --json --no-record {until}").stdout)
    assert [look["seeds"] for look in found["looks"]] == [2]
    assert not (place / "mtdlab.db").exists()
    planned = json.loads(run("plan studies/mtd.yaml --json --no-measure --sd 1").stdout)
    assert planned["power"]["bases"]["errors"] == "as given"
    assert planned["specification"]["trials_started"] == 0
    run(f"sweep studies/mtd.yaml --jobs 1 {tiny}")
    run(f"sweep studies/mtd.yaml --jobs 1 {tiny} --set verdict.margin=1")
    run("report --study mtd")
    page = (place / "reports" / "mtd" / "index.html").read_text()
    assert planned["specification"]["sha256"] in page
    assert "Changed afterwards: margin from 0.5 to 1.0 after 4 trials had started." in page


def test_a_corpus_is_counted_and_a_sweep_says_what_it_left_out(
    run: Command, place: Path, tiny: str
) -> None:
    text = b"a dog runs\n" * 10 + b"\n\xff " + b"word " * 90 + b"\n"
    (place / "corpus.gz").write_bytes(gzip.compress(text * 2))
    done = run("corpus corpus.gz --json")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert (found["lines"], found["sentences"], found["blank"]) == (24, 22, 2)
    assert (found["bad_bytes"], found["duplicates"], found["too_long"]) == (2, 20, 2)
    table = run("corpus corpus.gz").stdout
    assert "training cuts 9.09 % of the sentences, at 32 tokens" in table
    assert re.search(r"^ *1 to 8 +20 +90.91$", table, re.MULTILINE)
    said = "corpus corpus.gz: blank lines left out: 2 of 24; bytes not UTF-8, now U+FFFD: 2\n"
    command = f"sweep studies/mtd.yaml --jobs 1 {tiny} --set trainer.corpus=corpus.gz"
    assert run(command).stderr.count(said) == 1


def test_a_single_run_prints_its_scores_and_saves_its_encoder(
    run: Command, place: Path, tiny_corpus: Path, tiny_pairs: Path
) -> None:
    from transformers import AutoModel

    data = f"--set trainer.corpus={tiny_corpus} --set trainer.evaluation={tiny_pairs}"
    done = run(f"train studies/mtd.yaml --json --out model {data}")
    assert "not kept" not in done.stderr
    row = json.loads(done.stdout)
    assert row.keys() >= {"mtd", "seed", "sts_dev", "sts_test", "alignment", "uniformity"}
    assert AutoModel.from_pretrained(place / "model").config.hidden_size == 128


@pytest.mark.slow
def test_an_evaluation_prints_a_table_and_its_twin(run: Command) -> None:
    done = run("evaluate builtin")
    # the processor has instructions for bfloat16 or not
    assert re.match(r"builtin, cls pooling, up to 64 tokens, cpu, b?float(16|32)\n", done.stdout)
    assert "Built-in pairs, Spearman x 100" in done.stdout
    phases = [line.partition(" s: ")[2] for line in done.stderr.splitlines()]
    assert phases[:2] == ["importing the packages that encode", "loading encoder builtin"]
    assert phases[2:] == ["encoding 3,000 sentences", "scoring"]
    twin = json.loads(run("evaluate builtin --json").stdout)
    [task] = twin["tasks"]
    assert (task["task"], task["n"], task["metric"]) == ("builtin", 1500, "spearman")
    assert f"{task['score']:.2f}" in done.stdout


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("evaluate no/such", 2, "encoder no/such: neither a folder here nor in the local hub"),
        ("evaluate builtin --tasks sts", 2, "no task's data are there"),
        ("evaluate builtin --tasks STS9", 2, "task 'STS9': not known"),
        ("evaluate builtin --data nowhere", 2, "--data nowhere: no such folder"),
        (
            "evaluate builtin --pooling max",
            2,
            "unknown pooling 'max'; choose from cls",
        ),
        ("sweep missing.yaml", 2, "missing.yaml: no such file"),
        ("sweep studies/mtd.yaml --set trainer.stepz=5", 2, "did you mean steps?"),
        ("train studies/mtd.yaml --profile small", 2, "no profile 'small'; there is none yet"),
        ("sweep studies/mtd.yaml --set trainer.encoder=no/such", 2, "encoder no/such"),
        ("sweep studies/mtd.yaml --set trainer.corpus=no.txt", 2, "corpus no.txt: cannot be read"),
        ("sweep studies/mtd.yaml --set trainer.corpus=dataset:no/such", 2, "dataset:no/such: "),
        ("corpus no.txt", 2, "corpus no.txt: cannot be read"),
        ("corpus builtin --encoder no/such", 2, "encoder no/such"),
        ("sweep studies/mtd.yaml --storage no/such/folder.db", 4, "no such folder"),
        ("sweep studies/mtd.yaml --storage nonsense://x", 4, "nonsense://x"),
        ("report --study mtd", 4, "no database at mtdlab.db"),
        ("studies", 4, "no database at mtdlab.db"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(
    run: Command, place: Path, line: str, code: int, sentence: str
) -> None:
    done = run(line, code)
    assert sentence in done.stderr
    assert done.stdout == ""
    assert code == 2 or not list(place.glob("*.db"))


def owners() -> list[int]:
    """The processes that run trials of the study."""
    running = "SELECT owner FROM mtdlab_trials WHERE state = 'RUNNING' AND number IS NOT NULL"
    return [json.loads(owner)["pid"] for (owner,) in query(Path(), running)]


def wait_for_trials(count: int, process: ForkedCommand) -> list[int]:
    deadline = time.monotonic() + 120
    while len(found := owners()) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"no {count} trials began within two minutes"
        time.sleep(0.01)
    return found


def wait_for_the_end_of(processes: list[int]) -> None:
    """The workers of a killed sweep notice at their next step."""
    deadline = time.monotonic() + 30
    while any(is_running(process) for process in processes):
        assert time.monotonic() < deadline, "the workers did not end"
        time.sleep(0.05)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # nobody may be there to take the exit code of an orphan


LONG = (
    "--set trainer.steps=80 --set trainer.evaluate_every=80 "
    "--set search.ema_decay=[0.75,0.8,0.85] --set search.queue_size=[16]"
)


@pytest.mark.parametrize(
    ("number", "code", "jobs", "send"),
    [
        # Ctrl-C in a terminal reaches the group
        (signal.SIGINT, 130, 2, os.killpg),
        pytest.param(signal.SIGTERM, 143, 1, os.kill, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, -9, 2, os.kill, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, 2, os.killpg, marks=pytest.mark.slow),
        pytest.param(signal.SIGUSR1, 138, 2, os.killpg, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, 2, os.kill, marks=pytest.mark.slow),
    ],
)
def test_a_sweep_cut_short_goes_on_where_it_was(
    run: Command,
    begin: Begin,
    place: Path,
    tiny: str,
    number: signal.Signals,
    code: int,
    jobs: int,
    send: Callable[[int, int], None],
) -> None:
    """With worker processes, and with trials in the sweep's own process."""
    process = begin(f"sweep studies/mtd.yaml {tiny} {LONG} --jobs {jobs}")
    workers = wait_for_trials(jobs, process)
    send(process.pid, number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in error
    wait_for_the_end_of(workers)

    shorter = f"sweep studies/mtd.yaml {tiny} {LONG.replace('=80', '=3')}"
    assert "trainer.steps: was 80, now 3" in run(shorter, 2).stderr
    summary = json.loads(run(f"sweep studies/mtd.yaml {tiny} {LONG} --json").stdout)
    assert summary["trials"] == {"complete": 3}
    trials = optuna.load_study(study_name="mtd", storage=f"sqlite:///{place}/mtdlab.db").trials
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 3
    assert len({trial.user_attrs["ema_decay"] for trial in trials}) == 3
    resumed = [t for t in trials if t.user_attrs.get("note", "").startswith("resumed after step")]
    assert len(resumed) == jobs
    assert not (place / "models" / ".checkpoints").exists()


@pytest.mark.slow
def test_two_sweeps_at_once_on_no_database_share_one_study(
    begin: Begin, place: Path, tiny: str
) -> None:
    sweeps = [begin(f"sweep studies/mtd.yaml --jobs 1 --json {tiny}") for _ in range(2)]
    ran = []
    for process in sweeps:
        output, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        ran.append(json.loads(output)["ran"])
    assert sum(ran) == 4
    study = optuna.load_study(study_name="mtd", storage=f"sqlite:///{place}/mtdlab.db")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 4


def test_make_help_explains_the_targets() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target in ("demo", "test", "test-long", "mutation", "lint", "typecheck", "bench"):
        assert f"make {target}" in done.stdout
