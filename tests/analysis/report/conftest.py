"""One report with every kind of section, which the tests of files and of the page read."""

from pathlib import Path

import numpy as np
import pytest

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.report import Report
from tests.analysis.conftest import (
    asking_no_claims,
    build_study,
    make_trials,
    report_of,
    writing_no_png,
)
from tests.conftest import simulating_few


@pytest.fixture(scope="session")
def full() -> StudyFrames:
    """48 trials that vary much, of which one failed."""
    trials = make_trials(batches=(64, 128)).assign(select_on="dev")
    trials.loc[trials["seed"] == 1, "initial_queue_size"] = 0
    trials["queue_slice"] = trials["number"].map(lambda number: ("all", "0-512")[number % 2])
    trials.loc[5, ["state", "reason", "score"]] = "FAIL", "out of memory " * 30, np.nan
    return build_study(trials)


@pytest.fixture(scope="session")
def report(
    full: StudyFrames, tmp_path_factory: pytest.TempPathFactory, cache_of_few: Path
) -> Report:
    with simulating_few(cache_of_few), writing_no_png(), asking_no_claims():
        return report_of(full, tmp_path_factory.mktemp("report"))[0]
