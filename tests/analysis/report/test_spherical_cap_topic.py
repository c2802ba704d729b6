"""The topic on random and mixed negatives: on a page with mixed negatives, and on no other."""

from pathlib import Path

import pandas as pd
import pytest

from mtdlab.analysis.report import write_report
from mtdlab.analysis.report.topics import representation
from tests.analysis.conftest import build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def test_a_study_with_mixed_negatives_has_the_section_and_no_other(tmp_path: Path) -> None:
    trials = make_trials(seeds=(0, 1), decays=(0.85,), times=(1, 8))
    mixed = trials.assign(method="mixcse", mixing_weight=0.2)
    for runs, has_section in ((mixed, True), (trials, False)):
        topics, made = (representation.SPHERICAL_CAP,), {"generated": "now", "version": "1"}
        report = write_report(build_study(runs), tmp_path, **made, topics=topics)
        page = report.page.read_text(encoding="utf-8")
        assert ("Random and mixed negatives" in page) == has_section
        # the page has a row per angle, the file one per angle and dimension
        assert ("by angle in degrees, in 24 dimensions" in page) == has_section
        figures = [tmp_path / "figures" / f"spherical_cap.{kind}" for kind in ("png", "svg")]
        assert report.figures == tuple(figures if has_section else [])
        if has_section:
            table = pd.read_csv(tmp_path / "tables" / "spherical_cap.csv")
            # conftest's spectra have 24 dimensions
            assert 24 in set(table["dimension"])
            assert (table["mixed"] > table["mean"]).all()
    assert not (tmp_path / "tables" / "spherical_cap.csv").exists()
