"""Import of runs: tables with mtdlab's column names, W&B exports, invalid tables."""

import math
import re
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis import compute_verdict, read_run_table
from mtdlab.analysis.data import cells
from mtdlab.analysis.data.cells import TableError
from mtdlab.analysis.data.defaults import Direction, Reading
from mtdlab.analysis.data.frames import TAKEN_NAMES
from mtdlab.analysis.data.metric import ScoreFormat, is_loss
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.inference.best import BestVerdict
from mtdlab.analysis.inference.level_means import LevelMeans
from mtdlab.analysis.notebook import open_table
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.headline import build_headline
from mtdlab.analysis.report.study_facts import list_varied
from mtdlab.analysis.report.warnings import list_caveats, list_warnings
from mtdlab.analysis.statistics.configurations import compute_effects
from tests.analysis.conftest import build_study, make_trials, report_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
HEADER = "score,seed,ema_decay,queue_size,batch_size"
ROWS = ["31.5,0,0.75,512,64", "32.5,0,0.85,512,64", "30.5,1,0.75,512,64", "33.0,1,0.85,512,64"]


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(tmp_path / "my runs.csv", HEADER, *ROWS)


def test_a_table_with_mtdlabs_column_names_is_a_study(small: Path) -> None:
    study = read_run_table(small)
    facts = (study.name, study.metric, study.planned, study.sampler)
    assert facts == ("my-runs", "score", 4, "not recorded")
    trials = study.trials
    assert trials["mtd"].round(3).tolist() == [12, 14.667] * 2
    assert trials["score"].tolist() == [31.5, 32.5, 30.5, 33.0]
    assert trials["state"].tolist() == ["COMPLETE"] * 4
    assert trials["seed"].tolist() == [0, 0, 1, 1]
    assert list(study.settings) == ["ema_decay", "queue_size", "batch_size"]
    assert study.facts["MTD"] == "computed: 1/(1 - ema_decay) + queue_size/batch_size"


def test_the_verdict_is_that_of_the_frame_it_was_written_from(tmp_path: Path) -> None:
    trials = make_trials().drop(columns="number")
    trials.to_csv(tmp_path / "runs.csv", index=False)
    study = read_run_table(tmp_path / "runs.csv")
    own = compute_verdict(trials, ("ema_decay", "queue_size"))
    assert compute_verdict(study.trials, study.settings) == own
    assert own.verdict == "peaked"


