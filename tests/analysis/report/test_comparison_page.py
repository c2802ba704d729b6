"""Pages of studies that compare methods and configurations: budget, names, one interval, costs."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import NO_SEEDS, NuisanceTrials, RecordedSetting, StudyFrames
from mtdlab.analysis.data.metric import POINTS
from mtdlab.analysis.data.runs import free_settings
from mtdlab.analysis.questions.best import rank
from mtdlab.analysis.questions.effect import describe_effects
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.headline import build_headline
from mtdlab.analysis.report.summary import summarise_study
from mtdlab.analysis.report.text_tables import write_results
from mtdlab.analysis.report.topics import configurations, methods
from mtdlab.analysis.report.topics import effects as effects_topic
from mtdlab.analysis.statistics import configurations as named
from mtdlab.analysis.statistics.configurations import compute_configurations, name_rows
from mtdlab.analysis.statistics.methods import compute_methods, equal_budget
from tests.analysis.conftest import build_study, make_trials, report_of
from tests.analysis.questions.conftest import recorded

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
SENTENCES = 2048
SEEDS = range(4)
# method, batch size, queue size, learning rate, MTD, points above the seed
ROWS = (
    ("simcse", 64, np.nan, 0.002, np.nan, 1.0),
    ("simcse", 512, np.nan, 0.004, np.nan, 6.0),
    ("mocose", 64, 64.0, 0.001, 7.667, 0.0),
    ("mocose", 64, 448.0, 0.001, 13.667, 3.0),
)


def queue_or_batch(*, noise: float = 0.2, tuned: bool = True) -> StudyFrames:
    """Four configurations of two methods at equal sentences, each with its learning rate."""
    one = make_trials(seeds=SEEDS, decays=(0.85,), times=(8,), noise=0)
    rng = np.random.default_rng(1)
    rows = [
        one.assign(
            **{"method": method, "batch_size": batch, "queue_size": queue, "learning_rate": rate},
            **{"mtd": mtd, "score": one["score"] + above + noise * rng.normal(size=len(one))},
            **{"steps": SENTENCES // batch, "evaluate_every": SENTENCES // batch // 2},
            **{"wall_seconds": 10.0 + batch / 64 + one["seed"], "peak_memory": 1e6 * batch},
        )
        for method, batch, queue, rate, mtd, above in ROWS
    ]
    trials = pd.concat(rows, ignore_index=True).assign(number=range(len(ROWS) * len(one)))
    study = build_study(trials)
    added = {name: RecordedSetting(name) for name in ("steps", "evaluate_every", "learning_rate")}
    chose = trials[trials["seed"].isin([*SEEDS][:2])].assign(
        group=trials["mtd"].astype("str"), configuration=0, selected=trials["score"]
    )
    choice = NuisanceTrials(("learning_rate",), (), 0, {}, chose)
    settings = {**study.settings, **added}
    return dataclasses.replace(study, settings=settings, tuning=choice if tuned else None)


def headline_of(study: StudyFrames) -> object:
    return build_headline(StudyContext(study))


def test_methods_at_an_equal_budget_open_the_page_each_at_its_best_and_its_rate() -> None:
    shown = headline_of(queue_or_batch())
    best, other = (
        "SimCSE (batch size 512, learning rate 0.004)",
        "MoCoSE (queue size 448, learning rate 0.001)",
    )
    assert shown.answer == f"At an equal budget, {best} is best"
    assert shown.effect.text == f"{best} minus {other}"
    study = queue_or_batch()
    table = compute_configurations(study, study.trials).set_index("mean")
    row = table[table["queue_size"] == 448].iloc[0]
    assert shown.effect.value == f"{-row['difference']:+.2f}"
    assert f"{-row['difference_high']:.2f} to {-row['difference_low']:.2f}" in shown.effect.interval
    assert shown.certainty.startswith(
        "Methods compared at an equal budget of 2,048 sentences a trial, each with the "
        "learning rate that 2 seeds chose for it. Each method is at its best configuration. "
    )
    assert shown.recommendation.settings == {
        "method": "simcse",
        "batch_size": "512",
        "learning_rate": "0.004",
    }
    assert "learning_rate" not in shown.question
    assert not any("MTD" in caveat for caveat in shown.caveats)


def test_budgets_that_differ_are_not_called_equal() -> None:
    study = queue_or_batch()
    assert equal_budget(study.trials) == SENTENCES
    # 100 batches of 33 and 51 of 65 are equal to within a batch
    whole = study.trials.iloc[:2].assign(steps=[100, 51], batch_size=[33, 65])
    assert equal_budget(whole) == 3300
    longer = study.trials.assign(steps=study.trials["steps"].where(study.trials.index > 0, 90))
    assert equal_budget(longer) is None
    assert equal_budget(study.trials.drop(columns="steps")) is None
    assert equal_budget(study.trials.assign(steps=np.nan)) is None
    shown = headline_of(dataclasses.replace(study, trials=longer))
    assert "budget" not in shown.answer + shown.certainty


def test_several_methods_are_the_question_beside_a_curve_over_mtd_too() -> None:
    study = queue_or_batch()
    curve = dataclasses.replace(study, trials=study.trials[(study.trials["batch_size"] == 64)])
    shown = headline_of(curve)
    assert "At an equal budget, MoCoSE (learning rate 0.001) at MTD 13.7" in shown.answer
    assert (
        "Methods compared at an equal budget of 2,048 sentences a trial, each with the "
        "learning rate that 2 seeds chose for it. Each method is at its best configuration."
    ) in shown.certainty
    assert StudyContext(curve).verdict.sentence in summarise_study(StudyContext(curve))


def test_steps_that_follow_from_the_batch_size_are_not_named() -> None:
    trials = queue_or_batch().trials
    names = ["method", "batch_size", "queue_size", "steps", "evaluate_every"]
    assert set(free_settings(trials, names)) == {"method", "batch_size", "queue_size"}
    longer = trials.assign(steps=trials["steps"] * (1 + trials["seed"] % 2))
    assert "steps" in free_settings(longer, names)
    # a rate that falls with the batch size is no number of steps
    rates = trials.assign(learning_rate=0.1 / trials["batch_size"])
    assert "learning_rate" in free_settings(rates, ["batch_size", "learning_rate"])


def test_names_keep_the_setting_that_distinguishes_and_give_up_the_chosen_ones() -> None:
    table = pd.DataFrame(
        {
            "number": [0, 5],
            "learning_rate": [0.001, 0.002],
            "a_setting_with_a_long_name": [0.1, 0.1],
            "encoder": [
                "/data/encoders/of/the/group/small-1",
                "/data/encoders/of/the/group/small-2",
            ],
        }
    )
    names = ["learning_rate", "a_setting_with_a_long_name", "encoder"]
    full = name_rows(table, names, beside=["learning_rate"], most=200)
    assert full[0] == (
        "a_setting_with_a_long_name 0.1, encoder …rs/of/the/group/small-1, learning rate 0.001"
    )
    short = name_rows(table, names, beside=["learning_rate"], most=65)
    assert short == [
        "a_setting_with_a_long_name 0.1, encoder …rs/of/the/group/small-1",
        "a_setting_with_a_long_name 0.1, encoder …rs/of/the/group/small-2",
    ]
    fewest = name_rows(table, names, beside=["learning_rate"], most=40)
    assert fewest == ["encoder …rs/of/the/group/small-1", "encoder …rs/of/the/group/small-2"]
    assert name_rows(table, names, beside=["learning_rate"], most=20)[1].startswith("trial 5: ")


def test_variants_of_a_method_are_named_by_what_is_not_the_default() -> None:
    table = pd.DataFrame(
        {
            "number": range(4),
            "method": ["SimCSE", "MoCoSE", "MoCoSE", "MoCoSE"],
            "detach_keys": [None, True, False, True],
            "projection_layers": [np.nan, 1, 1, 0],
        }
    )
    names, defaults = [*table][1:], {"detach_keys": True, "projection_layers": 1}
    full = name_rows(table, names, beside=[], most=80, defaults=defaults)
    assert full[2] == "MoCoSE (detach_keys false, projection layers 1)"
    assert name_rows(table, names, beside=[], most=40, defaults=defaults) == [
        *("SimCSE", "MoCoSE", "MoCoSE (detach_keys false)", "MoCoSE (projection layers 0)")
    ]
    # without the default two rows would have one name
    alike = table.assign(projection_layers=[np.nan, 1, np.nan, 0], detach_keys=True)
    kept = name_rows(alike, names, beside=[], most=20, defaults=defaults)
    assert kept[1:3] == ["trial 1: MoCoSE (projection layers 1)", "MoCoSE"]


@pytest.mark.parametrize(
    "noise", [2.0, *(pytest.param(noise, marks=pytest.mark.slow) for noise in (0.2, 6.0))]
)
def test_what_is_called_worse_is_what_its_interval_says(noise: float) -> None:
    """In the tables, the sentences and the answer alike."""
    study = queue_or_batch(noise=noise)
    context = StudyContext(study)
    table = rank(context.best.table)
    assert table["may_be_best"].tolist() == (~(table["difference_high"] < 0)).tolist()
    other = table.drop_duplicates("method").iloc[1]
    worse = int((~table["may_be_best"]).sum())
    assert context.best.describe()[0].startswith(f"{worse} of 3 other configurations ")
    shown = headline_of(study)
    assert shown.answer.endswith("is best") == (not other["may_be_best"])
    assert ("−" in shown.effect.interval or "-" in shown.effect.interval) == other["may_be_best"]


def test_worse_configurations_are_counted_by_their_intervals() -> None:
    low = make_trials(decays=(0.85,), times=(8,), seeds=range(6)).assign(mtd=np.nan)
    rows = [
        low.assign(learning_rate=rate, score=low["score"] - at) for at, rate in enumerate((1, 2, 3))
    ]
    study = build_study(pd.concat(rows, ignore_index=True).assign(number=range(18)))
    context = StudyContext(study)
    table = configurations.compute(context)
    worse = int((table["difference_high"] < 0).sum())
    text = context.best.describe()[0]
    assert text.startswith(f"{worse} of 2 other configurations ")
    # a configuration of one seed is not compared, and not called worse
    few = dataclasses.replace(study, trials=study.trials.iloc[:13])
    context = StudyContext(few)
    table = configurations.compute(context)
    alone = table[table["n"] == 1].iloc[0]
    assert np.isnan(alone["difference_low"])
    assert alone["may_be_best"]
    assert context.best.describe()[0].startswith("The other compared configuration is ")


@pytest.mark.usefixtures("figures_not_drawn")
def test_seconds_and_memory_stand_beside_the_score(tmp_path: Path) -> None:
    study = queue_or_batch()
    _, page = report_of(study, tmp_path, methods.TOPIC)
    table = pd.read_csv(tmp_path / "tables" / "methods.csv").set_index("number")
    seeds = np.mean(list(SEEDS))
    assert table.loc[4, ["seconds", "memory"]].tolist() == pytest.approx([18 + seeds, 512])
    assert table.loc[8, ["seconds", "memory"]].tolist() == pytest.approx([11 + seeds, 64])
    assert "seconds of a trial" in page
    assert "peak memory, MB" in page


def test_a_row_of_a_method_with_several_batch_sizes_is_one_configuration() -> None:
    study = queue_or_batch()
    table = compute_methods(study, study.trials)
    assert len(table) == len(ROWS)
    assert table.loc[table["method"] == "simcse", "batch_size"].tolist() == [64, 512]


def grid(together: float) -> StudyFrames:
    """Three queues by two temperatures of a method without an MTD; the score rises by 3 points."""
    one = make_trials(seeds=range(6), decays=(0.85,), times=(8,), noise=0).assign(mtd=np.nan)
    rng = np.random.default_rng(3)
    rows = [
        one.assign(
            queue_size=size,
            temperature=temperature,
            score=one["score"]
            + 3 * at * (1 if temperature == 0.05 else 1 - together)
            + 0.2 * rng.normal(size=len(one)),
        )
        for at, size in enumerate((64, 256, 1024))
        for temperature in (0.05, 0.1)
    ]
    trials = pd.concat(rows, ignore_index=True).assign(number=range(36))
    study = build_study(trials)
    settings = {**study.settings, "temperature": RecordedSetting("temperature")}
    return dataclasses.replace(study, settings=settings)


def test_an_interaction_is_on_the_first_screen_with_its_interval() -> None:
    study = grid(2.0)
    found = StudyContext(study).effects
    row = found.interactions.iloc[0]
    text = (
        f"The effect of queue size depends on temperature: the gain of 1024 over 64 is "
        f"{row['difference']:.2f} points (95 % CI {row['low']:.2f} to {row['high']:.2f}) larger "
        "with temperature 0.05 than with 0.1. Highest means by temperature: queue size 1024 at "
        "0.05, 64 at 0.1."
    )
    assert text in headline_of(study).certainty
    assert text in describe_effects(found, POINTS)


def test_without_an_interaction_the_first_screen_is_silent() -> None:
    study = grid(0.0)
    assert "depends on" not in headline_of(study).certainty
    found = StudyContext(study).effects
    none = "No effect depends significantly on the value of another setting."
    assert describe_effects(found, POINTS)[-1] == none


@pytest.mark.usefixtures("figures_not_drawn")
def test_interactions_stand_beside_a_curve_over_mtd(tmp_path: Path) -> None:
    study = grid(2.0)
    distance = study.trials["queue_size"] / 64 + 6.667
    curve = dataclasses.replace(study, trials=study.trials.assign(mtd=distance))
    report_of(curve, tmp_path, effects_topic.TOPIC)
    table = pd.read_csv(tmp_path / "tables" / "interactions.csv")
    assert len(table) == 3
    assert (table["first"] == "queue_size").all()
    assert "depends on temperature" in headline_of(curve).certainty
    # the parts of MTD alone are what the section on MTD is about
    of_mtd = build_study(make_trials(decays=(0.75, 0.85), times=(1, 8)))
    assert StudyContext(of_mtd).effects is None


def test_the_cells_of_many_columns_are_formatted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name that is left out had all others formatted again: the square of the columns."""
    names = [f"column{number}" for number in range(40)]
    table = pd.DataFrame({name: [0.1, 0.2, 0.3] for name in names}).assign(number=range(3))
    formatted: list[str] = []
    plain = named.format_value

    def counted(name: str, value: object) -> str:
        formatted.append(name)
        return plain(name, value)

    monkeypatch.setattr(named, "format_value", counted)
    assert name_rows(table, names, beside=[], most=12)[0] == "column0 0.1"
    assert len(formatted) == table.size - len(table)


