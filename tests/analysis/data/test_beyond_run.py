"""Which levels of MTD are beyond the run, and what is said of them."""

import pandas as pd
import pytest

from mtdlab.analysis.data.beyond_run import (
    describe_left_out,
    describe_lengths,
    find_beyond,
    leave_out,
    list_rows,
)
from tests.analysis.conftest import make_trials

SLOW = {"mtd": 208.0, "ema_decay": 0.995, "queue_size": 512, "batch_size": 64, "steps": 160}
LONG = {"mtd": 132.0, "ema_decay": 0.75, "queue_size": 8192, "batch_size": 64, "steps": 160}
WITHIN = {"mtd": 18.0, "ema_decay": 0.9, "queue_size": 512, "batch_size": 64, "steps": 160}


def test_each_history_that_is_long_beside_the_run_is_stated() -> None:
    assert describe_lengths([WITHIN]) == ()
    *parts, last = describe_lengths([SLOW, WITHIN, LONG])
    assert parts == [
        "MTD 132 (K/N 128): the queue is full after 128 steps, a run has 160.",
        "MTD 208 (η 0.995): 45 % of the momentum encoder's initial weights remain after 160 steps.",
    ]
    assert last == (
        "Beyond the run, and taking no part in the verdict on MTD (beyond_run: keep adds them): "
        "MTD 132, 208."
    )
    assert describe_lengths([SLOW], "keep")[-1] == (
        "Beyond the run, and taking part in the verdict, as asked (beyond_run: keep): MTD 208."
    )
    # stated, but not beyond: 0.995^640 = 0.040, and 200 is more than a quarter of 640
    [only] = describe_lengths([SLOW | {"steps": 640}])
    assert only.startswith("MTD 208 (η 0.995): 4 % of")
    [never, _] = describe_lengths([LONG | {"steps": 100}])
    assert never == "MTD 132 (K/N 128): the queue is full after 128 steps, a run has 100."


def test_a_schedule_is_named_by_its_ends() -> None:
    row = SLOW | {"ema_decay": 0.99, "ema_decay_end": 0.999, "ema_order": "after-step"}
    assert describe_lengths([row])[0].startswith("MTD 208 (η 0.99 to 0.999): ")


@pytest.mark.parametrize(
    "unknown",
    [{"steps": None}, {"steps": "many"}, {"steps": float("nan")}, {"mtd": None}, {"mtd": 0.0}],
)
def test_without_steps_or_mtd_nothing_is_said(unknown: dict[str, object]) -> None:
    assert find_beyond([SLOW | unknown]) == ()


def test_a_level_is_beyond_the_run_where_one_of_its_configurations_is() -> None:
    # as in a study of two lengths: at 640 steps alone it would be compared with both
    runs = pd.DataFrame([SLOW, SLOW | {"steps": 640}, WITHIN, WITHIN | {"steps": 640}])
    kept, beyond = leave_out(runs, "leave-out")
    assert kept["mtd"].tolist() == [18, 18]
    assert beyond == (208,)
    assert len(leave_out(runs, "keep")[0]) == 4


def test_a_level_that_ends_in_half_a_decimal_is_left_out_too() -> None:
    # 4 + 257/80 = 7.2125, which Python's round and pandas' make 7.213 and 7.212
    half = {"mtd": 7.2125, "ema_decay": 0.75, "queue_size": 257, "batch_size": 80, "steps": 6}
    assert round(7.2125, 3) != pd.Series([7.2125]).round(3).item()
    kept, beyond = leave_out(pd.DataFrame([half]), "leave-out")
    assert (len(kept), len(beyond)) == (0, 1)


def test_a_table_without_steps_or_queue_is_judged_by_what_it_has() -> None:
    trials = make_trials(decays=(0.5, 0.995), times=(8,))
    assert find_beyond(list_rows(trials)) == ()
    bare = trials.drop(columns=["queue_size", "batch_size"]).assign(steps=160)
    assert find_beyond(list_rows(bare)) == pytest.approx((208,))


def test_why_levels_are_left_out() -> None:
    assert describe_left_out(()) == ""
    assert describe_left_out(find_beyond([SLOW, LONG])) == (
        "Left out, being beyond the run: MTD 132, 208 (more than 10 % of the initial weights "
        "remain at its end, or the queue is filling for more than 50 % of it)."
    )
