"""A claim takes as long with 50,000 recorded trials as with none."""

import pytest

from tests.benchmarks.claims import COUNTS, measure


@pytest.mark.slow
def test_the_cost_of_a_claim_does_not_grow_with_the_recorded_trials(url: str) -> None:
    seconds = {count: measure(url, count) for count in COUNTS}
    shown = {count: [f"{each * 1e3:.2f} ms" for each in pair] for count, pair in seconds.items()}
    print("claim, and none to claim:", shown)
    for at in range(2):
        base = max(seconds[0][at], 0.002)
        assert seconds[50_000][at] < 4 * base, shown
