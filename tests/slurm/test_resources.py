"""What a task asks for is derived from the estimate, with the margins that are stated."""

from dataclasses import replace

import pytest

from mtdlab.cost.estimate import CostEstimate
from mtdlab.errors import MtdlabError
from mtdlab.slurm import array
from mtdlab.slurm.array import (
    LEAD_SECONDS,
    MEMORY_MARGIN,
    SPARE_TIMEOUTS,
    TIME_MARGIN,
    derive,
    format_time,
    parse_time,
)

MEGABYTE = 2**20
ESTIMATE = CostEstimate(
    trials=24,
    fewest=24,
    workers=4,
    threads=2,
    seconds=(400.0, 400.0),
    trial=(50.0, 60.0),
    evaluation=10.0,
    start=12.0,
    memory=4 * 500 * MEGABYTE + 300 * MEGABYTE,
    worker_memory=500 * MEGABYTE,
    **dict.fromkeys(("gpu_memory", "gpu_workers", "database", "model"), 0),
)


def test_a_task_trains_ten_times_as_long_as_it_takes_to_start() -> None:
    # 24 trials of 60 s are 12 times 10 starts of 12 s
    assert derive(24, ESTIMATE).tasks == 12
    assert derive(1, ESTIMATE).tasks == 1
    assert derive(1000, ESTIMATE).tasks == array.MOST_TASKS
    # long trials: not more tasks than trials
    assert derive(5, replace(ESTIMATE, trial=(9e3, 1e4))).tasks == 5
    assert derive(24, ESTIMATE, tasks=3).tasks == 3
    assert derive(24, ESTIMATE, tasks=3).reasons["tasks"] == "as given"


def test_time_memory_and_cores_of_a_task() -> None:
    found = derive(24, ESTIMATE, tasks=3)
    needed = TIME_MARGIN * (12 + 8 * 60) + LEAD_SECONDS + 10
    assert needed <= found.seconds < needed + 300
    assert found.seconds % 300 == 0
    assert found.lead == LEAD_SECONDS + 10
    # the worker and the process that started it
    assert found.memory == 100 * -(-MEMORY_MARGIN * 800 // 100)
    assert (found.cpus, found.gpus, found.workers) == (2, 0, 1)
    assert found.timeouts == SPARE_TIMEOUTS
    assert found.reasons["time"] == "2 x (12 s to start + 8 x 60 s a trial) + 130 s"
    assert found.reasons["memory"] == "1.5 x 800 M measured"


def test_a_long_task_asks_for_a_day_and_may_reach_its_limit() -> None:
    found = derive(100, replace(ESTIMATE, trial=(7e3, 7.2e3)), tasks=1)
    assert found.seconds == 60 * array.MOST_MINUTES
    needed = TIME_MARGIN * (12 + 100 * 7200) + LEAD_SECONDS + 10
    assert found.timeouts == int(needed // (60 * array.MOST_MINUTES)) + SPARE_TIMEOUTS
    assert "at which a task requeues itself" in found.reasons["time"]


def test_a_given_time_limit_leaves_half_of_it_to_train() -> None:
    found = derive(24, ESTIMATE, tasks=3, seconds=60)
    assert (found.seconds, found.lead) == (60, 30)
    needed = TIME_MARGIN * (12 + 8 * 60) + LEAD_SECONDS + 10
    assert found.timeouts == int(needed // 60) + SPARE_TIMEOUTS


def test_a_worker_runs_on_each_gpu() -> None:
    found = derive(24, ESTIMATE, tasks=2, gpus=2)
    assert (found.gpus, found.workers, found.cpus) == (2, 2, 2 * array.GPU_CPUS)
    bytes_needed = MEMORY_MARGIN * 1300 * MEGABYTE + 2 * array.GPU_HOST_BYTES
    assert found.memory is not None
    assert 0 <= found.memory * MEGABYTE - bytes_needed < 100 * MEGABYTE
    # two tasks of two workers: six trials each
    assert "6 x 60 s" in found.reasons["time"]


def test_without_an_estimate_nothing_is_invented() -> None:
    found = derive(24, None)
    assert found.tasks == array.FEWEST_UNKNOWN
    assert derive(3, None).tasks == 3
    assert (found.seconds, found.memory, found.cpus) == (60 * array.UNKNOWN_MINUTES, None, 1)
    assert found.timeouts == array.UNKNOWN_TIMEOUTS
    assert found.lead == LEAD_SECONDS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1", 60), ("90", 5400), ("01:30:00", 5400), ("2-00:00:30", 172830), ("0:01:00", 60)],
)
def test_time_limits_are_read_as_slurm_reads_them(text: str, seconds: int) -> None:
    assert parse_time(text) == seconds
    assert parse_time(format_time(seconds)) == seconds


@pytest.mark.parametrize(
    "text", ["0", "", "-5", "1:30", "00:00:59", "1h", "01:60:00", "1\n2", "١", "٠١:٠٠:٠٠"]
)
def test_another_time_limit_is_refused(text: str) -> None:
    with pytest.raises(MtdlabError, match=r"--time .*: not a time limit of a minute or more"):
        parse_time(text)
