"""The benchmark of a sweep's overhead runs: it uses private names of the sweep."""

import importlib
import sys
from pathlib import Path

import pytest


def test_the_benchmark_of_a_sweeps_overhead_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    benchmark = importlib.import_module("sweep_overhead")
    try:
        cost = benchmark.our_trials(tmp_path, 2, "grid")
    finally:
        del sys.modules["sweep_overhead"]
    assert cost.seconds > 0
    # at least the claim, the beginning, the heartbeat and the result of each trial
    assert cost.writes >= 4
