"""The command decide: exit codes, what is printed, and mistakes."""

import json
import re
from pathlib import Path

import pytest

from mtdlab.commands.decide import ANSWERS
from tests.commands.conftest import Command, Recorded

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "figures_not_drawn")

PAIR = "decide runs.csv --baseline rate=0.1 --candidate"
LEDGER = (
    "a1b2c3d\t0.997900\t44.0\tkeep\tbaseline",
    "b2c3d4e\t0.993200\t44.2\tkeep\tincrease LR to 0.04",
    "c3d4e5f\t1.005000\t44.0\tdiscard\tswitch to GeLU activation",
    "d4e5f6a\t0.000000\t0.0\tcrash\tdouble model width (OOM)",
)


@pytest.fixture
def table(folder: Path) -> Path:
    """Runs at four rates: 0.2 is better, 0.3 alike, 0.4 worse, 0.5 is not decided; 4 seeds."""
    rows = ["seed,rate,mtd,score"]
    for seed, noise in enumerate((0.0, 0.1, -0.1, 0.05)):
        for rate, effect in ((0.1, 0.0), (0.2, 2.0), (0.3, 0.0), (0.4, -2.0), (0.5, 20 * noise)):
            own = noise if rate > 0.1 else 0.0
            rows.append(f"{seed},{rate},10,{70 + 3 * seed + effect + own}")
    path = folder / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("rate", "answer", "says"),
    [
        ("0.2", "keep", "the interval lies above 0"),
        ("0.3", "equivalent", "the interval lies within the margin"),
        ("0.4", "drop", "the interval lies below the margin"),
        ("0.5", "more seeds", "would decide with 80 % power"),
    ],
)
def test_the_answer_is_the_exit_code(
    table: Path, command: Command, rate: str, answer: str, says: str
) -> None:
    code = {"keep": 0, "equivalent": 10, "drop": 10, "more seeds": 11}[answer]
    assert ANSWERS[answer][0] == code
    text = " ".join(command(f"{PAIR} rate={rate}", code).stdout.split())
    assert text.startswith(f"{answer}: rate={rate} minus rate=0.1 is ")
    assert says in text
    assert "4 common seeds; margin 0.5 points" in text
    assert "for this look alone; --session FILE makes it hold over all looks" in text
    fields = json.loads(command(f"{PAIR} rate={rate} --session s.json --json", code).stdout)
    assert (fields["answer"], fields["looks"], fields["candidates"]) == (answer, [4], 1)
    assert fields["difference"]["low"] <= fields["difference"]["mean"]
    assert (fields["study"], fields["metric"], fields["margin"]) == ("runs", "score", 0.5)
    assert table.exists()


def test_a_session_says_what_its_bounds_hold_for(table: Path, command: Command) -> None:
    lines = table.read_text().splitlines()
    table.write_text("\n".join(lines[:11]) + "\n")
    command(f"{PAIR} rate=0.5 --session s.json", 11)
    table.write_text("\n".join(lines[:-1]) + "\n")
    text = " ".join(command(f"{PAIR} rate=0.5 --session s.json", 11).stdout.split())
    assert "for all looks at this candidate (2 so far)" in text
    assert "the lower one for all candidates together (1 so far)" in text
    assert "Left out: 1 seed without a score of rate=0.5 (3)." in text


def test_a_session_keeps_how_its_scores_are_read(folder: Path, command: Command) -> None:
    """A score that passes 1 would change the unit of all others."""
    rows = ["seed,rate,map"]
    rows += [
        f"{seed},{rate},{0.5 + 0.1 * rate + 0.01 * seed}" for seed in range(4) for rate in (1, 2)
    ]
    (folder / "runs.csv").write_text("\n".join(rows) + "\n")
    line = "decide runs.csv --baseline rate=1 --candidate rate=2 --score map --session s.json"
    said = " ".join(command(line, 11).stdout.split())
    assert "Score: column map, higher is better. Scores were multiplied by 100: all" in said
    refused = command(f"{line} --scale percent", 2).stderr
    assert "is of study runs, score map, scale fraction, margin" in refused
    (folder / "runs.csv").write_text("\n".join([*rows, "4,1,0.99", "4,2,1.02"]) + "\n")
    refused = " ".join(command(line, 2).stderr.split())
    assert "'1.02'; with --scale fraction, stated or kept by a session, a score must be" in refused