def test_a_table_that_states_its_steps_tells_of_levels_beyond_the_run(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    make_trials(decays=(0.5, 0.9, 0.995), times=(8,)).assign(steps=160).to_csv(path, index=False)
    left_out, kept = read_run_table(path), read_run_table(path, beyond_run="keep")
    assert list(left_out.verdict().left_out) == [208]
    assert kept.verdict().left_out == ()
    assert "--beyond-run" not in left_out.command
    assert kept.command.endswith("runs.csv --beyond-run keep")


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn")
def test_a_written_trials_csv_gives_the_same_verdict(tmp_path: Path) -> None:
    first, _ = report_of(build_study(make_trials()), tmp_path / "a")
    again = read_run_table(tmp_path / "a" / "tables" / "trials.csv")
    second, page = report_of(again, tmp_path / "b")
    assert second.verdict.sentence == first.verdict.sentence
    assert "Runs read from trials.csv, not made by mtdlab." in page
    assert "Scores are assumed to be x 100" in page


@pytest.mark.usefixtures("figures_not_drawn")
@pytest.mark.parametrize("column", ["mtd", "ema_decay"])
def test_a_page_needs_no_more_than_the_required_columns(column: str, tmp_path: Path) -> None:
    rows = [(seed, level, 30 + seed + level) for seed in range(3) for level in (0.5, 0.6, 0.7)]
    lines = [
        f"{score},{seed},{level if column == 'ema_decay' else 20 * level},64,64"
        for seed, level, score in rows
    ]
    rest = "queue_size,batch_size" if column == "ema_decay" else "_a,_b"
    study = read_run_table(write(tmp_path / "t.csv", f"score,seed,{column},{rest}", *lines))
    report, _ = report_of(study, tmp_path / "out")
    assert report.verdict.levels == 3
    assert (tmp_path / "out" / "tables" / "trials.csv").is_file()


def test_an_export_of_wandb_is_read_by_its_own_names(tmp_path: Path) -> None:
    path = write(
        tmp_path / "wandb.csv",
        '"Name","ID","State","Notes","User","Tags","Created","Runtime","Sweep","GPU Type",'
        '"config.ema_decay.value","config.queue_size","config.batch_size","config.lr",'
        '"config.seed","summary.sts/test","summary.STSB","summary.loss","_step"',
        '"calm-sun-1","a1","finished","-","me","","2026-01-01T00:00:00.000Z","95","s1","A100",'
        '"0.75","512","64","1e-5","0","0.765","0.8","0.11","100"',
        '"dry-sea-2","a2","crashed","-","me","","2026-01-01T00:00:00.000Z","12","s1","A100",'
        '"0.85","512","64","1e-5","0","","","NaN","7"',
        '"odd-leaf-3","a3","finished","-","me","","2026-01-01T00:00:00.000Z","97","s1","H100",'
        '"0.85","512","64","3e-5","1","0.755","0.7","0.12","100"',
    )
    study = read_run_table(path, score="summary.sts/test")
    trials = study.trials
    assert trials["state"].tolist() == ["COMPLETE", "FAIL", "COMPLETE"]
    assert trials["score"].tolist()[::2] == pytest.approx([76.5, 75.5])
    assert np.isnan(trials["score"][1])
    assert trials["wall_seconds"].tolist() == [95, 12, 97]
    assert trials["run"].tolist() == ["calm-sun-1", "dry-sea-2", "odd-leaf-3"]
    assert trials["mtd"].round(3).tolist() == [12, 14.667, 14.667]
    assert list(study.settings) == ["ema_decay", "queue_size", "batch_size", "lr"]
    assert trials["lr"].tolist() == [1e-5, 1e-5, 3e-5]
    assert study.scores["task"].tolist() == ["STSB"] * 3
    assert study.scores["score"].tolist()[::2] == pytest.approx([80, 70])
    assert study.metric == "sts/test"
    assert "summary.loss" in study.facts["columns not read"]
    assert "multiplied by 100: all of them lie between -1 and 1" in study.description
    # two runs of 14.667 failed and completed on different devices
    warned = " ".join(list_warnings(StudyContext(study)))
    assert "device (A100 at MTD 12; H100 at MTD 14.7)" in warned


def test_columns_of_other_names_are_stated(small: Path) -> None:
    text = small.read_text().replace("ema_decay", "moco_m").replace("seed", "Random Seed")
    small.write_text(text.replace("score", "dev/sts"))
    study = read_run_table(
        small, score="dev/sts", columns={"ema_decay": "moco_m", "seed": "Random Seed"}
    )
    assert study.trials["mtd"].round(3).tolist() == [12, 14.667] * 2
    assert study.facts["score"].startswith("column dev/sts, higher is better.")
    small.write_text(text.replace("score", "dev/loss"))
    columns = {"seed": "Random Seed"}
    with pytest.raises(
        TableError, match=r"column 'dev/loss': lower is better .* --direction minim"
    ):
        read_run_table(small, score="dev/loss", columns=columns)
    lower, higher = (
        read_run_table(small, score="dev/loss", columns=columns, direction=direction, margin=0.5)
        for direction in get_args(Direction)[::-1]
    )
    assert (lower.metric, higher.metric) == ("-dev/loss", "dev/loss")
    assert lower.trials["score"].tolist() == (-higher.trials["score"]).tolist()
    assert lower.facts["score"].startswith(
        "column dev/loss, lower is better. Scores have a unit of their own: by their name."
    )


@pytest.mark.parametrize(
    ("name", "lower_is_better"),
    [
        *((name, True) for name in ("val_loss", "val_bpb", "test_error_rate", "dev/nll", "regret")),
        *((name, True) for name in ("logloss", "train.perplexity", "bits_per_byte", "WER", "RMSE")),
        *((name, True) for name in ("fpr", "fpr@95", "top1_err", "valLoss", "val/topOneError")),
        *(
            (name, True)
            for name in ("loss_val", "error@1", "false_alarm_rate", "ece", "latency_ms")
        ),
        *((name, False) for name in ("-val_bpb", "neg_log_loss", "lossless", "accuracy", "offer")),
        *((name, False) for name in ("per", "score", "paper", "super", "regretless")),
        *(
            (name, False)
            for name in ("valAcc", "tpr", "negLoss", "far_from", "terrain", "k", "val")
        ),
    ],
)
def test_names_of_losses(name: str, lower_is_better: bool) -> None:
    assert is_loss(name) == lower_is_better


def test_what_rounds_to_zero_has_no_sign() -> None:
    for write in (ScoreFormat("accuracy"), ScoreFormat("-val_loss")):
        assert write.difference(-0.001) == write.difference(0.001) == "0.00"
        assert write.score(-0.004) == "0.00"
        assert write.interval(-0.001, 0.5).startswith(("0.00", "-0.50"))
        assert "-0.00" not in write.interval(-0.001, 0.5)
    assert ScoreFormat("accuracy").difference(-0.006) == "-0.01"
    assert ScoreFormat("accuracy").difference(math.nan) == "+nan"


def test_scores_of_another_unit(small: Path) -> None:
    frame = pd.read_csv(small)
    frame = frame.assign(perplexity=400 + frame.pop("score"))
    with pytest.raises(TableError, match="'perplexity' has a unit of its own: state margin=NUMBER"):
        read_run_table(frame, score="perplexity", direction="minimize")
    study = read_run_table(frame, score="perplexity", direction="minimize", margin=2)
    assert study.trials["score"].tolist() == pytest.approx([-431.5, -432.5, -430.5, -433])
    assert "have a unit of their own: by their name." in study.facts["score"]
    assert study.margin == 2
    with pytest.raises(TableError, match="margin is -1; it must be a number of at least 0"):
        read_run_table(frame, score="perplexity", direction="minimize", margin=-1)


def test_a_score_that_may_be_a_fraction_needs_its_scale(small: Path) -> None:
    """A reward below 1 in the first look would else change its unit in a later one."""
    frame = pd.read_csv(small)
    frame = frame.assign(reward=frame.pop("score") / 100)
    with pytest.raises(TableError, match="all values of 'reward' lie between -1 and 1"):
        read_run_table(frame, score="reward")
    study = read_run_table(frame, score="reward", scale="own", direction="maximize", margin=0.01)
    assert study.trials["score"].tolist() == pytest.approx(frame["reward"].tolist())
    higher = frame.assign(reward=frame["reward"] + 1)
    with pytest.raises(TableError, match="state direction=minimize or direction=maximize, and mar"):
        read_run_table(higher, score="reward")
    stated = read_run_table(higher, score="reward", direction="maximize", margin=0.01)
    assert stated.trials["score"].min() > 1


def make_frame() -> pd.DataFrame:
    """24 runs with a learning rate, a momentum, a seed and an accuracy, without an MTD."""
    grid = product((0.01, 0.1, 0.3), (0.0, 0.9), range(4))
    rows = [
        (lr, momentum, seed, 0.8 + (lr == 0.1) / 20 + momentum / 50 + seed / 250 + lr * seed / 999)
        for lr, momentum, seed in grid
    ]
    return pd.DataFrame(rows, columns=["lr", "momentum", "seed", "accuracy"])


def test_a_frame_without_an_mtd_compares_its_configurations() -> None:
    """The best is lr 0.1 with momentum 0.9, whose first run is the thirteenth."""
    study = read_run_table(make_frame(), score="accuracy")
    assert (study.name, study.metric, study.command) == ("runs", "accuracy", "")
    assert list(study.settings) == ["lr", "momentum"]
    assert study.trials["score"][12] == pytest.approx(86.8)
    verdict = study.verdict()
    assert isinstance(verdict, BestVerdict)
    assert (verdict.verdict, verdict.ranked[0], verdict.may_be_best) == ("separated", 12, (12,))
    assert verdict.sentence.startswith("lr 0.1, momentum 0.9 is best. ")
    names = [label.get_text() for label in study.plot().axes[0].get_yticklabels()]
    assert "lr 0.1, momentum 0.9" in names
    assert study.facts["table"] == "DataFrame, 24 rows"
    assert "MTD" not in study.facts


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_settings_are_called_otherwise_than_the_columns_of_results(tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    names = ["configuration", *sorted(TAKEN_NAMES)]
    rows = [
        dict.fromkeys(names, value) | {"seed": seed, "score": 70 + value + draws.normal(scale=0.1)}
        for seed, value in product(range(3), (1, 2))
    ]
    study = read_run_table(pd.DataFrame(rows))
    assert set(study.settings) == {"configuration", *(f"run_{name}" for name in TAKEN_NAMES)}
    assert "n (here run_n)" in study.table["settings"]
    assert "configuration 2" in report_of(study, tmp_path)[1]


def test_an_mtd_without_its_parts_tells_configurations_apart() -> None:
    """The recommended mean is that of its level and learning rate; lr has an effect of its own."""
    trials = make_trials(times=(8,), noise=0.1)[["mtd", "seed", "score"]].assign(lr=0.01)
    trials["mtd"] += 1e-9 * trials["seed"]
    better = trials.assign(lr=0.1, score=trials["score"] + 2)
    without = trials[trials["mtd"].round(3) == 12].assign(mtd=np.nan, score=80.0)
    study = read_run_table(pd.concat([trials, better], ignore_index=True))
    shown = build_headline(StudyContext(study))
    best = better.groupby(better["mtd"].round(3))["score"].mean()
    question = "How does score depend on the maximum traceable distance (MTD)?"
    assert shown.question == question
    assert shown.recommendation is not None
    assert shown.recommendation.settings == {"lr": "0.1", "MTD": format_mtd(float(best.idxmax()))}
    assert f"Mean score {best.max():.2f} (" in shown.recommendation.text
    effects = compute_effects(study)
    assert effects is not None
    of_lr = effects.settings.set_index("setting").loc["lr", "difference"]
    assert of_lr == pytest.approx(2, abs=1e-9)
    assert next(iter(list_varied(study))) == "MTD"
    alone = StudyContext(read_run_table(pd.concat([trials, without]).drop(columns="lr")))
    assert build_headline(alone).question == question
    [text] = [text for text in list_caveats(alone) if "without an MTD" in text]
    assert text.endswith("whose best configuration has a mean of 80.00.")
    # an MTD that follows from its parts is none
    assert "mtd" not in read_run_table(make_trials().drop(columns="number")).settings


def test_a_frame_is_the_same_as_its_file(tmp_path: Path) -> None:
    make_frame().to_csv(tmp_path / "runs.csv", index=False)
    of_frame, of_file = (
        read_run_table(table, score="accuracy") for table in (make_frame(), tmp_path / "runs.csv")
    )
    pd.testing.assert_frame_equal(of_frame.trials, of_file.trials)


def test_what_the_index_of_a_frame_tells_is_a_column() -> None:
    frame = make_frame()
    by_lr_and_seed = read_run_table(frame.set_index(["lr", "seed"]), score="accuracy")
    assert by_lr_and_seed.trials["lr"].tolist() == frame["lr"].tolist()
    assert by_lr_and_seed.trials["seed"].tolist() == frame["seed"].tolist()
    frame.index = pd.Index([f"läuft-{row}" for row in range(24)])
    named = read_run_table(frame, score="accuracy").trials
    assert named["run"][3] == "läuft-3"
    # what is left of the numbers of the rows tells nothing
    part = read_run_table(make_frame().query("lr > 0.05"), score="accuracy")
    assert list(part.settings) == ["lr", "momentum"]
    assert "run" not in part.trials


def test_parts_of_an_mtd_alone_are_settings(tmp_path: Path) -> None:
    rows = [f"{30 + seed},{seed},{size}" for seed, size in product((0, 1), (32, 64))]
    study = read_run_table(write(tmp_path / "t.csv", "score,seed,batch_size", *rows))
    assert list(study.settings) == ["batch_size"]
    assert not study.trials["mtd"].notna().any()
    missing = read_run_table(write(tmp_path / "t.csv", "score,seed,ema_decay", "31,0,.5"))
    assert missing.facts["MTD"] == (
        "none: no column mtd, and no queue_size, batch_size to compute it from"
    )


def test_what_is_wrong_with_a_frame_names_the_parameter() -> None:
    with pytest.raises(TableError, match=r"^the DataFrame: no column score.* with score=COLUMN$"):
        read_run_table(make_frame())
    with pytest.raises(TableError, match=r'with columns=\{"seed": COLUMN\}, or add one'):
        read_run_table(make_frame().drop(columns="seed"), score="accuracy")
    with pytest.raises(TableError, match="the DataFrame: empty"):
        read_run_table(pd.DataFrame())


def test_a_run_without_a_score_is_a_failure_whatever_its_state(tmp_path: Path) -> None:
    rows = ["31,0,FINISHED", ",1,FINISHED", "30,2,FAILED", "29,3,RUNNING"]
    trials = read_run_table(write(tmp_path / "t.csv", "score,seed,status", *rows)).trials
    assert trials["state"].tolist() == ["COMPLETE", "FAIL", "FAIL", "RUNNING"]
    missing, failed = "no score in the table", "state FAILED in the table"
    assert trials["reason"].tolist() == ["", missing, failed, ""]
    # the last score before the failure, or a placeholder
    assert np.isnan(trials["score"][2])


def test_a_setting_without_a_value_has_the_value_none() -> None:
    frame = make_frame().assign(schedule=lambda rows: rows["lr"].map({0.1: "cosine"}))
    frame["decay"] = frame["lr"].map({0.1: 0.5})
    frame["nesterov"] = frame["momentum"] > 0
    study = read_run_table(frame, score="accuracy")
    assert study.trials["schedule"].unique().tolist() == ["none", "cosine"]
    assert study.trials["nesterov"].unique().tolist() == ["False", "True"]
    varied = list_varied(study)
    assert varied["schedule"] == "cosine, none"
    assert varied["decay"] == "0.5, none"


def test_runs_that_repeat_a_seed_count_once_and_are_named() -> None:
    once, twice = make_frame(), pd.concat([make_frame(), make_frame()])
    repeated = read_run_table(twice, score="accuracy")
    assert (
        "24 of 48 complete runs have the settings and the seed of an"
        in (repeated.facts["repeated"])
    )
    assert repeated.facts["repeated"] in list_warnings(StudyContext(repeated))
    assert "repeated" not in read_run_table(once, score="accuracy").facts
    assert repeated.verdict() == read_run_table(once, score="accuracy").verdict()
    with pytest.raises(TableError, match="row 25, column run_id: 'r0'; a run has one row"):
        read_run_table(twice.assign(run_id=[f"r{row}" for row in range(24)] * 2), score="accuracy")


def test_the_settings_can_be_named() -> None:
    frame = make_frame().assign(best_epoch=lambda rows: rows["seed"] % 2)
    assert list(read_run_table(frame, score="accuracy").settings) == [
        "lr",
        "momentum",
        "best_epoch",
    ]
    named = read_run_table(frame, score="accuracy", settings=["lr", "momentum"])
    assert list(named.settings) == ["lr", "momentum"]
    with pytest.raises(TableError, match="no column 'mometum'; did you mean 'momentum'"):
        read_run_table(frame, score="accuracy", settings=["mometum"])


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_page_of_a_table_without_an_mtd_says_nothing_of_one(tmp_path: Path) -> None:
    _, page = report_of(read_run_table(make_frame(), score="accuracy"), tmp_path)
    text = page.partition("<footer")[0]
    assert "MTD" not in text
    assert "study file" not in text.lower()
    assert "Run again" not in page
    assert "lr 0.1, momentum 0.9 is best" in text


@pytest.mark.usefixtures("figures_not_drawn")
def test_configurations_without_a_seed_in_common_are_told_so(tmp_path: Path) -> None:
    frame = make_frame().assign(seed=range(24))
    _, page = report_of(read_run_table(frame, score="accuracy"), tmp_path)
    text = re.sub(r"<[^>]+>", "", page)
    assert "It shares fewer than two seeds with any other one." in text
    assert "if a column of results counts as a setting, name the settings (--setting)." in text
    assert "Run the 6 configurations with the same seeds, at least 3" in text


@pytest.mark.usefixtures("figures_not_drawn")
def test_more_runs_are_counted_in_configurations(tmp_path: Path) -> None:
    """Runs that repeat a seed are not run again with the next one."""
    frame = make_frame().assign(accuracy=lambda rows: rows["accuracy"] * 0 + 0.8)
    frame["accuracy"] += np.random.default_rng(0).normal(0, 0.03, len(frame))
    twice = pd.concat([frame, frame[frame["seed"] == 0]])
    _, page = report_of(read_run_table(twice, score="accuracy"), tmp_path)
    told = re.search(r"as estimated, (\d+) seeds would decide here \((\d+) trials", page)
    assert told is not None
    assert int(told[2]) == 6 * (int(told[1]) - 4)


def test_settings_repeat_over_seeds_and_measurements_do_not(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        f"{HEADER},pooling,loss,grad_norm,empty",
        "31.5,0,0.75,512,64,cls,0.51,1.25,",
        "32.5,0,0.85,512,64,mean,0.52,1.5,",
        "30.5,1,0.75,512,64,cls,0.53,1.75,",
        "33.0,1,0.85,512,64,mean,0.54,2.0,",
    )
    study = read_run_table(path)
    assert list(study.settings) == ["ema_decay", "queue_size", "batch_size", "pooling"]
    assert study.trials["pooling"].tolist() == ["cls", "mean", "cls", "mean"]
    assert study.facts["columns not read"] == "loss, grad_norm, empty"


@pytest.mark.parametrize(
    ("scores", "scale", "read", "rule"),
    [
        ((0.315, 0.325), None, (31.5, 32.5), "multiplied by 100: all of them lie between -1"),
        ((31.5, 0.5), None, (31.5, 0.5), "assumed to be x 100: not all of them lie"),
        ((31.5, 2.5), None, (31.5, 2.5), "x 100: not all of them lie"),
        ((0.9, 0.5), "percent", (0.9, 0.5), "x 100: they are read with --scale percent"),
        ((0.9, -0.1), "fraction", (90.0, -10.0), "they are read with --scale fraction"),
    ],
)
def test_scores_are_scaled_by_a_rule_that_the_page_states(
    tmp_path: Path, scores: tuple[float, float], scale: str, read: tuple[float, ...], rule: str
) -> None:
    rows = [f"{score},0,{mtd}" for score, mtd in zip(scores, (12, 14), strict=True)]
    study = read_run_table(write(tmp_path / "t.csv", "score,seed,mtd", *rows), scale=scale)
    assert study.trials["score"].tolist() == pytest.approx(read)
    assert rule in study.description
    assert rule in study.facts["score"]


def test_a_run_without_a_score_failed_and_one_without_an_mtd_has_none(tmp_path: Path) -> None:
    rows = ["31,0,12", "nan,1,12", "inf,2,12", "30,0,", "29,1,0"]
    trials = read_run_table(write(tmp_path / "t.csv", "score,seed,mtd", *rows)).trials
    assert trials["state"].tolist() == ["COMPLETE", "FAIL", "FAIL", "COMPLETE", "COMPLETE"]
    assert trials["reason"].tolist() == ["", *["no score in the table"] * 2, "", ""]
    assert trials["mtd"].isna().tolist() == [False] * 3 + [True] * 2


STATES = {
    **dict.fromkeys(("COMPLETE", "FINISHED", "finished", "keep", "discard", "done"), "COMPLETE"),
    **dict.fromkeys(("FAIL", "FAILED", "KILLED", "failed", "crashed", "preempted"), "FAIL"),
    **dict.fromkeys(("crash", "error", "timeout"), "FAIL"),
    **dict.fromkeys(("RUNNING", " running "), "RUNNING"),
    **dict.fromkeys(("WAITING", "SCHEDULED"), "WAITING"),
    "PRUNED": "PRUNED",
}


@pytest.mark.parametrize("column", ["state", "State", "status", "Status"])
def test_the_states_of_optuna_wandb_and_mlflow_are_read(tmp_path: Path, column: str) -> None:
    """A score that a run had reported before it ended does not make it complete."""
    rows = [f"31,{seed},12,{state}" for seed, state in enumerate(STATES)]
    study = read_run_table(write(tmp_path / "t.csv", f"score,seed,mtd,{column}", *rows))
    assert study.trials["state"].tolist() == list(STATES.values())
    assert list(study.settings) == []


def test_two_columns_of_states_agree_or_one_is_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "score,seed,mtd,status,state", "31,0,12,KILLED,failed")
    assert read_run_table(path).trials["state"].tolist() == ["FAIL"]
    write(path, "score,seed,mtd,status,state", "31,0,12,fine,complete")
    study = read_run_table(path, columns={"state": "state"})
    assert study.trials["state"].tolist() == ["COMPLETE"]
    assert study.facts["columns not read"] == "status"


REFUSED = [
    (["score,seed,mtd", "31,0"], r"row 1 has 2 cells; it must have 3, as the header"),
    (
        ["score,seed,mtd", "31,0,12", "x,1,12"],
        r"row 2, column score: 'x'; it must be a finite number",
    ),
    (["score,seed,mtd", "131,0,12"], r"row 1, column score: '131'; a score must be from -100 to"),
    (["score,seed,mtd", "31,0.5,12"], r"row 1, column seed: '0.5'; a seed must be a whole number"),
    (["score,seed,mtd", "31,,12"], r"row 1, column seed: ''; a completed run must have a seed"),
    (
        ["score,seed,mtd", "31,,12", "31,1,12", "32,,14"],
        r"row 1, 3, column seed.* delete such rows: the others \(1\) can be",
    ),
    (["score,seed,mtd", "31,0,0.5"], r"row 1, column mtd: '0.5'; an MTD must be at least 1"),
    ([HEADER, "31,0,1,512,64"], r"row 1, column ema_decay: '1'; it must be at least 0 and below 1"),
    ([HEADER, "31,0,.5,-1,64"], r"column queue_size: '-1'; it must be a whole number of at least"),
    ([HEADER, "31,0,.5,512,0"], r"column batch_size: '0'; it must be a whole number of at least 1"),
    (
        ["score,seed,mtd,Status", "31,0,12,FINISHED", "31,0,12,OK"],
        r"row 2, column Status: 'OK'; a state must be one of complete,.* rename the column if",
    ),
    (
        ["score,seed,mtd,status,State", "1,0,12,FAILED,failed", "1,1,12,FINISHED,running"],
        r"row 2, column status, State: 'FINISHED, running'; these are different states of one run",
    ),
    (["score,seed,mtd,state", "31,0,12,fine"], r"column state: 'fine'; a state must be one of com"),
    (["sts,seed,mtd", "31,0,12"], r"no column score among sts, seed, mtd; name .* with --score"),
    (["score,mtd", "31,12"], r"no column seed among score, mtd; every run needs its seed"),
    (["score,seed,seed,mtd", "31,0,0,12"], r"column 'seed' occurs twice; each name must be uniq"),
    (["score,config.seed,seed.value,mtd", "31,0,0,12"], r"both mean seed; choose one with"),
    (["summary,config,name", "a,b,c"], r"column 'config' has all settings of a run in one cell"),
    ([""], r"t.csv: empty; it must have a row for each run, below the names"),
    (["score,seed,mtd"], r"t.csv: no row below the header; a row is a run"),
    (
        ["mtd,mean,low,high", "5,1,0,2", "6,1,0,2"],
        r"2 level means; between 3 and 100 can be compared",
    ),
    (
        ["mtd,mean,low,high", "5,1,0,2", "6,3,0,2", "7,1,0,2"],
        r"row 2, column mtd, mean, low, high: '6, 3, 0, 2'; the mean must lie inside its band",
    ),
    (
        ["mtd,mean,low,high", "5,1,0,2", "5,1,0,2", "7,1,0,2"],
        r"row 2, column .*: '5, 1, 0, 2'; each level must occur once",
    ),
    (
        ["mtd,mean,low,high", "5,1,0,2", "6,1,0,", "7,1,0,2"],
        r"row 2, column .*: '6, 1, 0, '; a level mean needs mtd, mean, low and high",
    ),
]


@pytest.mark.parametrize(("lines", "message"), REFUSED)
def test_what_is_wrong_is_said_in_one_sentence_with_its_place(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    path = write(tmp_path / "t.csv", *lines)
    with pytest.raises(TableError, match=message) as error:
        open_table(path, Reading())
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"none\.csv: no such file"):
        read_run_table(tmp_path / "none.csv")
    (tmp_path / "utf16.csv").write_text("score,seed,mtd", encoding="utf-16")
    with pytest.raises(TableError, match="byte 0 is not UTF-8; save the file as UTF-8"):
        read_run_table(tmp_path / "utf16.csv")
    (tmp_path / "long.csv").write_text("score,seed,mtd\n" + "1" * 200_000, encoding="utf-8")
    with pytest.raises(TableError, match=r"not a CSV file \(field larger than"):
        read_run_table(tmp_path / "long.csv")
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(TableError, match="not a Parquet file"):
        read_run_table(tmp_path / "bad.parquet")
    with pytest.raises(TableError, match="no column 'sore'; did you mean 'score'"):
        read_run_table(write(tmp_path / "t.csv", HEADER, *ROWS), score="sore")
    with pytest.raises(TableError, match="--column ema_dcay=score: unknown name 'ema_dcay'; "):
        read_run_table(tmp_path / "t.csv", columns={"ema_dcay": "score"})
    with pytest.raises(TableError, match=r"column score: '31.5'; with --scale fraction, stated"):
        read_run_table(tmp_path / "t.csv", scale="fraction")


def test_more_rows_than_the_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "MAX_ROWS", 3)
    path = write(tmp_path / "t.csv", HEADER, *ROWS)
    with pytest.raises(TableError, match="more than 3 rows; at most 3 are read"):
        read_run_table(path)


