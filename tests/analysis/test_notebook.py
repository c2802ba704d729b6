"""What a notebook imports from `analysis` itself."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from mtdlab import analysis
from tests.analysis.conftest import SETTINGS, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def test_the_functions_of_a_notebook_take_arrays() -> None:
    from mtdlab.analysis import alignment, d_trace, singular_values, uniformity

    x = np.random.default_rng(0).normal(size=(20, 4))
    assert d_trace(0.85, 512, 64) == pytest.approx(14.6667, abs=1e-4)
    assert (alignment(x, x), type(uniformity(x))) == (0.0, float)
    assert singular_values(x).tolist() == pytest.approx(np.linalg.svd(x)[1].tolist())


def test_a_verdict_needs_only_mtd_score_and_seed() -> None:
    from mtdlab.analysis import compute_verdict

    trials = make_trials(noise=0.05, decays=(0.75,), times=(1, 2, 4, 8, 16))
    bare = compute_verdict(trials[["mtd", "score", "seed"]], ())
    full = compute_verdict(trials, SETTINGS)
    assert full.sentence == f"{bare.sentence[:-1]}, at EMA decay 0.75 and batch size 64."
    assert dataclasses.replace(full, sentence=bare.sentence) == bare


def test_the_package_imports_neither_torch_nor_pandas_before_they_are_used() -> None:
    code = (
        "import sys, analysis; from mtdlab.analysis import d_trace; print(d_trace(0.5, 4, 4), "
        "*(name in sys.modules for name in ('pandas', 'torch', 'sqlalchemy')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("3.0 False False False\n", "")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'mtdlab\.analysis' has no attribute 'd_trac'"):
        _ = analysis.d_trac