def test_a_session_goes_on_with_the_unit_that_was_stated_once(
    folder: Path, command: Command
) -> None:
    line = "decide runs.csv --baseline rate=1 --candidate rate=2 --score fitness --session s.json"
    read = "--direction maximize --margin 0.01"

    def write(seeds: int) -> None:
        rows = [
            f"{seed},{rate},{0.1 * seed * rate + 0.3}" for seed in range(seeds) for rate in (1, 2)
        ]
        (folder / "runs.csv").write_text("\n".join(("seed,rate,fitness", *rows)) + "\n")

    write(4)
    refused = command(f"{line} {read}", 2).stderr
    assert "state --scale fraction, by which they are multiplied by 100, or --scale own" in refused
    command(f"{line} {read} --scale own", 11)
    write(7)
    fields = json.loads(command(f"{line} {read} --json", 0).stdout)
    assert fields["looks"] == [4, 7]
    assert "own: they are read with --scale own" in fields["score"]
    refused = command(f"{line} {read} --scale percent", 2).stderr
    assert "scale own, margin 0.01" in refused


def test_a_session_without_a_scale_goes_on(table: Path, command: Command) -> None:
    """Sessions were begun before they kept it."""
    line, file = f"{PAIR} rate=0.2 --session s.json --json", table.with_name("s.json")
    command(line, 0)
    file.write_text(file.read_text().replace(", scale percent", ""))
    assert json.loads(command(line, 0).stdout)["looks"] == [4]
    assert ", scale percent" in file.read_text()


def test_the_unit_of_a_stated_scale_is_printed(folder: Path, command: Command) -> None:
    rows = [f"{seed},{rate},{0.1 * rate + 0.01 * seed}" for seed in range(4) for rate in (1, 2, 3)]
    (folder / "runs.csv").write_text("\n".join(("seed,rate,fitness", *rows)) + "\n")
    read = "--score fitness --direction maximize --margin 0.5 --scale"
    line = f"decide runs.csv --baseline rate=1 --candidate rate=2 {read}"
    assert "margin 0.5 points" in " ".join(command(f"{line} fraction", 11).stdout.split())
    assert "margin 0.5)" in " ".join(command(f"{line} own", 11).stdout.split())
    command(f"report --table runs.csv {read} fraction")
    page = (folder / "reports/runs/index.html").read_text()
    assert "0.5 points" in page


def test_equal_differences_are_told_of(folder: Path, command: Command) -> None:
    rows = [f"{seed},{rate},{70 + rate}" for seed in range(3) for rate in (1, 2)]
    (folder / "runs.csv").write_text("\n".join(("seed,rate,score", *rows)) + "\n")
    said = " ".join(
        command("decide runs.csv --baseline rate=1 --candidate rate=2", 11).stdout.split()
    )
    assert "no interval, since all seeds differ by the same" in said
    assert "is not known, since equal differences have no scatter" in said
    assert "512" not in said


def test_seeds_of_which_one_side_has_no_score_are_told_by_side(
    table: Path, command: Command
) -> None:
    rows = [row for row in table.read_text().split() if not row.startswith(("3,0.2", "0,0.1"))]
    table.write_text("\n".join(rows) + "\n")
    said = " ".join(command(f"{PAIR} rate=0.2", 0).stdout.split())
    assert "Left out: 1 seed without a score of rate=0.2 (3)." in said
    assert "Left out: 1 seed without a score of rate=0.1 (0)." in said


@pytest.mark.parametrize("score", ["nan", "inf", "-inf"])
def test_a_failed_run_counts_a_finite_score(table: Path, command: Command, score: str) -> None:
    rows = [re.sub(r"^(2|3),0.2,10,.*", r"\1,0.2,10,", row) for row in table.read_text().split()]
    table.write_text("\n".join(rows) + "\n")
    refused = command(f"{PAIR} rate=0.2 --failed-score {score}", 2)
    assert f"a failed run cannot count {score}; give a finite score" in refused.stderr
    assert refused.stdout == ""


