"""What the test of hostile names finds on a page that is not escaped."""

from pathlib import Path

import jinja2
import pytest

from mtdlab.analysis.report import page
from tests.analysis.conftest import build_study, make_trials
from tests.analysis.report.test_report import assert_names_are_text, write_hostile


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_rendered")
def test_a_page_that_is_not_escaped_has_handlers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unescaped(jinja2.Environment):
        """An environment whose texts are markup."""

        def __init__(self, **options: object) -> None:
            super().__init__(**options | {"autoescape": False})  # type: ignore[arg-type]

    monkeypatch.setattr(page, "Environment", Unescaped)
    monkeypatch.setattr(page, "_environment", page._environment.__wrapped__)
    trials = make_trials()
    report = write_hostile(build_study(trials), trials, tmp_path)
    with pytest.raises(AssertionError, match=r"handlers or elements: .*onerror"):
        assert_names_are_text(report)
