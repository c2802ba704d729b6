"""Figures, through the artists they draw and the bytes they become."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from numpy.typing import NDArray

from mtdlab.analysis import figures
from mtdlab.analysis.data.runs import choose_evenly, format_mtd, traced_runs
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.inference.pairing import compute_paired_curve, compute_smooth, level_scores
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import score as score_topic
from mtdlab.analysis.statistics.curves import compute_mtd_curve
from mtdlab.analysis.statistics.training import compute_training_means
from tests.analysis.conftest import SETTINGS, build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


@pytest.fixture
def ax() -> Axes:
    return figures.new_figure(1, 1, width=4, height=3)[1][0]


def points_of(ax: Axes) -> NDArray[np.float64]:
    clouds = [artist for artist in ax.collections if isinstance(artist, PathCollection)]
    return np.concatenate([np.asarray(cloud.get_offsets(), dtype=np.float64) for cloud in clouds])


def labelled_line(ax: Axes, label: str) -> NDArray[np.float64]:
    line = next(line for line in ax.get_lines() if line.get_label() == label)
    return np.asarray(line.get_xydata(), dtype=np.float64)


def test_the_curve_shows_every_run_and_the_means(ax: Axes) -> None:
    trials = make_trials()
    curve = compute_mtd_curve(trials)
    runs = traced_runs(trials)
    figures.draw_mtd_curve(curve, ax, runs=runs, value="score", name="score")
    np.testing.assert_array_equal(points_of(ax), runs[["mtd", "score"]])
    np.testing.assert_array_equal(labelled_line(ax, "mean over seeds"), curve[["mtd", "mean"]])
    assert ax.get_xscale() == "log"
    assert len(ax.get_lines()) == 1 + 3
    assert ax.get_ylabel() == "score"


def test_one_seed_draws_no_band(ax: Axes) -> None:
    figures.draw_curve(compute_mtd_curve(make_trials(seeds=(0,))), ax)
    assert len(ax.collections) == 0
    figures.draw_curve(compute_mtd_curve(make_trials()), ax)
    assert len(ax.collections) == 1


def test_a_band_far_wider_than_the_points_is_stated_and_not_drawn(ax: Axes) -> None:
    trials = make_trials(decays=(0.85,), times=(1, 8))
    trials["score"] = 70 + trials["seed"] / 10 + trials["mtd"] / 100
    lowest, highest = trials["score"].min(), trials["score"].max()
    curve = compute_mtd_curve(trials)
    options = {"runs": trials, "value": "score", "name": "score"}
    figures.draw_mtd_curve(curve.assign(low=lowest, high=highest), ax, **options)
    assert "95 % CI" in ax.get_legend_handles_labels()[1]
    ax.clear()
    figures.draw_mtd_curve(curve.assign(low=60.0, high=80.0), ax, **options)
    low, high = ax.get_ylim()
    assert 69 < low < lowest < highest < high < 71.5
    assert "95 % CI 60 to 80, not drawn" in ax.get_legend_handles_labels()[1]


def test_a_wide_range_is_drawn_on_a_logarithm(ax: Axes) -> None:
    curve = compute_mtd_curve(make_trials(times=(1, 100)))
    figures.draw_conditions({"mean": curve}, ax, name="score")
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5", "10", "20", "50", "100"]


def test_runs_without_an_mtd_are_a_horizontal_line(ax: Axes) -> None:
    scores = {"SimCSE": [70.0, 72.0], "other": [60.0]}
    runs = {
        name: pd.DataFrame({"score": values, "seed": 0, "number": range(len(values))})
        for name, values in scores.items()
    }
    figures.draw_untraced(runs, ax)
    np.testing.assert_array_equal(labelled_line(ax, "SimCSE (no MTD)"), [[0, 71], [1, 71]])
    np.testing.assert_array_equal(labelled_line(ax, "other (no MTD)"), [[0, 60], [1, 60]])
    drawn = [line for line in ax.get_lines() if str(line.get_label()).endswith("(no MTD)")]
    assert len({(line.get_color(), line.get_linestyle()) for line in drawn}) == 2
    assert len({line.get_marker() for line in ax.get_lines()} - {"None"}) == 2


@pytest.mark.parametrize("decays", [(0.75, 0.85), (0.75, 0.999)], ids=["narrow", "wide"])
@pytest.mark.parametrize(
    "score",
    [40.0, 95.0, *(pytest.param(score, marks=pytest.mark.slow) for score in (55.0, 70.0, 78.0))],
)
def test_lines_without_an_mtd_lie_inside_the_axes_beside_a_cut_band(
    decays: list[float], score: float
) -> None:
    trials = make_trials(seeds=(0, 1), decays=decays, shape=lambda _: 70.0)
    without = trials.iloc[:2].assign(mtd=np.nan, score=score, method="simcse", number=[98, 99])
    trials = pd.concat([trials.assign(method="mocose"), without], ignore_index=True)
    drawing = score_topic.draw(StudyContext(build_study(trials)))
    assert drawing is not None
    with figures.figure_style("plot"):
        figure, (ax,) = figures.new_figure(1, 1, width=7, height=3)
        drawing.panels[0][1](ax)
        figure.draw_without_rendering()
    legend = ax.get_legend()
    assert any(text.get_text().endswith(", not drawn") for text in legend.get_texts())
    assert not any(artist.get_label() == "95 % CI" for artist in ax.collections)
    line = labelled_line(ax, "SimCSE (no MTD)")
    np.testing.assert_array_equal(line, [[0, score], [1, score]])
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert bottom < score < top
    for points in (points_of(ax), labelled_line(ax, "mean over seeds")):
        assert ((left < points[:, 0]) & (points[:, 0] < right)).all()
        assert ((bottom < points[:, 1]) & (points[:, 1] < top)).all()


def test_limits_are_not_extended_for_lines_inside_them(ax: Axes) -> None:
    ax.set_ylim(10, 20)
    runs = pd.DataFrame({"score": [15.0], "seed": 0, "number": 0})
    figures.draw_untraced({"SimCSE": runs}, ax)
    assert ax.get_ylim() == (10, 20)


def test_the_paired_curve_has_a_line_at_zero(ax: Axes) -> None:
    trials = make_trials()
    levels = level_scores(trials, SETTINGS)
    curve = compute_paired_curve(levels)
    smooth = compute_smooth(levels)
    best = curve["mtd"].iloc[3:5].tolist()
    figures.draw_paired_curve(curve, ax, smooth=smooth, optimal=best)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [0, 0])
    np.testing.assert_array_equal(labelled_line(ax, "smooth curve"), smooth[["mtd", "mean"]])
    rings = [
        artist
        for artist in ax.collections
        if artist.get_label() == "indistinguishable from the best"
    ]
    np.testing.assert_array_equal(rings[0].get_offsets(), curve[["mtd", "mean"]].iloc[3:5])
    np.testing.assert_array_equal(labelled_line(ax, "level"), curve[["mtd", "mean"]])


def test_bars_that_are_far_wider_than_the_means_are_stated_and_not_drawn(ax: Axes) -> None:
    means = pd.DataFrame({"mtd": [5.0, 10.0, 20.0], "mean": [-1.0, 1.0, 0.0]})
    wide = means.assign(low=means["mean"] - 40, high=means["mean"] + 40)
    figures.draw_paired_curve(wide, ax, smooth=wide[:0], optimal=[10.0])
    entries = [text.get_text() for text in ax.get_legend().get_texts()]
    assert entries == ["level", "indistinguishable from the best", "95 % CI -41 to 41, not drawn"]
    assert len(ax.collections) == 1  # the ring
    shared = figures.new_figure(1, 1, width=4, height=3)[1][0]
    figures.draw_paired_curve(wide, shared, smooth=wide[:0], optimal=[], limits=(-50, 50))
    assert shared.get_ylim() == (-50, 50)
    assert "95 % CI" in [text.get_text() for text in shared.get_legend().get_texts()]


def test_divisions_of_mtd_are_a_line_each_with_bars(ax: Axes) -> None:
    cells = pd.DataFrame(
        {
            "ema_decay": [0.9, 0.5, 0.5, 0.9],
            "mtd": [26.0, 18.0, 6.0, 14.0],
            "mean": [30.0, 28.0, 31.0, 33.0],
        }
    )
    bars = cells.assign(within_low=cells["mean"] - 1, within_high=cells["mean"] + 2)
    figures.draw_divisions(bars, ax, name="score (points)")
    first, second = ax.get_lines()
    np.testing.assert_array_equal(first.get_xydata(), [[6, 31], [18, 28]])
    np.testing.assert_array_equal(second.get_xydata(), [[14, 33], [26, 30]])
    segments = ax.collections[1].get_segments()
    np.testing.assert_array_equal(segments, [[[14, 32], [14, 35]], [[26, 29], [26, 32]]])
    assert [text.get_text() for text in ax.texts] == ["η 0.5", "η 0.9"]


def test_each_batch_size_has_its_line_and_one_colour_in_all_panels() -> None:
    curves = summarise(make_trials(batches=(64, 128)), by=["batch_size", "mtd"])
    colours = []
    for shown in (curves, curves[curves["batch_size"] == 128]):
        ax = figures.new_figure(1, 1, width=4, height=3)[1][0]
        named = {f"batch size {size}": curve for size, curve in shown.groupby("batch_size")}
        order = ["batch size 32", "batch size 64", "batch size 128"]
        figures.draw_conditions(named, ax, name="score", order=order)
        for label, curve in named.items():
            np.testing.assert_array_equal(labelled_line(ax, label), curve[["mtd", "mean"]])
        colours.append({line.get_label(): line.get_color() for line in ax.get_lines()})
    assert colours[0]["batch size 128"] == colours[1]["batch size 128"]
    assert colours[0]["batch size 128"] != colours[0]["batch size 64"]


def test_a_legend_stands_below_the_axes(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], label="a line")
    ax.set_xlabel("steps")
    figures.add_legend(ax)
    figure, legend = ax.get_figure(root=True), ax.get_legend()
    figure.draw_without_rendering()
    assert legend.get_window_extent().y1 <= ax.xaxis.label.get_window_extent().y0
    assert legend.get_window_extent().y0 >= 0


@pytest.mark.parametrize("times", [(1, 2), (1, 2, 3, 4, 5, 6, 7)])
def test_every_run_is_drawn_in_the_look_of_its_level(ax: Axes, times: tuple[int, ...]) -> None:
    table = make_trials(decays=(0.85,), times=times).rename(columns={"uniformity": "similarity"})
    figures.draw_score_by_similarity(table, ax, name="score")
    drawn, expected = points_of(ax), table[["similarity", "score"]].to_numpy()
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, expected))
    legend, scales = ax.get_legend(), len(ax.get_figure(root=True).axes) - 1
    named = [text.get_text() for text in legend.get_texts()] if legend else []
    levels = sorted(table["mtd"].unique())
    few = len(levels) <= 6
    assert named == ([f"MTD {format_mtd(level)}" for level in levels] if few else [])
    assert scales == (not few)


def test_names_at_the_ends_of_lines_do_not_overlap_and_keep_their_order(ax: Axes) -> None:
    ax.set_ylim(0, 10)
    figures.name_ends(ax, [(9.9, "top", "k"), (9.8, "next", "k"), (5.0, "low", "k")])
    figure = ax.get_figure(root=True)
    figure.draw_without_rendering()
    boxes = {text.get_text(): text.get_window_extent() for text in ax.texts}
    assert boxes["low"].y1 < boxes["next"].y0 < boxes["next"].y1 <= boxes["top"].y0 + 0.5
    middle = ax.transData.transform((0, 5.0))[1]
    assert abs((boxes["low"].y0 + boxes["low"].y1) / 2 - middle) < 2


def test_training_curves_of_few_groups_are_means_with_bands_behind_them_the_trials(
    ax: Axes,
) -> None:
    scores = {(0, 10): 1.0, (0, 20): 3.0, (1, 10): 3.0, (1, 20): 9.0, (2, 10): 4.0}
    rows = [
        {"number": number, "step": step, "score": score, "seed": number, "mtd": 5.0}
        for (number, step), score in scores.items()
    ]
    curves = pd.DataFrame(rows).assign(group="MTD 5", text="", trial=0)
    means = compute_training_means(curves, value="score")
    # trial 2 ended early; t(1) = 12.7062, standard deviations of 1 and 3, and of 3 and 9
    assert means["step"].tolist() == [10, 20]
    assert means["mean"].tolist() == pytest.approx([2, 6])
    expected = [2 + 12.7062 * 2**0.5 / 2**0.5, 6 + 12.7062 * 18**0.5 / 2**0.5]
    assert means["high"].tolist() == pytest.approx(expected, rel=1e-4)
    figures.draw_training(curves, means, ax, value="score", label="score")
    widths = sorted(line.get_linewidth() for line in ax.get_lines())
    assert widths == [0.7] * 3 + [1.6]


def test_training_curves_of_many_methods_have_a_colour_and_a_name_for_each(ax: Axes) -> None:
    rows = [
        {"number": number, "step": step, "score": number + step, "method": f"method {number % 8}"}
        for number in range(16)
        for step in (10.0, 20.0)
    ]
    curves = pd.DataFrame(rows).assign(mtd=0.0, text="", trial=0, seed=0)
    curves["group"] = curves["method"]
    means = compute_training_means(curves, value="score")
    figures.draw_training(curves, means, ax, value="score", label="score")
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [f"method {place}" for place in range(8)]
    looks = {(line.get_color(), str(line.get_linestyle())) for line in ax.get_lines()}
    assert len(looks) == 8
    means_drawn = [line for line in ax.get_lines() if line.get_zorder() == 4]
    # method 0 has trials 0 and 8
    assert [*map(float, np.asarray(means_drawn[0].get_ydata()))] == pytest.approx([14, 24])
    assert len(means_drawn) == 8


def test_spectra_after_training_are_drawn_with_the_one_before(ax: Axes) -> None:
    pairs = [("after", float(level)) for level in (1, 2, 3)] + [("before", np.nan)]
    index = pd.MultiIndex.from_tuples(pairs, names=["moment", "mtd"])
    spectra = pd.DataFrame([[1.0, 0.5, 0.0]] * len(pairs), index=index)
    figures.draw_spectra(spectra.loc[["before"]], spectra.loc[["after"]], ax)
    assert len(ax.get_lines()) == 3 + 1
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == ["after training, MTD 1, 2, 3", "before training"]
    line = labelled_line(ax, "before training")
    np.testing.assert_array_equal(line, [[1, 1], [2, 0.5], [3, np.nan]])


def test_ratios_of_spectra_are_to_their_geometric_mean(ax: Axes) -> None:
    levels = pd.MultiIndex.from_product([["after"], [5.0, 20.0]], names=["moment", "mtd"])
    after = pd.DataFrame([[1.0, 0.4, 1e-7], [1.0, 0.1, 1e-7]], index=levels)
    figures.draw_spectrum_ratios(after, ax)
    lines = [np.asarray(line.get_xydata(), dtype=float) for line in ax.get_lines()]
    assert [line[:, 0].tolist() for line in lines] == [[1, 2, 3]] * 2
    # the mean of 0.4 and 0.1 is 0.2; values of rounding errors alone are not drawn
    assert lines[0][:2, 1] == pytest.approx([1, 2])
    assert lines[1][:2, 1] == pytest.approx([1, 0.5])
    assert np.isnan([line[2, 1] for line in lines]).all()


def test_seed_differences_are_the_best_level_less_each_end() -> None:
    trials = make_trials(decays=(0.85,), times=(1, 2, 8)).round({"mtd": 3})
    info = StudyContext(build_study(trials))
    scores = trials.pivot_table(index="seed", columns="mtd", values="score")
    first, best, last = scores.columns
    assert info.verdict.peak_mtd == best
    above = (scores[best] > scores[first]).sum(), (scores[best] > scores[last]).sum()
    assert score_topic.describe(info)[1] == (
        f"MTD 8.67 scores higher than MTD 7.67 in {above[0]} of 3 seeds and than MTD 14.7 in "
        f"{above[1]} of 3 seeds."
    )


def test_rows_that_are_drawn_are_chosen_evenly() -> None:
    table = pd.DataFrame({"mtd": range(60)})
    drawn = choose_evenly(table, 24)["mtd"].tolist()
    assert (len(drawn), drawn[0], drawn[-1]) == (24, 0, 59)
    assert set(np.diff(drawn)) == {2, 3}
    assert choose_evenly(table, 60) is table


GRID = {"by": ("share", "queue_size"), "value": "mean", "labels": ("share", "size")}


def test_cells_of_a_grid_are_written_out(ax: Axes) -> None:
    cells = [(0.0, 64, 1.0), (0.25, 64, 2.0), (0.25, 128, 3.456)]
    table = pd.DataFrame(cells, columns=["share", "queue_size", "mean"])
    figures.draw_grid(table, ax, name={0.0: "none", 0.25: "1/4"}.get, **GRID)
    assert [text.get_text() for text in ax.texts] == ["1.00", "2.00", "3.46"]
    assert {text.get_color() for text in ax.texts} == {".15"}
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["none", "1/4"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["64", "128"]
    # in the order of the rows, 0 the lightest; the cell without a value is not drawn
    (mesh,) = ax.collections
    drawn = np.ma.filled(mesh.get_array(), np.nan)
    np.testing.assert_array_equal(drawn, [[1.0, np.nan], [2.0, 3.456]])
    assert mesh.get_clim() == (1.0, 3.456)


def test_cells_too_narrow_for_numbers_have_none(ax: Axes) -> None:
    table = pd.DataFrame({"share": 0.0, "queue_size": range(13), "mean": [*range(13)]})
    figures.draw_grid(table, ax, name=str, **GRID)
    assert not ax.texts
    (mesh,) = ax.collections
    assert mesh.get_clim() == (12 - 5, 12)


def test_rows_are_named_in_printable_letters(ax: Axes) -> None:
    table = pd.DataFrame(
        {"queue_slice": ["0-$x$\x00", "all"], "mean": [1.0, 2.0], "low": 0.5, "high": 2.5}
    )
    figures.draw_rows(table, ax, names=table["queue_slice"].tolist(), label="positions", name="s")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0-$x$?", "all"]
    np.testing.assert_array_equal(ax.get_lines()[0].get_xydata(), [[1, 0], [2, 1]])


def drawn(trials: pd.DataFrame) -> tuple[bytes, str]:
    with figures.figure_style("plot"):
        figure, axes = figures.new_figure(1, 1, width=4, height=3)
        figures.draw_score_by_similarity(trials.assign(similarity=0.5), axes[0], name="score")
        file = figures.to_svg(figure)
        svg = figures.to_page(figure, file, name="plot", title="A <b>", description="5 & 6")
        return figures.to_png(figure), svg


def test_the_same_data_give_the_same_bytes() -> None:
    first, second = drawn(make_trials()), drawn(make_trials())
    assert first == second
    assert first != drawn(make_trials(draw=1))


def test_negative_numbers_of_a_page_have_a_minus_sign() -> None:
    with figures.figure_style("plot"):
        figure, axes = figures.new_figure(1, 1, width=4, height=3)
        axes[0].plot([0, 1], [-1, -2], label="95 % CI -0.17 to 0.16, queue 0-256")
        axes[0].legend()
        file = figures.to_svg(figure)
        svg = figures.to_page(figure, file, name="plot", title="A", description="from -3 to 4")
    text = "".join(ElementTree.fromstring(svg).itertext())
    assert "95 % CI −0.17 to 0.16, queue 0-256" in text
    assert "from −3 to 4" in text


def test_png_has_200_dots_per_inch_and_no_date() -> None:
    png, _ = drawn(make_trials())
    assert int.from_bytes(png[16:20]) == 4 * 200
    assert b"Software" not in png
    assert b"tIME" not in png


def test_svg_has_real_text_its_own_ids_and_no_address() -> None:
    _, svg = drawn(make_trials())
    root = ElementTree.fromstring(svg)
    assert root.find("title") is not None
    assert root.findtext("title") == "A <b>"
    assert root.findtext("desc") == "5 & 6"
    assert "similarity of keys in use (mean cosine)" in svg
    assert "http" not in svg
    identifiers = re.findall(r'\bid="([^"]+)"', svg)
    assert len(identifiers) == len(set(identifiers))
    assert all(name.startswith("plot-") for name in identifiers)
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert {name for name in targets if not name.startswith("trial-")} <= set(identifiers)


@pytest.mark.slow
def test_many_points_are_drawn_as_pixels() -> None:
    _, svg = drawn(make_trials(seeds=range(200)))
    assert svg.count("<use") < 200
    assert "data:image/png;base64" in svg


def test_structures_that_coincide_are_both_to_be_seen_and_wide_bands_left_out() -> None:
    table = pd.DataFrame(
        {
            "structure": ["a"] * 3 + ["b"] * 3,
            "step": [10, 20, 30] * 2,
            "mean": [10.0, 20.0, 30.0] * 2,
            "low": [-100.0, 10.0, 20.0] * 2,
            "high": [110.0, 30.0, 40.0] * 2,
        }
    )
    ax = figures.new_figure(1, 1, width=4, height=3)[1][0]
    figures.draw_structures(table, ax, value="mean", label="score")
    lower, upper, _ = ax.get_lines()
    assert (lower.get_linestyle(), upper.get_linestyle()) == ("-", "--")
    assert lower.get_markersize() > upper.get_markersize()
    assert ax.get_ylim() == (0, 40)  # half of the 20 points between the means on both sides
    assert "95 % CI -100 to 110, not drawn" in ax.get_legend_handles_labels()[1]