def test_a_loss_is_kept_where_it_is_lower(table: Path, command: Command) -> None:
    rows = [line.split(",") for line in table.read_text().split()[1:]]
    losses = [f"{seed},{rate},{100 - float(score)}" for seed, rate, _, score in rows]
    table.write_text("\n".join(("seed,rate,val_loss", *losses)) + "\n")
    done = command(f"{PAIR} rate=0.2 --score val_loss --margin 0.5", 2)
    assert "lower is better of a score with this name; state --direction" in done.stderr
    done = command(f"{PAIR} rate=0.2 --score val_loss --direction minimize", 2)
    assert "'val_loss' has a unit of its own: state --margin NUMBER" in done.stderr
    line = f"{PAIR} rate=0.2 --score val_loss --margin 0.5 --direction"
    found = json.loads(command(f"{line} minimize --json", 0).stdout)
    assert (found["answer"], found["metric"]) == ("keep", "val_loss")
    assert found["difference"]["mean"] == pytest.approx(-2.0, abs=0.1)
    assert found["difference"]["low"] < found["difference"]["high"] < 0
    said = " ".join(command(f"{line} minimize", 0).stdout.split())
    assert said.startswith("keep: rate=0.2 minus rate=0.1 is -2.0")
    assert "margin 0.5); the interval lies below 0." in said
    assert json.loads(command(f"{line} maximize --json", 10).stdout)["answer"] == "drop"


def test_failures_of_the_candidate_alone_have_an_exit_code(table: Path, command: Command) -> None:
    rows = [re.sub(r"^(2|3),0.2,10,.*", r"\1,0.2,10,", row) for row in table.read_text().split()]
    table.write_text("\n".join(rows) + "\n")
    text = " ".join(command(f"{PAIR} rate=0.2", ANSWERS["failures"][0]).stdout.split())
    assert text.startswith("failures: rate=0.2 minus rate=0.1 is +2.0")
    assert "2 of 4 seeds have no score with rate=0.2, 0 of 4 with rate=0.1." in text
    text = command(f"{PAIR} rate=0.2 --failed-score 60", 11).stdout
    assert "4 common seeds" in " ".join(text.split())
    assert "A run that failed counts 60 points." in " ".join(text.split())


@pytest.mark.parametrize("column", ["configuration", "lr"])
def test_a_candidate_whose_only_run_failed(folder: Path, command: Command, column: str) -> None:
    """Most values of the column occur with one seed: it is a setting since the command names it."""
    rows = [f"seed,{column},score", *(f"{seed},1,0.7{seed}" for seed in range(4)), "0,2,"]
    (folder / "runs.csv").write_text("\n".join(rows) + "\n")
    new, old = ("2", "1") if column == "configuration" else ("lr=2", "lr=1")
    line = f"decide runs.csv --candidate {new} --baseline {old}"
    said = " ".join(command(line, ANSWERS["failures"][0]).stdout.split())
    assert said.startswith(f"failures: 1 of 1 seeds have no score with {new}, 0 of 4 with {old};")
    assert json.loads(command(f"{line} --json", 12).stdout)["difference"]["mean"] is None


def test_rows_of_one_configuration_and_seed_are_told_of(table: Path, command: Command) -> None:
    text = table.read_text()
    table.write_text(text + text.splitlines()[1] + "\n")
    repeated = "1 of 21 complete runs have the settings and the seed of an earlier one"
    for line in (f"{PAIR} rate=0.2", "report --table runs.csv"):
        assert repeated in " ".join(command(line, 0).stdout.split())
    assert json.loads(command(f"{PAIR} rate=0.2 --json", 0).stdout)["repeated"].startswith("1 of")


def test_a_result_that_looks_like_a_setting(table: Path, command: Command) -> None:
    header, *rows = table.read_text().split()
    more = [f"{row},{int(row[0]) // 2}" for row in rows]
    table.write_text("\n".join([f"{header},best_epoch", *more]))
    refused = command(f"{PAIR} rate=0.2", 2).stderr
    assert "differ in best_epoch; name one with more settings, or name those of a table" in refused
    assert command(f"{PAIR} rate=0.2 --setting rate", 0).stdout.startswith("keep")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{PAIR} rate=0.9", "no run has ended with rate=0.9; rate is 0.1, 0.2, 0.3, 0.4, 0.5"),
        (
            f"{PAIR} rate=0.2 --margin -1",
            "margin is -1.0; it must be a number of at least 0",
        ),
        (f"{PAIR} rate=0.2 --session none/s.json", "--session none/s.json: no such file"),
        (f"{PAIR} rate=0.2 --session runs.csv", "session runs.csv is damaged, or is no session"),
        ("decide runs.csv --candidate rate=0.2", "study runs has no baseline of its own"),
        ("decide none.csv --candidate rate=0.2", "none.csv: no such file"),
        (
            "decide study --setting x --candidate rate=0.2",
            "--score, --column, --setting, --scale and --direction describe",
        ),
        (
            f"{PAIR} rate=0.2 --setting mtd",
            "'rate=0.2' is no configuration; settings are mtd; not read is rate",
        ),
        (
            "decide means.csv --candidate rate=0.2",
            "means.csv has level means; the runs of single seeds are needed",
        ),
    ],
)
def test_a_mistake_is_one_sentence(table: Path, command: Command, line: str, message: str) -> None:
    rows = (f"{mtd},{mtd / 10},0,9" for mtd in (1, 2, 3))
    table.with_name("means.csv").write_text("\n".join(("mtd,mean,low,high", *rows)) + "\n")
    done = command(line, 2)
    assert done.stdout == ""
    assert message in " ".join(done.stderr.split())
    assert len(done.stderr.splitlines()) == 1


