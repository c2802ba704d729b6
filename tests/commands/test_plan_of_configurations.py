"""What plan states of a study that compares configurations: power, and what a decision takes."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.api.plan import plan
from mtdlab.commands.plan import describe_design

STUDY = """\
study: rates
trainer: {method: simcse}
search: {learning_rate: [0.1, 0.2, 0.3]}
until: {decided: true, max_seeds: 6}
"""
pytestmark = pytest.mark.usefixtures("few_simulated_studies")


def test_the_power_of_a_comparison_is_stated_as_that_of_levels_is(tmp_path: Path) -> None:
    path, url = tmp_path / "rates.yaml", f"sqlite:///{tmp_path / 'a.db'}"
    path.write_text(STUDY)
    found = plan(path, storage=url, measure=False, effect=5.0, sd=1.0).design
    power = found.power
    assert power is not None
    best, equivalent = power.targets
    assert (best.kind, best.compared, best.points, power.seeds) == ("best", 3, 5.0, 6)
    assert (equivalent.kind, equivalent.points, power.power) == ("equivalent", 0.5, 0.8)
    assert power.precision.residual_sd == pytest.approx(1.0)
    assert best.found is not None
    assert best.found > 0.8
    assert best.needed.seeds is not None
    assert best.needed.seeds <= 6
    lines = describe_design(found)
    assert max(map(len, lines)) <= 100
    text = " ".join(" ".join(lines).split())
    share, seeds = 100 * best.found, best.needed.seeds
    assert f"best of 3 configurations by 5 points {share:.0f} % {seeds} seeds" in text
    assert "all within 0.5 points" in text
    assert "residual standard deviation 1 points, as given; correlations none" in text
    assert re.search(r"standard error of a difference: [\d.]+ points from 6 seeds", text)


def test_where_seeds_hide_what_items_add_it_stays_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimated variance of 0 says that seeds scatter more, not that items add nothing."""
    scores = pd.DataFrame(np.random.default_rng(0).normal(size=(2, 3)))
    hidden = LevelScores(scores, np.zeros((3, 3)), items=1_500, ordered=False)
    path, url = tmp_path / "rates.yaml", f"sqlite:///{tmp_path / 'a.db'}"
    path.write_text(STUDY)
    before = plan(path, storage=url, measure=False).design.power
    monkeypatch.setattr("mtdlab.api.plan._recorded_scores", lambda *_, **__: (hidden, 6))
    found = plan(path, storage=url, measure=False).design.power
    assert before is not None
    assert found is not None
    assert found.bases["errors"] == "from 6 recorded runs"
    assert found.items == before.items > 0
    assert found.precision.of_items == pytest.approx(before.precision.of_items)
    hides = "; in 6 recorded runs the scatter of seeds hides theirs"
    assert found.bases["items"] == before.bases["items"] + hides


def test_the_scatter_of_some_configurations_is_that_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of two of three configurations tell the residual deviation that plan would assume."""
    scores = pd.DataFrame({0: [40.0, 48, 41, 44], 1: [43.0, 47, 47, 41]})
    some = LevelScores(scores, np.diag([0.3, 0.3]), items=1_500, ordered=False)
    path, url = tmp_path / "rates.yaml", f"sqlite:///{tmp_path / 'a.db'}"
    path.write_text(STUDY)
    monkeypatch.setattr("mtdlab.api.plan._recorded_scores", lambda *_, **__: (some, 8))
    power = plan(path, storage=url, measure=False).design.power
    assert power is not None
    assert power.bases["errors"] == "from 8 recorded runs"
    # nothing is known of the items' effect on the third, which is not to say that it is hidden
    assert power.bases["items"] == "assumed: 21 over the root of their number"
    of_differences = np.std([3.0, -1, 6, -3], ddof=1)
    assert power.precision.residual_sd == pytest.approx(of_differences / np.sqrt(2))


def test_one_seed_and_one_configuration_have_no_power(tmp_path: Path) -> None:
    path, url = tmp_path / "rates.yaml", f"sqlite:///{tmp_path / 'a.db'}"
    path.write_text(STUDY.replace("until: {decided: true, max_seeds: 6}", "seeds: [0]"))
    design = plan(path, storage=url, measure=False).design
    assert "one seed finds nothing: a comparison takes at least two" in " ".join(
        describe_design(design)
    )
    path.write_text("study: one\nseeds: [0, 1]\n")
    assert plan(path, storage=url, measure=False).design.power is None