def test_a_byte_order_mark_and_blank_lines_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([HEADER, ROWS[0], "", ROWS[1], ""]), encoding="utf-8-sig")
    assert read_run_table(path).trials["score"].tolist() == [31.5, 32.5]


@pytest.mark.usefixtures("png_not_drawn")
def test_hostile_names_and_cells_are_text_on_the_page(tmp_path: Path) -> None:
    attack = "<img src=x onerror=alert(1)>"
    runs = product((0, 1), (5, 6))
    rows = [f"{30 + mtd + seed},{seed},{mtd},{attack}{mtd},{attack}" for seed, mtd in runs]
    path = write(tmp_path / "t.csv", f"score,seed,mtd,{attack},versions", *rows)
    _, page = report_of(read_run_table(path), tmp_path / "out")
    assert attack not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_parquet_is_the_same_as_csv(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pd.read_csv(small).to_parquet(tmp_path / "runs.parquet")
    trials = read_run_table(tmp_path / "runs.parquet").trials
    pd.testing.assert_frame_equal(trials, read_run_table(small).trials)


def test_a_table_of_means_is_recognised_by_its_columns(tmp_path: Path) -> None:
    rows = ("8,0.3,0.29,0.31", "5,0.2,0.19,0.21", "9,.1,0,.2")
    path = write(tmp_path / "means.csv", "mtd,mean,low,high", *rows)
    means = open_table(path, Reading())
    assert isinstance(means, LevelMeans)
    assert means.frame["mtd"].tolist() == [5, 8, 9]
    assert means.frame["mean"].tolist() == pytest.approx([20, 30, 10])
    assert means.source.endswith("multiplied by 100: all of them lie between -1 and 1.")
