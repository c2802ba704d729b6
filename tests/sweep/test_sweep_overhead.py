"""The benchmark of a sweep's overhead runs: it uses private names of the sweep."""

from pathlib import Path

from sweep_overhead import our_trials


def test_the_benchmark_of_a_sweeps_overhead_runs(tmp_path: Path) -> None:
    cost = our_trials(tmp_path, 2, "grid")
    assert cost.seconds > 0
    # at least the claim, the beginning, the heartbeat and the result of each trial
    assert cost.writes >= 4
