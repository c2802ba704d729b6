"""What a trial costs the database hardly depends on the number of recorded trials."""

from pathlib import Path

import pytest
from claims import database, measure
from scale import write_study

FEW, MANY = 40, 20_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_claim_and_a_result_cost_the_same_with_many_recorded_trials(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = None if kind == "sqlite" else request.getfixturevalue("empty_postgresql_url")
    seconds = {}
    for trials in (FEW, MANY):
        folder = tmp_path / str(trials)
        folder.mkdir()
        with database(url, folder) as place:
            seconds[trials] = measure(write_study(folder, trials), place)
    for part in ("claim", "result"):
        assert seconds[MANY][part] < 4 * max(seconds[FEW][part], 0.002), seconds
    # Optuna counts the trials of a study for each new one
    assert seconds[MANY]["begin"] < 8 * seconds[FEW]["begin"], seconds
