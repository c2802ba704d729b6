"""The topic on random and mixed negatives: on a page with mixed negatives, and on no other."""

from pathlib import Path

import pandas as pd

from analysis.report import write_report
from analysis.report.topics import spherical_cap
from tests.analysis.conftest import build_study, make_trials


def mixed(trials: pd.DataFrame) -> pd.DataFrame:
    return trials.assign(method="mixcse", mixing_weight=0.2)


def test_a_study_with_mixed_negatives_has_the_section(tmp_path: Path) -> None:
    report = write_report(
        build_study(mixed(make_trials(seeds=(0, 1), decays=(0.85,), times=(1, 8)))),
        tmp_path,
        generated="now",
        version="1",
        topics=(spherical_cap.TOPIC,),
    )
    page = report.page.read_text(encoding="utf-8")
    assert "Random and mixed negatives" in page
    table = pd.read_csv(tmp_path / "tables" / "spherical_cap.csv")
    # conftest's spectra have 24 dimensions
    assert 24 in set(table["dimension"])
    assert (table["mixed"] > table["mean"]).all()
    assert (tmp_path / "figures" / "spherical_cap.png").exists()


def test_other_studies_have_not(tmp_path: Path) -> None:
    report = write_report(
        build_study(make_trials(seeds=(0, 1), decays=(0.85,), times=(1, 8))),
        tmp_path,
        generated="now",
        version="1",
        topics=(spherical_cap.TOPIC,),
    )
    assert "Random and mixed" not in report.page.read_text(encoding="utf-8")
    assert not (tmp_path / "tables" / "spherical_cap.csv").exists()