def test_a_study_of_the_database(recorded: Recorded, command: Command) -> None:
    """The trials of one of its two learning rates have failed."""
    line = f"decide tiny --storage {recorded.storage} --baseline learning_rate=1e18"
    done = command(f"{line} --candidate learning_rate=0.001", ANSWERS["failures"][0])
    assert (
        "failures: 0 of 2 seeds have no score with learning_rate=0.001, 2 of 2 with "
        "learning_rate=1e18; nothing is tested. Repair what fails" in " ".join(done.stdout.split())
    )


def test_a_nuisance_setting_names_no_configuration(folder: Path, command: Command) -> None:
    (folder / "tuned.yaml").write_text(
        "study: tuned\nmetric: accuracy\nselect_by: dev\nsearch: {depth: [1, 3]}\n"
        "nuisance: {rate: [0.1, 0.2]}\nseeds: [0]\n"
    )
    (folder / "own.py").write_text(
        "def score(settings, **_):\n    return {'accuracy': settings['depth'], 'dev': 1.0}\n"
    )
    command("sweep tuned.yaml --objective own.py:score --jobs 1")
    line = "decide tuned --baseline depth=1 --candidate"
    refused = command(f"{line} rate=0.1", 2).stderr
    assert "rate is a nuisance setting, of which each configuration has the value" in refused
    refused = command(f"{line} queue=16", 2).stderr
    assert "'queue=16' is no configuration; settings are depth\n" in refused


def test_a_ledger_of_one_run_each_is_told_what_to_run(folder: Path, command: Command) -> None:
    rows = ["commit\tval_bpb\tmemory_gb\tstatus\tdescription", *LEDGER]
    (folder / "results.tsv").write_text("\n".join(rows) + "\n")
    read = "--score val_bpb --direction minimize --margin 0.002"
    line = f"decide results.tsv --baseline a1b2c3d --candidate b2c3d4e {read}"
    text = " ".join(command(line, 11).stdout.split())
    assert text.startswith("more seeds: b2c3d4e minus a1b2c3d is -0.0047; nothing is tested")
    assert "since no seeds were recorded. Next: run both with the same seeds, 3 or more" in text
    fields = json.loads(command(f"{line} --json", 11).stdout)
    assert (fields["shared"], fields["left_out"], fields["more_seeds"]) == ([], [[], []], None)
    text = " ".join(command(f"report --table results.tsv {read}").stdout.split())
    assert "has the lowest mean score; no difference is tested" in text
    assert "failed: trial 3: state crash in the table" in text


def test_doubled_rows_of_a_ledger_are_one_run(folder: Path, command: Command) -> None:
    rows = ["commit\tval_bpb\tmemory_gb\tstatus\tdescription", *LEDGER, LEDGER[1], LEDGER[3]]
    (folder / "results.tsv").write_text("\n".join(rows) + "\n")
    read = "--score val_bpb --direction minimize --margin 0.002"
    line = f"decide results.tsv --baseline a1b2c3d --candidate d4e5f6a {read}"
    text = " ".join(command(line, ANSWERS["failures"][0]).stdout.split())
    assert text.startswith("failures: 1 of 1 runs have no score with d4e5f6a, 0 of 1 with a1b2c3d")
    assert "1 of 4 complete runs are copies of an earlier row, and count once." in text


def test_scores_of_two_versions_of_the_evaluator_are_not_compared(
    table: Path, command: Command
) -> None:
    header, *rows = table.read_text().splitlines()
    changed = [f"{row},{'new' if row.startswith('3,0.5') else 'old'}" for row in rows]
    table.write_text("\n".join([f"{header},evaluator_sha256", *changed]) + "\n")
    command(f"{PAIR} rate=0.2", 0)
    for line in (f"{PAIR} rate=0.5", "report --table runs.csv"):
        refused = command(line, 2)
        assert refused.stdout == ""
        assert "2 versions of the evaluator, 'old' (run " in refused.stderr
        assert "'new' (run 19)" in refused.stderr
