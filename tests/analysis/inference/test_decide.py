"""Keep or drop a change, or run more seeds: the rules, and the error that looks share."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis import decide
from mtdlab.analysis.data.frames import LOOK_COLUMNS, Baseline, Plan, RecordedSetting, StudyFrames
from mtdlab.analysis.inference.decide import SessionComparison, find_comparison
from mtdlab.analysis.inference.looks import boundaries_at, find_open_nominal
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.report.context import StudyContext

ALPHA = 0.05


def study_of(scores: Floats, **fields: Any) -> StudyFrames:
    """A table (S, C) as runs of configurations c0, c1 …; NaN: a run that failed."""
    seed, column = np.indices(scores.shape)
    trials = pd.DataFrame(
        {
            "number": range(scores.size),
            "state": np.where(np.isfinite(scores.ravel()), "COMPLETE", "FAIL"),
            "seed": seed.ravel(),
            "mtd": np.nan,
            "name": [f"c{at}" for at in column.ravel()],
            "rate": column.ravel() / 10,
            "score": scores.ravel(),
        }
    )
    settings = {name: RecordedSetting(name) for name in ("name", "rate")}
    return StudyFrames("runs", "accuracy", len(trials), trials, settings=settings, **fields)


def pair_of(differences: Sequence[float], **fields: Any) -> StudyFrames:
    """Two configurations whose differences by seed these are."""
    values = np.array(differences, dtype=np.float64)
    own = 5 * np.random.default_rng(1).standard_normal(len(values))
    return study_of(np.column_stack([own, own + values]), **fields)


@pytest.mark.parametrize(
    ("differences", "margin", "answer"),
    [
        ([0.9, 1.0, 1.1, 1.0], 0.5, "keep"),
        # better, although by less than the margin
        ([0.19, 0.2, 0.21, 0.2], 0.5, "keep"),
        ([-0.1, 0.1, 0.0, 0.05], 0.5, "equivalent"),
        ([-0.19, -0.2, -0.21, -0.2], 0.5, "equivalent"),
        ([-0.9, -1.0, -1.1, -1.0], 0.5, "drop"),
        # it may be worse by more than the margin, and is not better by it
        ([-0.9, -0.1, -0.8, 0.1], 0.5, "drop"),
        ([0.3, 0.9, -0.4, 0.5], 0.5, "more seeds"),
        # nothing lies within no margin
        ([-0.1, 0.1, 0.0, 0.05], 0.0, "more seeds"),
        ([0.0] * 5, 0.5, "equivalent"),
    ],
)
def test_the_answer(differences: list[float], margin: float, answer: str) -> None:
    found = decide(pair_of(differences), "c1", baseline="c0", margin=margin)
    assert found.answer == answer
    assert (found.more_seeds is not None) == (answer == "more seeds")


def with_failures(new: Sequence[int], old: Sequence[int], effect: float) -> StudyFrames:
    """Eight seeds of two configurations, which differ by the effect; those of `new`, `old` fail."""
    noise = 0.05 * np.random.default_rng(3).standard_normal((8, 2))
    scores = 70 + np.array([0.0, effect]) + noise
    scores[list(old), 0] = np.nan
    scores[list(new), 1] = np.nan
    return study_of(scores)


@pytest.mark.parametrize(
    ("new", "old", "effect", "answer"),
    [
        ([1, 4, 6], [], 2.0, "failures"),
        ([1, 4], [6], 2.0, "failures"),
        ([6], [6], 2.0, "keep"),
        # the baseline without its worst runs is better than it is
        ([], [1, 4, 6], 2.0, "keep"),
        ([], [1, 4, 6], 0.0, "failures"),
        ([], [1, 4, 6], -2.0, "failures"),
        ([1, 4, 6], [], -2.0, "drop"),
    ],
)
def test_the_side_that_fails_more_is_not_favoured(
    new: list[int], old: list[int], effect: float, answer: str, tmp_path: Path
) -> None:
    study = with_failures(new, old, effect)
    found = decide(study, "c1", baseline="c0", session=tmp_path / "session.json")
    assert found.answer == answer
    assert [(side.seeds, side.failed) for side in found.ended] == [(8, len(new)), (8, len(old))]
    kept = json.loads((tmp_path / "session.json").read_text())[0]["kept_at"]
    assert (kept is not None) == (answer == "keep")


def test_a_failed_run_has_the_score_that_is_stated_for_it() -> None:
    study = with_failures([1, 4, 6], [], 2.0)
    found = decide(study, "c1", baseline="c0", failed_score=20.0)
    assert (found.answer, found.shared) == ("more seeds", tuple(range(8)))
    assert found.left_out == ((), ())
    assert found.difference.mean == pytest.approx((5 * 2 - 3 * 50) / 8, abs=0.5)
    mild = decide(study, "c1", baseline="c0", failed_score=69.8, margin=0.5)
    assert mild.answer == "keep"
    with pytest.raises(
        ValueError, match="cannot count 75, which is better than the worst score of"
    ):
        decide(study, "c1", baseline="c0", failed_score=75.0)


def test_a_failed_run_that_was_run_again_is_no_failure() -> None:
    study = with_failures([1], [], 2.0)
    again = study.trials.iloc[[3]].assign(number=99, state="COMPLETE", score=72.0)
    found = decide(replace(study, trials=pd.concat([study.trials, again])), "c1", baseline="c0")
    assert (found.answer, found.ended[0].failed) == ("keep", 0)


@pytest.mark.parametrize(("candidate", "baseline"), [("c1", "c0"), ("c0", "c1")])
def test_a_side_without_any_score_is_failures(
    candidate: str, baseline: str, tmp_path: Path
) -> None:
    study, session = with_failures(range(8), [], 1.0), tmp_path / "session.json"
    found = decide(study, candidate, baseline=baseline, session=session)
    assert (found.answer, found.shared, found.looks) == ("failures", (), ())
    assert math.isnan(found.difference.mean)
    assert "8 of 8" in found.failures
    assert "0 of 8" in found.failures
    assert not session.exists()


def test_two_sides_without_any_score_are_not_compared() -> None:
    scores = np.array([[np.nan, np.nan, 1.0], [np.nan, np.nan, 2.0]])
    with pytest.raises(ValueError, match="c0 and c1: all runs of both have ended without a score"):
        decide(study_of(scores), "c1", baseline="c0")


@pytest.mark.parametrize("value", [True, "layers=(64, 64)", 0.25, np.float64(0.25), None])
def test_a_configuration_may_be_a_mapping_of_settings(value: object) -> None:
    frames = pair_of([0.9, 1.0, 1.1])
    chosen = ["other" if name == "c0" else str(value) for name in frames.trials["name"]]
    study = replace(frames, trials=frames.trials.assign(name=chosen))
    found = decide(study, {"name": value, "rate": 0.1}, baseline={"rate": 0})
    assert (found.answer, found.baseline) == ("keep", "rate=0")
    assert found.candidate == f"name={value},rate=0.1"


def test_a_configuration_is_text_or_a_mapping() -> None:
    with pytest.raises(TypeError, match=r"candidate 0\.1: a configuration is text such as"):
        decide(pair_of([0.3, 0.9]), 0.1, baseline="c0")  # type: ignore[arg-type]


def test_each_bound_of_one_look_has_the_whole_error() -> None:
    values = np.array([0.3, 0.9, -0.4, 0.5, 1.2])
    found = decide(pair_of(values.tolist()), "c1", baseline="c0")
    width = stats.t.ppf(0.95, 4) * values.std(ddof=1) / math.sqrt(5)
    bounds = (values.mean(), values.mean() - width, values.mean() + width)
    assert tuple(vars(found.difference).values()) == pytest.approx(bounds)
    assert (found.level, found.looks, found.candidates) == (ALPHA, (), 0)


def test_only_common_seeds_are_compared() -> None:
    scores = np.array([[1, 2.5], [2, 3], [3, np.nan], [np.nan, 9], [4, 5.1]])
    found = decide(study_of(scores), "c1", baseline="c0")
    assert (found.shared, found.left_out) == ((0, 1, 4), ((2,), (3,)))
    assert found.difference.mean == pytest.approx((1.5 + 1 + 1.1) / 3)


def test_differences_without_scatter_decide_nothing() -> None:
    """Coarse scores are often equal with two or three seeds: their interval would have no width."""
    found = decide(pair_of([0.5, 0.5, 0.5]), "c1", baseline="c0")
    assert (found.answer, found.more_seeds) == ("more seeds", None)
    assert math.isnan(found.difference.low)


@pytest.mark.parametrize(
    ("seeds", "answer"), [(2, "more seeds"), (4, "more seeds"), (5, "equivalent")]
)
def test_a_few_differences_of_0_show_nothing(seeds: int, answer: str) -> None:
    """Of rounded scores two seeds are often equal where the candidate is better."""
    found = decide(pair_of([0.0] * seeds), "c1", baseline="c0")
    assert (found.answer, found.more_seeds) == (answer, None if seeds > 4 else 5 - seeds)
    assert math.isnan(found.difference.low) == (seeds < 5)


def test_a_name_that_two_columns_have_is_refused() -> None:
    frames = pair_of([0.9, 1.0, 1.1])
    method = frames.trials["name"].map({"c0": "c1", "c1": "c0"})
    settings = {**frames.settings, "method": RecordedSetting("method")}
    study = replace(frames, trials=frames.trials.assign(method=method), settings=settings)
    with pytest.raises(ValueError, match="'c1' stands in name and method; write name=c1 or"):
        decide(study, "c1", baseline="c0")
    assert decide(study, "name=c1", baseline="name=c0").answer == "keep"


@pytest.mark.parametrize("seen", [[], None, [{"0": 0.3}, {"0": 0.3}]])
def test_a_session_without_its_looks_is_refused(
    seen: list[dict[str, float]] | None, tmp_path: Path
) -> None:
    study, session = pair_of([0.3, 0.9, -0.4]), tmp_path / "s.json"
    decide(study, "c1", baseline="c0", session=session)
    [entry] = json.loads(session.read_text())
    entry.pop("seen")
    session.write_text(json.dumps([entry if seen is None else entry | {"seen": seen}]))
    with pytest.raises(ValueError, match=r"s\.json was edited: .*, or lack their looks"):
        decide(study, "c1", baseline="c0", session=session)


def test_a_comparison_of_a_session_is_told_by_its_runs(tmp_path: Path) -> None:
    """Other words for the same configurations are no new candidate."""
    study, session = pair_of([0.3, 0.9, -0.4, 0.5]), tmp_path / "s.json"
    first = decide(study, "c1", baseline="c0", session=session)
    again = decide(study, "rate=1e-1", baseline="name=c0,rate=0.0", session=session)
    assert (again.looks, again.candidates) == (first.looks, first.candidates) == ((4,), 1)
    assert vars(again.difference) == pytest.approx(vars(first.difference))
    assert again.candidate == "rate=1e-1"
    turned = decide(study, "c0", baseline="c1", session=session)
    assert turned.candidates == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidate": "c9"}, "candidate 'c9': 'c9' is no configuration; settings are name, rate"),
        ({"candidate": "rate=0.7"}, "no run has ended with rate=0.7; rate is 0, 0.1"),
        ({"candidate": "rat=0.1"}, "settings are name, rate"),
        ({"candidate": "c0"}, "c0 and c0 are the same configuration"),
        ({"candidate": "rate=0.0"}, "rate=0.0 and c0 are the same configuration"),
        ({"candidate": "mtd=none"}, "several configurations, which differ in name, rate"),
        ({"candidate": "c1", "margin": -0.1}, "the margin is -0.1; it must be"),
        ({"candidate": "c1", "margin": math.nan}, "the margin is nan; it must be"),
        ({"candidate": "c1", "baseline": None}, "study runs has no baseline of its own"),
    ],
)
def test_what_cannot_be_compared(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decide(pair_of([0.3, 0.9, -0.4]), **({"baseline": "c0"} | arguments))


def test_a_frame_is_no_study() -> None:
    with pytest.raises(TypeError, match=r"takes a study, not a DataFrame: .*read_run_table makes"):
        decide(pair_of([0.3, 0.9]).trials, "c1", baseline="c0")


def test_a_configuration_is_named_by_every_digit_of_a_number() -> None:
    frames = pair_of([0.9, 1.0, 1.1])
    rate = frames.trials["rate"] / 1e6 + 0.123456
    study = replace(frames, trials=frames.trials.assign(rate=rate))
    found = decide(study, "rate=0.1234561", baseline="rate=0.123456")
    assert found.difference.mean == pytest.approx(1)
    with pytest.raises(ValueError, match=r"no run has ended with rate=0\.123457; rate is 0"):
        decide(study, "rate=0.123457", baseline="c0")


@pytest.mark.parametrize(("missing", "shared"), [(2, (2,)), (3, ())])
def test_fewer_than_two_common_seeds_are_no_look(
    missing: int, shared: tuple[int, ...], tmp_path: Path
) -> None:
    scores = np.arange(6.0).reshape(3, 2)
    scores[:missing, 1] = np.nan
    scores = np.vstack([scores, [np.nan, 4.0]])
    session = tmp_path / "session.json"
    found = decide(study_of(scores), "c1", baseline="c0", session=session)
    assert (found.answer, found.shared, found.looks) == ("more seeds", shared, ())
    # of the common seed, or of the means of 0, 2, 4 and of 4
    assert found.difference.mean == pytest.approx(1 if shared else 2)
    assert np.isnan([found.difference.low, found.difference.high]).all()
    assert found.left_out == (tuple({0, 1, 2} - {*shared}), (3,))
    assert not session.exists()


def test_no_scores_at_all() -> None:
    with pytest.raises(ValueError, match="runs has no completed run with a score"):
        decide(study_of(np.full((3, 2), np.nan)), "c1", baseline="c0")


def test_a_study_has_a_baseline_of_its_own() -> None:
    frames = pair_of([0.9, 1.0, 1.1])
    own = frames.trials[frames.trials["name"] == "c0"].assign(number=range(100, 103))
    study = StudyFrames(
        "own", "accuracy", 3, frames.trials, settings=frames.settings, baseline=Baseline({}, 3, own)
    )
    found = decide(study, "c1")
    assert (found.answer, found.baseline) == ("keep", "baseline")
    turned = decide(study, "baseline", baseline="c1")
    assert turned.candidate == "baseline"
    assert turned.difference.mean == pytest.approx(-found.difference.mean)


def test_a_study_that_plans_looks_has_its_own_levels() -> None:
    """The trials and the nominal level are those of its last look, later seeds are left out."""
    planned, values = [3, 5, 7], [0.3, 0.9, -0.4, 0.5, 1.2, 9.0]
    plan = Plan(0, {"looks": planned, "alpha": ALPHA, "margin": 0.5}, "")
    looks = pd.DataFrame(columns=list(LOOK_COLUMNS))
    looks.loc[0] = [1, 3, 6, 0.02, 0.02, 0.3, "inconclusive", "continue", 4, tuple(range(6))]
    looks.loc[1] = [2, 5, 10, 0.02, 0.03, 0.3, "inconclusive", "continue", 4, tuple(range(10))]
    found = decide(pair_of(values, plans=(plan,), looks=looks), "c1", baseline="c0")
    nominal = boundaries_at(planned, ALPHA).nominal[1]
    error = np.std(values[:5], ddof=1) / math.sqrt(5)
    width = stats.t.ppf(1 - nominal, 4) * error
    assert found.difference.low == pytest.approx(0.5 - width)
    assert (found.shared, found.looks, found.more_seeds) == ((0, 1, 2, 3, 4), (3, 5), 2)


def test_the_error_that_looks_spend() -> None:
    """The first look has all that is spent by then; later ones more than what is added."""
    spent = [ALPHA * math.exp(-5 / seeds) for seeds in (2, 3, 8)]
    one = [find_open_nominal((seeds,), ALPHA)[0] for seeds in (2, 3, 8)]
    assert one == pytest.approx(spent)
    assert np.all(find_open_nominal((2, 3, 8), ALPHA) >= np.diff(spent, prepend=0) * (1 - 1e-9))


@pytest.mark.parametrize("looks", [range(2, 31), range(5, 31), (3, 5, 10, 20), (2, 30)])
@pytest.mark.parametrize("level", [ALPHA, ALPHA / 2])
def test_t_statistics_spend_what_is_to_be_spent(looks: Sequence[int], level: float) -> None:
    """Normal statistics with as much information would spend a quarter more; 60,000 walks."""
    random, counts = np.random.default_rng(2), np.arange(1, 31)
    values = random.standard_normal((30_000, 30))
    mean = values.cumsum(axis=1) / counts
    squares = (values**2).cumsum(axis=1) - counts * mean**2
    at = np.array(looks) - 1
    t = mean[:, at] / np.sqrt(squares[:, at] / at / counts[at])
    critical = -stats.t.ppf(find_open_nominal(tuple(looks), level), at)
    share = np.mean([np.any(side * t >= critical, axis=1).mean() for side in (1, -1)])
    assert share == pytest.approx(level * math.exp(-5 / looks[-1]), rel=0.1)


def ask(path: Path, scores: Floats, seeds: int, candidate: str = "c1", baseline: str = "c0") -> Any:
    return decide(study_of(scores[:seeds]), candidate, baseline=baseline, session=path)


@pytest.mark.slow
def test_null_candidates_that_are_asked_after_every_seed(tmp_path: Path) -> None:
    """Of 80 sessions with an error of 40 %, of which the first candidate has half.

    With 20 % at each of these looks two fifths of the sessions would keep the candidate.
    """
    plan = Plan(0, {"looks": [], "alpha": 0.4, "margin": 0.5}, "")
    random, kept = np.random.default_rng(0), 0
    for session in range(80):
        whole = study_of(random.standard_normal((6, 2)), plans=(plan,))
        answers = set()
        for seeds in (2, 3, 4, 6):
            study = replace(whole, trials=whole.trials[whole.trials["seed"] < seeds])
            path = tmp_path / f"{session}.json"
            answers.add(decide(study, "c1", baseline="c0", session=path).answer)
        kept += "keep" in answers
    assert kept <= stats.binom.ppf(0.999, 80, 0.2 * math.exp(-5 / 6))


def test_more_seeds_give_an_answer_with_the_stated_power() -> None:
    """As estimated: the differences that follow have the mean and deviation of those so far."""
    values = np.array([0.5, 1.6, -0.3, 1.0, -0.1])
    found = decide(pair_of(values.tolist()), "c1", baseline="c0")
    assert found.answer == "more seeds"
    assert found.more_seeds is not None
    random, shares = np.random.default_rng(4), []
    for more in (found.more_seeds, found.more_seeds // 2):
        following = random.normal(values.mean(), values.std(ddof=1), (2000, more))
        whole = np.hstack([np.tile(values, (2000, 1)), following])
        seeds, mean = whole.shape[1], whole.mean(axis=1)
        width = stats.t.ppf(0.95, seeds - 1) * whole.std(axis=1, ddof=1) / math.sqrt(seeds)
        shares.append(np.mean((mean > width) | (mean + width < found.margin)))
    assert 0.75 <= shares[0] <= 0.87
    assert shares[1] < 0.75


class TestSession:
    """The file of looks and candidates."""

    scores = np.random.default_rng(7).standard_normal((8, 6))

    def test_the_same_data_are_no_new_look(self, tmp_path: Path) -> None:
        path = tmp_path / "s.json"
        first, again = (ask(path, self.scores, 3) for _ in range(2))
        assert first == again
        text = path.read_text()
        later = ask(path, self.scores, 5)
        assert (first.looks, later.looks) == ((3,), (3, 5))
        assert path.read_text() != text
        # a session that was asked before the look has a narrower interval than one that was asked
        # more often, and one look at all of the error the narrowest
        other = ask(tmp_path / "other.json", self.scores, 5)
        alone = decide(study_of(self.scores[:5]), "c1", baseline="c0")
        lows = [found.difference.low for found in (later, other, alone)]
        assert lows == sorted(lows)
        assert len(set(lows)) == 3

    def test_candidates_share_the_error(self, tmp_path: Path) -> None:
        path = tmp_path / "s.json"
        found = [ask(path, self.scores, 3, f"c{at}") for at in range(1, 5)]
        levels = [decision.level for decision in found]
        assert levels == pytest.approx([ALPHA / (n * (n + 1)) for n in (1, 2, 3, 4)])
        assert found[-1].candidates == 4
        # the upper bound has the error of one candidate
        highs = [decide(study_of(self.scores[:3]), f"c{at}", baseline="c0") for at in (1, 4)]
        assert highs[0].difference.high < found[0].difference.high

    def test_a_kept_candidate_passes_its_error_on_once(self) -> None:
        kept = SessionComparison("", "c0", "c1", 0.02, kept_at=2)
        session = [kept, SessionComparison("", "c0", "c2", 0.01)]
        levels = [find_comparison(session, "", "c1", f"c{at}", ALPHA).level for at in (3, 4)]
        assert levels == pytest.approx([0.02 + ALPHA / 12, ALPHA / 20])
        assert find_comparison(session, "", "c1", "c3", ALPHA) is session[2]

    def test_names_in_another_order_are_the_same(self, tmp_path: Path) -> None:
        path = tmp_path / "s.json"
        ask(path, self.scores, 3, "rate=0.1, name=c1")
        assert ask(path, self.scores, 3, "name=c1,rate=0.1").candidates == 1

    def test_a_value_may_have_commas(self, tmp_path: Path) -> None:
        """Also where a session finds the configurations again in a table of another name."""
        study, path = study_of(self.scores), tmp_path / "s.json"
        study.trials["name"] = study.trials["name"].replace("c1", "c,1,")
        found = [
            decide(replace(study, name=name), new, baseline=old, session=path)
            for name, new, old in (
                ("one", "name=c,1,, rate=0.1", "rate=0.0,name=c0"),
                ("two", {"rate": 0.1, "name": "c,1,"}, "name=c0,rate=0.0"),
            )
        ]
        assert (found[0].candidate, found[1].candidates) == ("name=c,1,,rate=0.1", 1)
        named = decide(study, "c,1,", baseline="c0")
        assert named.difference.mean == pytest.approx(found[0].difference.mean)

    def test_scores_that_were_looked_at_must_stay(self, tmp_path: Path) -> None:
        path = tmp_path / "s.json"
        ask(path, self.scores, 4)
        text = path.read_text()
        with pytest.raises(ValueError, match=r"c1 minus c0 was .* seed 3 .* is missing now"):
            ask(path, self.scores, 3)
        changed = self.scores.copy()
        changed[1, 1] += 1
        with pytest.raises(ValueError, match="seed 1 at an earlier look"):
            ask(path, changed, 5)
        assert path.read_text() == text

    @pytest.mark.parametrize("unit", [1e-10, 1e12])
    def test_scores_of_any_size_must_stay_but_for_rounding(
        self, tmp_path: Path, unit: float
    ) -> None:
        path, scores = tmp_path / "s.json", unit * (3 + 1e-6 * self.scores)
        ask(path, scores, 4)
        rounded = np.array([[float(f"{score:.15g}") for score in row] for row in scores])
        assert ask(path, rounded, 4).looks == (4,)
        scores[1, 1] *= 1.001
        with pytest.raises(ValueError, match="seed 1 at an earlier look"):
            ask(path, scores, 4)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda text: text[:100], "is damaged, or is no session"),
            (lambda _: "", "is damaged, or is no session"),
            (lambda _: "[]", "is damaged, or is no session"),
            (lambda _: '[{"level": 1}]', "is damaged, or is no session"),
            (lambda text: text.replace("0.025", '"a"'), "is damaged, or is no session"),
            (lambda text: text.replace("0.025", "-1"), "is damaged, or is no session"),
            (lambda text: text.replace('"3":', '"x":'), "is damaged, or is no session"),
            (
                lambda text: text.replace('"seen": [', '"seen": [{},'),
                "is damaged, or is no session",
            ),
            (lambda text: text.replace('"seen"', '"unseen"'), "is damaged, or is no session"),
            (lambda text: text.replace("accuracy", "loss"), "score loss, .*, not .*score accuracy"),
            (
                lambda text: text.replace("margin 0.5", "margin 1.0"),
                "margin 1.0, .*, not .*margin 0.5",
            ),
        ],
    )
    def test_a_file_of_something_else(self, tmp_path: Path, change: Any, message: str) -> None:
        path = tmp_path / "s.json"
        ask(path, self.scores, 4)
        changed = change(path.read_text())
        assert changed != path.read_text()
        path.write_text(changed)
        with pytest.raises(ValueError, match=message):
            ask(path, self.scores, 5)
        assert path.read_text() == changed

    def test_a_renamed_table_goes_on_and_another_one_does_not(self, tmp_path: Path) -> None:
        path = tmp_path / "s.json"
        for candidate in ("c1", "c2"):
            ask(path, self.scores, 4, candidate)
        renamed = replace(study_of(self.scores[:6]), name="renamed")
        found = decide(renamed, "c3", baseline="c0", session=path)
        assert (found.candidates, found.looks) == (3, (6,))
        assert decide(renamed, "c1", baseline="c0", session=path).looks == (4, 6)
        for scores in (self.scores + np.eye(8, 6), self.scores[:3], self.scores[:, :2]):
            other = replace(study_of(scores), name="other")
            with pytest.raises(ValueError, match=r"of study renamed, .*, not study other, "):
                decide(other, "c1", baseline="c0", session=path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda session: session[1] | {"level": 0.999},
            lambda session: session[1] | {"level": 1e300},
            lambda session: session[1] | {"kept_at": 9},
            lambda session: session[0],
        ],
        ids=["level", "no level", "kept later", "doubled"],
    )
    def test_levels_follow_from_the_order_of_the_candidates(
        self, tmp_path: Path, change: Any
    ) -> None:
        path = tmp_path / "s.json"
        for candidate in ("c1", "c2"):
            ask(path, self.scores, 4, candidate)
        session = json.loads(path.read_text())
        path.write_text(json.dumps([session[0], change(session)]))
        with pytest.raises(ValueError, match="was edited: its candidates do not have the parts"):
            ask(path, self.scores, 4, "c2")
        path.write_text(json.dumps(session[::-1]))
        with pytest.raises(ValueError, match="was edited"):
            ask(path, self.scores, 4, "c2")

    def test_one_file_through_two_links_is_one_session(self, tmp_path: Path) -> None:
        path, links = tmp_path / "s.json", [tmp_path / "one.json", tmp_path / "two.json"]
        for link, candidate in zip(links, ("c1", "c2"), strict=True):
            link.symlink_to(path.name)
            found = ask(link, self.scores, 4, candidate)
        assert found.candidates == 2
        assert all(link.is_symlink() for link in links)

    def test_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            ask(tmp_path / "missing" / "s.json", self.scores, 4)

    def test_processes_at_once_lose_no_candidate(self, tmp_path: Path) -> None:
        path = tmp_path / "s.json"
        with get_context("fork").Pool(4) as pool:
            found = pool.starmap(ask, [(path, self.scores, 4, f"c{at}") for at in range(1, 6)])
        recorded = json.loads(path.read_text())
        levels = sorted((kept["level"] for kept in recorded), reverse=True)
        assert levels == pytest.approx([ALPHA / (n * (n + 1)) for n in range(1, 6)])
        assert {decision.level for decision in found} == set(levels)
        assert sorted(kept["candidate"] for kept in recorded) == [f"c{at}" for at in range(1, 6)]


def test_scores_in_a_very_small_unit_are_compared() -> None:
    """With 9 decimals they would all be equal."""
    scores = 1e-12 * np.array([[1, 2.0], [1.2, 2.3], [0.9, 2.1], [1.1, 2.1]])
    found = decide(study_of(scores), "c1", baseline="c0", margin=1e-13)
    assert found.answer == "keep"
    best = StudyContext(study_of(scores[:, ::-1])).best.compared
    assert best["name"].tolist() == ["c0", "c1"]
    assert best["difference"].iloc[1] == pytest.approx(-1.075e-12)
