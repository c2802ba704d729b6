"""Points of a grid that are not run: which, and what is refused as a slip of the pen."""

import itertools

import pytest

from mtdlab.api.plan import list_configurations
from mtdlab.config.source import SpecError
from mtdlab.config.study import StudySpec
from tests.config.conftest import Read

GRID = """\
study: a
search:
  ema_decay: [0.75, 0.85, 0.95]
  queue_size: {times: batch_size, values: [1, 2, 4, 8]}
  initial_queue_size: {share_of: queue_size, values: [0.25]}
  temperature: {low: 0.1, high: 0.3, step: 0.1}
seeds: [0, 1]
"""


def run(spec: StudySpec) -> list[tuple[float, float, float]]:
    settings = [
        spec.settings(unit.parameters or {}, 0) for unit in spec.search_trials() if unit.seed == 0
    ]
    return [(run.ema_decay, run.queue_size / 64, round(run.temperature, 6)) for run in settings]


ALL = list(itertools.product((0.75, 0.85, 0.95), (1, 2, 4, 8), (0.1, 0.2, 0.3)))


@pytest.mark.parametrize(
    ("skip", "left_out"),
    [
        ("[]", lambda _eta, _times, _tau: False),
        ("[{ema_decay: 0.95}]", lambda eta, _times, _tau: eta == 0.95),
        (
            "[{ema_decay: 0.95, queue_size: [2, 4, 8]}]",
            lambda eta, times, _tau: eta == 0.95 and times > 1,
        ),
        (
            "[{ema_decay: [0.75], temperature: 0.3}, {queue_size: 8.0}]",
            lambda eta, times, tau: (eta == 0.75 and tau == 0.3) or times == 8,
        ),
    ],
)
def test_what_matches_any_entry_is_not_run(read: Read, skip: str, left_out) -> None:
    spec = read(f"{GRID}skip: {skip}\n")
    assert run(spec) == [point for point in ALL if not left_out(*point)]
    assert len(spec.search_trials()) == 2 * len(run(spec))
    assert len(list_configurations(spec)) == len(run(spec))


def test_a_point_that_cannot_be_trained_may_be_left_out(read: Read) -> None:
    grid = "study: a\nsearch: {queue_size: [64, 512], initial_queue_size: [32, 128]}\n"
    with pytest.raises(SpecError, match="initial_queue_size 128 exceeds queue_size 64"):
        read(f"{grid}skip: []\n")
    spec = read(f"{grid}skip: [{{queue_size: 64, initial_queue_size: 128}}]\n")
    assert len(spec.search_trials()) == 3


def test_words_and_nothing_can_be_left_out(read: Read) -> None:
    grid = "study: a\nsearch: {pooling: [cls, mean], prediction_dim: [null, 32]}\n"
    spec = read(f"{grid}skip: [{{pooling: mean, prediction_dim: null}}]\n")
    assert [unit.parameters for unit in spec.search_trials()] == [
        {"pooling": "cls", "prediction_dim": None},
        {"pooling": "cls", "prediction_dim": 32},
        {"pooling": "mean", "prediction_dim": 32},
    ]


@pytest.mark.parametrize(
    ("skip", "message"),
    [
        (
            "[{ema_decay: 0.9}]",
            r":8:9: skip.0.ema_decay: 0.9 matches no point of the grid; "
            r"search has 0.75, 0.85, 0.95",
        ),
        ("[{ema_decay: [0.95, 1.0]}]", "1.0 matches no point"),
        ("[{queue_size: 512}]", "512 matches no point of the grid; search has 1, 2, 4, 8"),
        ("[{ema_decay: {a: 1}}]", "is not a single value"),
        ("[{ema_decay: []}]", "needs at least one value"),
        ("[{emadecay: 0.95}]", r"skip.0.emadecay: unknown key; did you mean ema_decay\?"),
        ("[{select_on: dev}]", "skip.0.select_on: unknown key; choose from ema_decay"),
        ("[{}]", r"skip.0: \{\}: write searched settings"),
        ("[5]", "skip.0: 5: write searched settings"),
        ("{ema_decay: 0.95}", "skip: .*must be a list"),
        ("[{ema_decay: [0.75, 0.85]}, {ema_decay: 0.95}]", ":8:1: skip: leaves no point of the gr"),
    ],
)
def test_a_slip_of_the_pen_is_refused(read: Read, skip: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(f"{GRID}skip: {skip}\n")


def test_only_a_grid_has_points_to_leave_out(read: Read) -> None:
    text = "study: a\nsampler: random\ntrials: 3\nsearch: {ema_decay: [0.5, 0.6]}\n"
    with pytest.raises(SpecError, match=":5:1: skip: only a grid has points to leave out, random"):
        read(f"{text}skip: [{{ema_decay: 0.5}}]\n")


def test_a_range_without_steps_has_no_points_to_leave_out(read: Read) -> None:
    with pytest.raises(SpecError, match=":2:1: search: dropout: a grid needs a list of values, or"):
        read("study: a\nsearch: {dropout: {low: 0.1, high: 0.2}}\nskip: [{dropout: 0.1}]\n")


def test_a_profile_has_its_own_points_to_leave_out(read: Read) -> None:
    text = (
        f"{GRID}skip: [{{ema_decay: 0.95}}]\nprofiles:\n"
        "  all: {skip: []}\n  less: {search: {ema_decay: [0.85]}, skip: [{queue_size: 1}]}\n"
    )
    assert [len(run(read(text, profile=name))) for name in (None, "all", "less")] == [24, 36, 9]
    with pytest.raises(SpecError, match=r":8:9: profile less: skip.0.ema_decay: 0.95 matches no"):
        read(text.replace(", skip: [{queue_size: 1}]", ""))