def test_the_results_as_latex_have_a_bold_best_only_where_it_is_separated() -> None:
    clear, noisy = StudyContext(queue_or_batch()), StudyContext(queue_or_batch(noise=20))
    lines = write_results(clear).splitlines()
    (bold,) = [line for line in lines if r"\textbf" in line]
    assert lines[lines.index(bold) - 2 :][:2] == [r"before training & 30.00 \\", r"\midrule"]
    best = clear.best.ranked.iloc[0]
    half = best["high"] - best["mean"]
    assert bold.endswith(rf"& \textbf{{{best['mean']:.2f}}} $\pm$ {half:.2f} \\")
    assert r"SimCSE (batch size 512" in bold
    assert f"% Means of {len(SEEDS)} seeds; +- is half of the 95 % CI over seeds" in lines[0]
    assert r"\textbf" not in write_results(noisy)
    unseeded = dataclasses.replace(clear.study, table={"seed": NO_SEEDS})
    assert not unseeded.has_seeds
    assert not write_results(StudyContext(unseeded))
    assert not build_headline(StudyContext(build_study(make_trials().iloc[:0]))).results


def test_means_without_an_interval_are_not_said_to_have_one() -> None:
    """Two seeds 20 points apart leave any score possible, also impossible ones."""
    study = queue_or_batch()
    few = study.trials[study.trials["seed"].isin(SEEDS[:2])]
    few = few.assign(score=40 + 20 * few["seed"])
    context = StudyContext(dataclasses.replace(study, trials=few))
    assert write_results(context).startswith("% Means of 2 seeds, too few for a CI.")
    table = configurations.show_ranked(context, context.best.ranked, "configurations")
    assert table.caption.startswith("Mean score (of too few seeds for a CI), the difference")
    assert "95 % CI" not in [column.label for column in table.columns]


def test_a_row_with_fewer_seeds_than_others_is_not_said_to_be_perhaps_the_best() -> None:
    table = pd.DataFrame(
        {
            "may_be_best": [True, True, True, False, False, True],
            "difference_low": [np.nan, -1.0, -9.0, -5.0, -6.0, np.nan],
            "seeds": [5, 5, 2, 5, 2, 1],
        }
    )
    assert configurations.say_may_be_best(table) == (
        ["yes", "yes", "not decided (2 seeds)", "no", "no", "not compared"]
    )
    # where nothing is tested no row is said to be
    none = table.assign(difference_low=np.nan, may_be_best=True)
    assert {*configurations.say_may_be_best(none)} == {"not compared"}


def test_a_question_beside_the_main_one_says_what_may_be_the_best_without_intervals() -> None:
    asked = dataclasses.replace(grid(0.0), plans=(recorded({"effect": "temperature"}),))
    context = StudyContext(asked)
    assert context.best.basis.explores
    shown = configurations.show_ranked(context, context.best.table, "configurations")
    labels = [column.label for column in shown.columns]
    assert "may be the best" in labels
    assert not any(label.startswith("difference, ") for label in labels)
