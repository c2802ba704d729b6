"""The published rows that stand beside a study's methods."""

import numpy as np
import pytest

from mtdlab.analysis.data.published import published_sts, published_transfer
from mtdlab.analysis.data.tasks import STS, TRANSFER
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import methods as topic
from tests.docs.reference_tables import example_studies


def test_each_method_has_its_published_row() -> None:
    rows = published_sts().set_index(["size", "model"])
    expected = {
        ("base", "IS-BERT"): 66.58,
        ("base", "CT-BERT"): 72.05,
        ("base", "DeCLUTR-RoBERTa"): 69.99,
        ("base", "BERT-flow on NLI text (evaluated by SimCSE)"): 66.55,
        ("base", "GloVe (avg.)"): 61.32,
        ("base", "ConSERT-BERT (unsupervised)"): 72.74,
        ("base", "ESimCSE-BERT"): 78.27,
        ("base", "MixCSE-BERT"): 77.66,
        ("base", "MoCoSE-BERT"): 77.27,
        ("large", "ConSERT-BERT (unsupervised; trained again by its repository)"): 76.45,
        ("large", "SNCSE-RoBERTa"): 81.77,
        ("large", "HiCL on SNCSE-RoBERTa"): 81.79,
    }
    assert {key: rows.loc[key, "average"] for key in expected} == expected
    assert rows.loc[("base", "ConSERT-BERT (unsupervised)"), "STS13"] == 78.49
    assert np.isnan(rows.loc[("base", "ESimCSE-BERT"), "STS13"])
    transfer = published_transfer().set_index("model")
    assert transfer.loc["Skip-thought", ["SST2", "average"]].tolist() == [82.00, 83.50]


@pytest.mark.parametrize(("table", "tasks"), [(published_sts, STS), (published_transfer, TRANSFER)])
def test_averages_are_those_of_the_tasks(table: object, tasks: tuple[str, ...]) -> None:
    rows = table()
    known = rows.dropna()
    assert len(known) > 8
    # the papers round the average of values that they round themselves
    off = (known[list(tasks)].mean(axis=1) - known["average"]).abs()
    assert off.max() < 0.015
    assert not rows.duplicated(["model", "size"]).any()


def test_the_page_marks_them_as_published() -> None:
    study = example_studies()[3]
    sts, transfer = topic.PUBLISHED.build(StudyContext(study)).tables
    assert all(str(row[0]).startswith("published: ") for row in (*sts.rows, *transfer.rows))
    assert "not of this study" in sts.caption
