"""The claims of the papers: their numbers are those of the published files, by hand where noted."""

import pandas as pd
import pytest

from mtdlab.analysis.data.claims import PaperClaim, load_claims, read_claims
from mtdlab.analysis.data.meaning import PublishedFileError, add_meaning, is_value, load_rows
from mtdlab.analysis.data.published import load_published
from mtdlab.analysis.experiments import EXPERIMENTS

CLAIMS = {claim.name: claim for claim in load_claims()}
WITHOUT_TABLE = {"hicl-sncse-large": [0.2], "hicl-sncse-roberta": [0.44]}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_printed_size_is_that_of_the_published_file(claim: PaperClaim) -> None:
    if claim.name in WITHOUT_TABLE:
        assert (claim.sizes, claim.table) == (WITHOUT_TABLE[claim.name], "")
        return
    assert bool(claim.table) == bool(claim.sizes)
    # printed with two decimals; means over rows are rounded
    assert claim.find_sizes() == pytest.approx(claim.sizes, abs=0.0051)
    if claim.alike is None:
        assert all(size > 0 for size in claim.sizes)
    else:
        assert all(abs(size) < claim.alike for size in claim.sizes)


def test_sizes_by_hand() -> None:
    def sizes(name: str, *tasks: str) -> list[float]:
        return CLAIMS[name].find_sizes(tasks)

    assert sizes("slice-middle") == pytest.approx([0.92, 1.31, 0.84])
    assert sizes("slice-middle-above-all") == pytest.approx([0.16])
    # on STS-B the whole queue is first, and over three tasks the two are alike
    assert sizes("slice-middle-above-all", "STSB") == pytest.approx([78.43 - 78.74])
    assert sizes("slice-middle-above-all", "STS12", "STSB", "SICKR") == pytest.approx(
        [0.0267], abs=1e-3
    )
    losses = [sizes(f"queue-4096-{start}")[0] for start in ("none", "quarter", "half", "whole")]
    assert losses == pytest.approx([25.21, 26.88, 38.20, 30.49])
    falls = [sizes(f"mtd-falls-{batch}")[0] for batch in (64, 128, 256)]
    assert falls == pytest.approx([0.97, 0.48, 1.36])
    assert sizes("mocose-above-simcse", "STSB") == pytest.approx([78.68 - 76.85])
    assert sizes("transfer-trec") == pytest.approx([89.80 - 84.06])
    assert sizes("mixcse-transfer", "CR") == pytest.approx([86.77 - 85.92])


def test_figure_2_is_the_mean_of_figure_3() -> None:
    by_batch = load_published("figure3_mtd_by_batch").groupby("mtd")["correlation"].mean()
    read = load_published("figure2_mtd").set_index("mtd")["correlation"]
    # both were read off, to about 0.03
    assert by_batch.to_numpy() == pytest.approx(read.to_numpy(), abs=0.05)
    assert read.index.max() == 21


def test_scatter_of_one_configuration_is_why_small_sizes_are_not_contradicted() -> None:
    """K 512, N 64, K_s 128, FGSM: six printed scores of one configuration, and two of dropout."""
    rows = [
        ("table3_ema_decay", {"ema_decay": 0.85}, 76.49),
        ("table9_fgsm_epsilon", {"fgsm_epsilon": 5e-9}, 76.64),
        ("table4_heads", {"projection_layers": 1, "prediction_layers": 2}, 76.89),
        ("table5_augmentation", {"augmented": "fgsm:5e-9"}, 77.04),
        ("table6b_batch_size", {"batch_size": 64}, 77.25),
        ("table7_initial_queue", {"share": 0.25, "queue_size": 512}, 77.30),
        ("table5_augmentation", {"augmented": "none"}, 76.76),
        ("table9_fgsm_epsilon", {"fgsm_epsilon": 0}, 76.26),
    ]
    for name, selection, printed in rows:
        table = load_rows(name)
        for column, value in selection.items():
            table = table[is_value(table[column], value)]
        assert table["published"].tolist() == [printed], name


def test_every_published_table_and_figure_has_a_claim() -> None:
    named = {claim.table for claim in CLAIMS.values()}
    assert {experiment.file for experiment in EXPERIMENTS} <= named
    others = {"table1_sts", "table2_transfer", "figure2_mtd", "figure3_mtd_by_batch"}
    assert others | {"mixcse_sts", "mixcse_transfer"} <= named
    assert len(CLAIMS) >= 40
    assert all(claim.states.endswith(".") for claim in CLAIMS.values())


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_columns_are_what_the_sides_differ_in(claim: PaperClaim) -> None:
    assert bool(claim.columns) == (not claim.reason)
    assert not {*claim.at} & {*claim.columns}
    assert claim.reason or all("method" in side for side in claim.sides)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- name: [", "line 1 is no YAML"),
        ("- {name: a, source: b}", "claim 1, states: field required"),
        ("- {name: a, source: b, states: c, sise: [1]}", "claim 1, sise: unexpected keyword"),
        ("- {name: a, source: b, states: c}", "a: needs either rows to compare, or a reason"),
        (
            "- {name: a, source: b, states: c, compare: {mtd: 5}, against: [{mtd: 6}], "
            "sizes: [1, 2]}",
            "a: has 2 sizes of 1 differences",
        ),
        (
            "- {name: a, source: b, states: c, compare: {mtd: 5}, alike: 0.5}",
            "a: needs a margin above 0, and rows that are alike",
        ),
        (2 * "- {name: a, source: b, states: c, reason: d}\n", "a stands there twice"),
        ("a: 1", "all: input should be a valid list"),
    ],
)
def test_an_edited_file_is_named_in_a_sentence(text: str, fault: str) -> None:
    with pytest.raises(PublishedFileError, match="install mtdlab again") as caught:
        read_claims(text)
    assert str(caught.value).startswith(f"claims.yaml, {fault}")
    assert "\n" not in str(caught.value)


def test_an_edited_table_is_named_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    edited = load_published("table8_queue_slices").drop(columns="positions_used")
    monkeypatch.setattr("mtdlab.analysis.data.meaning.load_published", lambda _: edited)
    with pytest.raises(PublishedFileError, match=r"table8_queue_slices\.csv .* it was edited"):
        load_rows("table8_queue_slices")


def test_runs_without_a_queue_have_no_share_and_no_slice() -> None:
    runs = pd.DataFrame(
        {
            "queue_size": [256, 0],
            "initial_queue_size": [64, 0],
            "queue_slice": ["64-192", "all"],
            "prediction_dim": [85, 0],
        }
    )
    found = add_meaning(runs, ["share", "slice", "width"], 128)
    assert found["share"].tolist()[0] == 0.25
    assert found["slice"].tolist()[0] == "1/4-3/4"
    assert found[["share", "slice"]].iloc[1].isna().all()
    assert found["width"].tolist() == [0.667, 1.0]
