"""Studies of a program: run, failed, pruned, decided, resumed, refused, and their pages."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import mtdlab
from mtdlab import load_study
from mtdlab.errors import MtdlabError
from mtdlab.manage.reproduce import find_repeatable
from mtdlab.trial.signals import StopRequest
from tests.commands.conftest import Command, query
from tests.programs.conftest import PROGRAM, STUDY, calls
from tests.store.test_stored_items import assert_same_items

SWEEP = "sweep own.yaml --objective own:train --jobs 1"


def trials() -> Any:
    return load_study("own").trials


def write(folder: Path, body: str, study: str = "") -> None:
    """A program with this body, and a study if another one is needed."""
    head = "import math, sys\ndef train(settings, *, seed, checkpoints, report):\n"
    (folder / "own.py").write_text(head + "".join(f"    {line}\n" for line in body.splitlines()))
    if study:
        (folder / "own.yaml").write_text(study)


def test_a_study_is_run_and_recorded(folder: Path, run: Command) -> None:
    printed = run(SWEEP)
    assert "complete, 4 of 4 trials done" in printed.stdout
    assert "best trial by accuracy: 3, accuracy 53.50" in printed.stdout
    assert "model" not in printed.stdout
    study = load_study("own")
    assert study.program == "own:train"
    assert study.trials["score"].tolist() == [51.0, 52.5, 52.0, 53.5]
    assert study.trials["name"].tolist() == ["plain"] * 4
    assert study.trials["wide"].tolist() == [True] * 4
    assert study.trials["mtd"].isna().all()
    assert set(study.scores["task"]) == {"accuracy", "total"}
    first = study.curves[study.curves["number"] == 1]
    assert first["step"].tolist() == [1, 2, 3, 4]
    assert first["score"].tolist() == [2.5, 5.0, 7.5, 10.0]
    assert set(study.facts) == {"program", "processor", "versions"}
    assert "own:train, SHA-256" in study.facts["program"]
    assert not (folder / "models" / ".checkpoints").exists()
    assert "nothing is left" in run("plan own.yaml --objective own:train").stdout
    assert run(SWEEP).stdout.startswith("study own in sqlite:///mtdlab.db: complete")
    assert len(calls(folder)) == 4


def test_every_command_reads_such_a_study(run: Command) -> None:
    run(SWEEP)
    assert "own  complete" in run("studies").stdout
    assert "study own: 0 problems" in run("doctor").stdout
    assert "rate 1, 2.5" in run("show own").stdout
    shown = run("show own 1").stdout
    assert "own:train" in shown
    assert "reproduce" not in shown
    assert "model" not in shown
    compared = run("compare own 1 0").stdout
    assert "trial 1 minus trial 0: +1.50 points (95 % CI 1.50 to 1.50" in " ".join(compared.split())
    run("export-study own --out copy.db")
    run("delete own --yes")
    run("import-study copy.db")
    assert trials()["score"].tolist() == [51.0, 52.5, 52.0, 53.5]
    with pytest.raises(MtdlabError, match="was trained by --objective own:train; only trials of"):
        find_repeatable("own", 0, "sqlite:///mtdlab.db")
    assert "; 0 run now" in run(SWEEP).stdout


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_page_without_mtd_claims_nothing_of_the_trainer(folder: Path, run: Command) -> None:
    run(SWEEP)
    run("report own")
    page = (folder / "reports" / "own" / "index.html").read_text(encoding="utf-8")
    assert "rate 2.5 is best" in page or "rate 2.5 has the highest mean score" in page
    assert '<h2 id="training">Training curves</h2>' in page
    body = page[page.index("<body") :]
    for word in ("BERT", "Wikipedia", "alignment", "untrained", "corpus", "models/own", "STS"):
        assert word not in body, word


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_page_with_mtd_has_its_curve_and_no_published_one(folder: Path, run: Command) -> None:
    added = STUDY.replace("steps: 4", "steps: 4, batch_size: 8, queue_size: 64")
    (folder / "own.yaml").write_text(added.replace("[1.0, 2.5]", "[1.0], ema_decay: [0.5, 0.9]"))
    (folder / "own.py").write_text(PROGRAM.replace("+ seed,", "+ seed + settings['ema_decay'],"))
    run(SWEEP)
    assert trials()["mtd"].tolist() == [10.0, 18.0, 10.0, 18.0]
    run("report own")
    page = (folder / "reports" / "own" / "index.html").read_text(encoding="utf-8")
    assert "highest at MTD 18 (52.40) and lowest at MTD 10 (52.00)" in page
    assert "mtd_published" not in page
    assert "BERT" not in page


FAILED = {
    "return [1.0]": "own:train returned a value of type list; expected a mapping of names to",
    "pass": "own:train returned None; expected a mapping of names to scores, such as",
    "return {'loss': 1.0}": "own:train returned no score accuracy; its scores are: loss",
    "return {}": "own:train returned no score; expected a mapping of names to scores",
    "return {'accuracy': '90'}": "own:train returned 'accuracy': a value of type str; expected",
    "return {'accuracy': True}": "own:train returned 'accuracy': a value of type bool; expected",
    "return {'accuracy': 1.0, 3: 1.0}": "own:train returned 3: a value of type float; expected a",
    "report(0, 1.0)": "report(0, ...): a step is a whole number from 1 to 10,000,000",
    "report(1.5, 1.0)": "report(1.5, ...): a step is a whole number from 1 to 10,000,000",
    "report(1, None)": "report(1, ...) got a score of type NoneType; expected a number",
    "sys.exit(3)": "own:train called sys.exit(3)",
    "raise RuntimeError('out of memory')": "oom: out of memory",
    "raise ValueError('bad\\n rate')": "ValueError: bad rate",
    "raise GeneratorExit": "GeneratorExit",
    "raise type('Own', (BaseException,), {})('stop')": "Own: stop",
    "raise type('Own', (Exception,), {'__str__': lambda _: 1 / 0})": "Own: (its message raises",
    "return {'accuracy': 1.0, 'per_item': [1]}": "own:train: the items of accuracy in per_item are",
    "return {'accuracy': 1.0, 'per_item': [0, 1]}": "own:train: the items of accuracy in",
    "return {'accuracy': math.nan}": "own:train returned accuracy nan; expected a finite number",
    "return {'accuracy': 1.0, 'b': math.inf}": "own:train returned b inf; expected a finite number",
}
CODES = {
    "oom": "oom",
    "own:train returned accuracy nan": "nan_loss",
    "own:train returned b inf": "nan_loss",
}


def write_cases(folder: Path, bodies: Sequence[str], other: str, added: str = "") -> None:
    """A program that runs body i at rate i and `other` at the last rate, and a study of these."""
    cases = "".join(f"if settings['rate'] == {at}:\n    {body}\n" for at, body in enumerate(bodies))
    rates = ", ".join(map(str, range(len(bodies) + 1)))
    text = STUDY.replace("1.0, 2.5", rates).replace("[0, 1]", f"[0]{added}")
    write(folder, f"{cases}if settings['rate'] == {len(bodies)}:\n    {other}", text)


def test_a_wrong_result_fails_its_trial_with_a_sentence(folder: Path, run: Command) -> None:
    """The trial after them goes on."""
    write_cases(folder, list(FAILED), "return {'accuracy': 1.0}")
    run(SWEEP, code=3)
    ended = trials()
    assert ended["state"].tolist() == ["FAIL"] * len(FAILED) + ["COMPLETE"]
    tracebacks = query(folder, "SELECT traceback FROM mtdlab_trials ORDER BY number")
    for (body, sentence), reason, reason_code, (traceback,) in zip(
        FAILED.items(), ended["reason"], ended["reason_code"], tracebacks, strict=False
    ):
        assert reason.startswith(sentence), body
        code = next((code for head, code in CODES.items() if sentence.startswith(head)), "error")
        assert reason_code == code, body
        assert "raise" not in body or "own.py" in traceback, body
    assert not (folder / "models" / ".checkpoints").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn")
def test_what_cannot_be_imported_is_not_recorded(folder: Path, run: Command) -> None:
    """Numbers whose squares overflow, as scores, as reports and with a pruner that reads these."""
    bodies = (
        "return {'accuracy': 1e308}",
        "return {'accuracy': 1.0, 'other': -1e200}",
        "return {'accuracy': 10**5000}",
        "report(1, 1e40)",
        "report(1, 10**400)",
        "return {'accuracy': 9e29, 'per_item': [2e30, -2e29]}",
    )
    last = "report(1, 9e29)\n    return {'accuracy': -9e29}"
    write_cases(folder, bodies, last, added="\npruner: median")
    run(SWEEP, code=3)
    assert trials()["state"].tolist() == ["FAIL"] * 6 + ["COMPLETE"]
    assert set(trials()["reason_code"][:6]) == {"error"}
    beyond = "numbers within 1e+30 of 0 are recorded"
    assert trials()["reason"].tolist()[:-1] == [
        f"own:train returned 'accuracy', which is 1.000e+308; {beyond}",
        f"own:train returned 'other', which is -1.000e+200; {beyond}",
        f"own:train returned 'accuracy', which is 1.000e+5000; {beyond}",
        f"the score after step 1 is 1.000e+40; {beyond}",
        f"the score after step 1 is 1.000e+400; {beyond}",
        "own:train: item 1 of accuracy in per_item is 2e+30; expected a number within 1e+30 of 0",
    ]
    for line in ("show own", "show own 0", "report own", "doctor", "export-study own --out x.db"):
        run(line)
    run("import-study x.db --storage other.db")


def test_items_of_a_program_are_recorded_exported_and_imported(folder: Path, run: Command) -> None:
    """Of the metric alone; a trial without any has no row."""
    write(
        folder,
        "if settings['rate'] == 1.0 and seed == 0:\n    return {'accuracy': 50.0}\n"
        "items = {'accuracy': [100.0, 0.0, 50 + seed], 'total': [1, 2]}\n"
        "return {'accuracy': sum(items['accuracy']) / 3, 'total': 1.5, 'per_item': items}",
    )
    run(SWEEP)
    study = load_study("own")
    items = study.items
    assert items is not None
    assert set(study.scores["task"]) == {"accuracy", "total"}
    assert (items.gold, items.tasks) == (None, {"accuracy": 3})
    assert items.numbers.tolist() == [1, 2, 3]
    seeds = study.trials.set_index("number").loc[items.numbers, "seed"]
    assert items.values.tolist() == [[100, 0, 50 + seed] for seed in seeds]
    run("export-study own --out copy.db")
    run("delete own --yes")
    run("import-study copy.db")
    assert_same_items(load_study("own").items, items)


def test_numbers_of_numpy_are_scores_and_steps(folder: Path, run: Command) -> None:
    write(
        folder,
        "import numpy as np\nreport(np.int64(2), np.float32(7))\nreport(3, float('nan'))\n"
        "return {'accuracy': np.float32(1.5)}",
    )
    run(SWEEP)
    study = load_study("own")
    assert study.trials["score"].tolist() == [1.5] * 4
    # NaN is no point of the curve
    assert study.curves["step"].tolist() == [2] * 4


def test_a_pruner_stops_trials_by_what_they_report(folder: Path, run: Command) -> None:
    text = STUDY.replace("[1.0, 2.5]", "[9.0, 8.0, 1.0]")
    (folder / "own.yaml").write_text(text.replace("[0, 1]", "[0, 1, 2]\npruner: median"))
    run(SWEEP)
    states = trials().groupby("rate")["state"].agg(set)
    assert "PRUNED" in states[1.0]
    assert states[9.0] == {"COMPLETE"}
    assert "pruned at step 1" in set(trials()["reason"])


def test_a_stopped_trial_is_resumed_from_its_folder(
    folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = iter([False] * 4 + [True] * 3)

    def requested(stop: StopRequest) -> bool:
        if next(asked, False):
            stop.request()
        return stop.number is not None

    with monkeypatch.context() as patch:
        patch.setattr(StopRequest, "requested", requested)
        run(SWEEP, code=130)
    assert query(folder, "SELECT state FROM mtdlab_trials")[0] == ("WAITING",)
    stopped_at = int(
        next(folder.glob("models/.checkpoints/*/own/*/program/state.txt")).read_text()[0]
    )
    assert 0 < stopped_at < 4
    run(SWEEP)
    assert calls(folder)[0][3] == "0"
    assert calls(folder)[1][1:] == ["1.0", "0", str(stopped_at)]
    study = load_study("own")
    assert (study.scores.loc[study.scores["task"] == "total", "score"] == 10).all()
    assert study.curves.loc[study.curves["number"] == 0, "step"].tolist() == [1, 2, 3, 4]
    assert f"called again after step {stopped_at}" in study.trials["note"].iloc[0]


def test_the_best_that_a_later_sweep_shows_is_the_study_s(folder: Path, run: Command) -> None:
    write(folder, "return {'accuracy': 60.0 - seed}")
    run(f"{SWEEP} --set seeds=[0]")
    later = run(f"{SWEEP} --set seeds=[0,1]").stderr
    assert "accuracy 59.00" in later
    assert set(re.findall(r"; best ([0-9.]+)", later)) == {"60.00"}


def test_another_program_or_none_is_refused(folder: Path, run: Command) -> None:
    run(SWEEP)
    (folder / "other.py").write_text((folder / "own.py").read_text())
    printed = run("sweep own.yaml --objective other:train", code=2)
    assert (
        "study own was begun with --objective own:train, not --objective other:train; name it with "
        "--objective own:train to resume it" in printed.stderr
    )
    assert "--set study=own-2" in printed.stderr
    printed = run("sweep own.yaml", code=2)
    assert "metric: 'accuracy' is not known" in printed.stderr
    assert "need --objective" in printed.stderr
    fewer = run("plan own.yaml --objective own:train --set seeds=[0]", code=2).stderr
    assert (
        "study own holds 2 trials that the file no longer has (such as rate 1.0, seed 1); put"
        in fewer
    )
    assert "plan own.yaml" not in fewer
    (folder / "own.py").write_text(PROGRAM + "# changed\n")
    printed = run(SWEEP + " --set seeds=[0,1,2]", code=2)
    assert re.search(r"imports\.own: was SHA-256 \w{12}, now SHA-256 \w{12}\)", printed.stderr)
    assert "to resume it: import the modules with their former content\n" in printed.stderr
    assert len(trials()) == 4


@pytest.mark.usefixtures("figures_not_drawn")
def test_failed_trials_alone_run_again_with_a_mended_program(folder: Path, run: Command) -> None:
    mended = PROGRAM + "\n# mended\n"
    broken = "    if settings['rate'] == 2.5: raise ValueError('a mistake')\n    file, total ="
    (folder / "own.py").write_text(PROGRAM.replace("    file, total =", broken))
    printed = run(SWEEP, code=3)
    again = (
        "next: mtdlab sweep own.yaml --jobs 1 --objective own:train --retry-failed --changed-code"
    )
    assert again in printed.stdout
    (folder / "own.py").write_text(mended)
    for line in (SWEEP, f"{SWEEP} --retry-failed"):
        refused = run(line, code=2).stderr
        assert "where a mistake in them was mended, run failed trials again: mtdlab" in refused
        assert refused.count("--retry-failed --changed-code") == 1
    refused = run(f"{SWEEP} --changed-code", code=2).stderr
    assert "--changed-code runs failed trials alone; give --retry-failed with it" in refused
    # what differs beside the code is refused as ever, and leaves the record as it is
    other = f"{SWEEP} --retry-failed --changed-code"
    assert "trainer.steps: was 4, now 5" in run(f"{other} --set trainer.steps=5", code=2).stderr
    assert "complete, 4 of 4 trials done; 2 run now" in run(other).stdout
    assert [call[1] for call in calls(folder)] == ["1.0", "1.0", "2.5", "2.5"]
    assert "; 0 run now" in run(SWEEP).stdout
    run("report own")
    page = (folder / "reports" / "own" / "index.html").read_text(encoding="utf-8")
    told = r"with changed code: 2 trials \(0, 2\) with own:train \w{12}; 2 trials \(4, 5\) with own"
    assert re.search(told, page)
    # without a failed trial nothing runs with other code
    (folder / "own.py").write_text(PROGRAM)
    assert "imports.own: was SHA-256" in run(other, code=2).stderr


def test_a_study_of_the_trainer_is_not_continued_by_a_program(
    folder: Path, run: Command, tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path
) -> None:
    """Nor the other way round, with a file that both can read."""
    data = f"encoder: {tiny_encoder}, corpus: {tiny_corpus}, evaluation: {tiny_pairs}"
    text = f"study: both\nmetric: sts_test\ntrainer: {{{data}, steps: 1, batch_size: 4}}\n"
    (folder / "both.yaml").write_text(text)
    write(folder, "return {'sts_test': 1.0}")
    run("sweep both.yaml --objective own:train --jobs 1")
    printed = run("sweep both.yaml --jobs 1", code=2)
    assert (
        "study both was begun with --objective own:train, not mtdlab's own trainer; name it with "
        "--objective own:train to resume it" in printed.stderr
    )


def test_an_interrupt_in_the_program_leaves_its_trial_waiting(folder: Path, run: Command) -> None:
    write(folder, "raise KeyboardInterrupt")
    run(SWEEP, code=130)
    assert query(folder, "SELECT state, owner FROM mtdlab_trials") == [("WAITING", None)] * 4


@pytest.mark.slow
def test_until_decided_adds_seeds(folder: Path, run: Command) -> None:
    (folder / "own.yaml").write_text(
        "study: own\nmetric: accuracy\ntrainer: {batch_size: 8, steps: 1, rate: 1}\n"
        "search: {ema_decay: [0.5, 0.9], queue_size: [8]}\nseeds: [0, 1]\n"
        "until: {decided: true, max_seeds: 8}\nbeyond_run: keep\n"
    )
    (folder / "own.py").write_text(
        PROGRAM.replace("+ seed,", "+ seed % 3 + 0.1 * hash((seed, settings['ema_decay'])) % 1,")
    )
    run(SWEEP)
    study = load_study("own")
    assert len(study.looks) >= 1
    assert study.looks["decision"].iloc[-1] in ("decided", "flat", "max_seeds")


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_the_python_interface_takes_a_program() -> None:
    values = {"study": "own", "metric": "accuracy", "search": {"rate": [1.0, 2.0]}}
    values["trainer"] = {"steps": 2}
    result = mtdlab.run_study(values, objective="own:train", jobs=1)
    assert result.counts == {"COMPLETE": 2}
    assert mtdlab.plan(values, objective="own:train").cost is None


def test_plan_shows_the_design_and_no_cost(run: Command) -> None:
    printed = run("plan own.yaml --objective own:train").stdout
    assert "2 configurations x 2 seeds = 4 trials" in printed
    assert "no estimate: how long a program takes is known once its trials have run" in printed
    fields = json.loads(run("plan own.yaml --objective own:train --json").stdout)
    assert fields["trials"] == 4
    assert "reason" in fields["estimate"]


def test_scores_that_look_like_fractions_are_warned_of(folder: Path, run: Command) -> None:
    from mtdlab.analysis.report.context import StudyContext
    from mtdlab.analysis.report.warnings import list_warnings

    write(folder, "return {'accuracy': 0.9}")
    run(SWEEP)
    assert "should return it x 100" in list_warnings(StudyContext(load_study("own")))[-1]


def test_a_place_for_checkpoints_of_mtdlabs_own_trainer_is_refused(
    folder: Path, run: Command
) -> None:
    sentence = "a program of --objective keeps its own files: leave --artifacts out"
    printed = run(f"{SWEEP} --artifacts shared", 2).stderr
    assert sentence in " ".join(printed.split())
    printed = run(f"{SWEEP} --artifacts s3://id:secret@bucket/runs", 2).stderr
    assert "the s3 URL contains a password or a key" in " ".join(printed.split())
    assert "secret@" not in printed
    assert not (folder / "mtdlab.db").exists()
    assert not (folder / "shared").exists()


@pytest.mark.slow
def test_a_baseline_of_a_program_is_other_values_of_its_settings(
    folder: Path, run: Command
) -> None:
    (folder / "own.yaml").write_text(STUDY + "baseline: {rate: 10.0, name: theirs}\n")
    printed = run(SWEEP)
    assert "complete, 6 of 6 trials done" in printed.stdout
    assert "best trial by accuracy: 4, accuracy 53.50" in printed.stdout
    # always 7.5 above the best of the search
    assert (
        "Baseline, rate 10, name theirs: +7.50 points against the configuration" in printed.stdout
    )
    study = load_study("own")
    assert study.trials["score"].tolist() == [51.0, 52.5, 52.0, 53.5]
    assert study.baseline is not None
    assert study.baseline.trials["score"].tolist() == [60.0, 61.0]
    fields = json.loads(run(f"{SWEEP} --json").stdout)
    assert fields["baseline"]["difference"]["mean"] == pytest.approx(7.5)
    assert json.loads(run("show own 2 --json").stdout)["role"] == "baseline"


def test_the_values_of_a_nuisance_setting_are_chosen_by_the_score_on_dev_data(
    folder: Path, run: Command
) -> None:
    body = """off = abs(settings["rate"] - settings["depth"] / 10)
return {"accuracy": seed - off, "dev": 1 - off}"""
    study = """study: own
metric: accuracy
select_by: dev
search: {depth: [1, 3]}
nuisance: {rate: [0.1, 0.2, 0.3], seeds: [7]}
seeds: [0, 1]
"""
    write(folder, body, study)
    assert "complete, 10 of 10 trials done" in run(SWEEP).stdout
    found = trials()[["depth", "seed", "rate"]].itertuples(index=False)
    assert sorted(map(tuple, found)) == [(1, 0, 0.1), (1, 1, 0.1), (3, 0, 0.3), (3, 1, 0.3)]
