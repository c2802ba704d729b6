"""Figures by numbers: colours, overlaps, sizes of text, limits, labels, and what points state."""

import dataclasses
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import MOST_MARKED, describe_means, describe_runs
from mtdlab.analysis.data.tasks import label_score
from mtdlab.analysis.figures.spots import Spots
from mtdlab.analysis.figures.style import (
    BATCHES,
    COLOURS,
    MARKERS,
    LevelMarks,
    keep_span,
    mark_of,
    mtd_ticks,
)
from mtdlab.analysis.inference.pairing import compute_deviations
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.page import drop_dead_links
from mtdlab.analysis.report.topics import TOPICS
from mtdlab.analysis.report.topics import configurations as settings_topic
from mtdlab.analysis.report.topics import score as score_topic
from mtdlab.analysis.report.topics import sufficiency as sufficiency_topic
from mtdlab.analysis.report.topics import training as training_topic
from mtdlab.analysis.report.topics.base import compose
from mtdlab.analysis.statistics.configurations import compute_importances, independent_settings
from mtdlab.analysis.statistics.training import (
    MOST_POINTS,
    MOST_TRIALS,
    choose_curves,
    compute_training,
)
from tests.analysis.conftest import SETTINGS, build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")

Floats = NDArray[np.float64]
Composed = dict[tuple[str, str], Figure]

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
LUMINANCE = np.array([0.2126729, 0.7151522, 0.0721750])
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], LUMINANCE, [0.0193339, 0.1191920, 0.9503041]])
WHITE = TO_XYZ.sum(axis=1)
PANEL = {"light": "#ffffff", "dark": "#1e242a"}


def linear(colour: Floats) -> Floats:
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)


def shown(colour: object, mode: str) -> Floats:
    """sRGB as the page shows it: on dark pages inverted to 93 %, and the hue turned back."""
    rgb = np.array(to_rgb(colour))
    if mode == "light":
        return rgb
    inverted = 0.93 * (1 - rgb) + 0.07 * rgb
    # hue-rotate(180deg) of CSS filters: twice the grey of these weights minus the colour
    return np.clip(2 * np.array([0.213, 0.715, 0.072]) @ inverted - inverted, 0, 1)


def lab(rgb: Floats, vision: str) -> Floats:
    xyz = TO_XYZ @ np.clip(VISION[vision] @ linear(rgb), 0, 1) / WHITE
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(first: Floats, second: Floats) -> float:
    """Sharma, Wu and Dalal (2005)."""
    grey = (np.hypot(*first[1:]) + np.hypot(*second[1:])) / 2
    stretch = 1.5 - 0.5 * np.sqrt(grey**7 / (grey**7 + 25.0**7))
    (l1, a1, b1), (l2, a2, b2) = first * [1, stretch, 1], second * [1, stretch, 1]
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180
    hue = (h1 + turn / 2) % 360
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2

    def cos(degrees: float) -> float:
        return float(np.cos(np.radians(degrees)))

    t = 1 - 0.17 * cos(hue - 30) + 0.24 * cos(2 * hue) + 0.32 * cos(3 * hue + 6)
    t -= 0.20 * cos(4 * hue - 63)
    of_lightness = 1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2)
    dl = (l2 - l1) / of_lightness
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * t)
    angle = 60 * np.exp(-(((hue - 275) / 25) ** 2))
    rotation = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(np.radians(angle))
    return float(np.sqrt(dl**2 + dc**2 + dh**2 + rotation * dc * dh))


def contrast(first: Floats, second: Floats) -> float:
    low, high = sorted(float(LUMINANCE @ linear(colour)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def test_the_distance_of_colours_is_that_of_the_publication() -> None:
    # pairs 1, 7 and 25 of Sharma, Wu and Dalal (2005), table 1
    pairs = [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ]
    for first, second, expected in pairs:
        assert ciede2000(np.array(first), np.array(second)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("vision", list(VISION))
def test_the_colours_of_series_can_be_told_apart(mode: str, vision: str) -> None:
    seen = [lab(shown(colour, mode), vision) for colour in BATCHES]
    assert min(ciede2000(*pair) for pair in itertools.combinations(seen, 2)) > 10
    ground = shown(PANEL[mode], "light")
    assert min(contrast(shown(colour, mode), ground) for colour in BATCHES) >= 3


def test_series_differ_in_marker_too() -> None:
    assert len(set(MARKERS)) == len(BATCHES) == len(MARKERS) == MOST_MARKED
    assert [mark_of(place) for place in range(6)] == list(zip(BATCHES, MARKERS, strict=True))
    assert len({mark_of(place) for place in range(36)}) == 36


@pytest.mark.parametrize("vision", list(VISION))
def test_the_colours_of_mtd_rise_in_lightness(vision: str) -> None:
    lightness = [lab(np.array(COLOURS(at)[:3]), vision)[0] for at in np.linspace(0, 1, 9)]
    assert (np.diff(lightness) > 4).all()
    for mode, ground in PANEL.items():
        ends = (shown(COLOURS(at)[:3], mode) for at in (0.0, 1.0))
        assert min(contrast(end, shown(ground, "light")) for end in ends) > 2
    marks = LevelMarks(5 * 2 ** (np.arange(9) / 2))
    assert marks.mark_of(20.0)[0] == pytest.approx(COLOURS(0.5), abs=0.01)


def test_axes_of_scores_span_a_point_and_of_mtd_have_round_ticks() -> None:
    ax = figures.new_figure(1, 1, width=4, height=3)[1][0]
    ax.set_ylim(30.1, 30.2)
    keep_span(ax)
    assert ax.get_ylim() == pytest.approx((29.65, 30.65))
    ax.set_ylim(30, 32)
    keep_span(ax)
    assert ax.get_ylim() == (30, 32)
    assert mtd_ticks(5, 21) == [5, 10, 20]
    assert mtd_ticks(10, 15) == pytest.approx([10, 12, 14])


@pytest.mark.parametrize(
    ("metric", "evaluation", "expected"),
    [
        ("sts_test", "/data/STS-B", "Spearman ρ × 100 (STS-B test)"),
        ("sts_dev", "builtin", "Spearman ρ × 100 (built-in dev pairs)"),
        ("sts_test", "pairs", "Spearman ρ × 100 (test pairs)"),
        ("sts_average", "", "Spearman ρ × 100 (mean of 7 STS tasks)"),
        ("transfer_average", "", "accuracy × 100 (mean of 7 transfer tasks)"),
        ("MR", "", "accuracy × 100 (MR)"),
        ("loss of nobody", "", "loss of nobody (points)"),
    ],
)
def test_scores_are_labelled_by_their_metric(metric: str, evaluation: str, expected: str) -> None:
    assert label_score(metric, evaluation) == expected


@pytest.fixture(scope="module")
def composed() -> Composed:
    """Every figure of a study that varies much, in both widths, with its layout computed."""
    trials = make_trials(batches=(64, 128), times=(1, 4)).assign(method="mocose")
    other = trials.iloc[:3].assign(mtd=np.nan, method="simcse", number=[900, 901, 902])
    trials = pd.concat([trials, other], ignore_index=True)
    rows = [
        (number, step, 3.0 / step, 20.0 + step if step % 40 == 0 else np.nan)
        for number, step in itertools.product(trials["number"], range(1, 81))
    ]
    curves = pd.DataFrame(rows, columns=["number", "step", "loss", "score"])
    context = StudyContext(dataclasses.replace(build_study(trials), curves=curves))
    found = {}
    for topic in TOPICS:
        contents = topic.build(context)
        for name, drawing in contents.figures.items() if contents is not None else ():
            if drawing is None:
                continue
            for width in ("wide", "narrow"):
                with figures.figure_style(name):
                    figure = compose(drawing, "", narrow=width == "narrow")
                    figure.draw_without_rendering()
                found[name, width] = figure
    return found


def data_of(ax: Axes) -> Floats:
    """The places of all points of lines and scatters, in pixels."""
    lines = [
        ax.transData.transform(line.get_xydata())
        for line in ax.get_lines()
        if line.get_transform() == ax.transData and len(line.get_xdata())
    ]
    clouds = [
        ax.transData.transform(cloud.get_offsets())
        for cloud in ax.collections
        if len(cloud.get_offsets()) > 1
    ]
    places = np.concatenate([np.empty((0, 2)), *lines, *clouds])
    return places[np.isfinite(places).all(axis=1)]


def test_nothing_stands_over_data(composed: Composed) -> None:
    for (name, width), figure in composed.items():
        for ax in figure.axes:
            legend = ax.get_legend()
            boxes = [legend.get_window_extent()] if legend else []
            boxes += [ax.title.get_window_extent(), ax._left_title.get_window_extent()]
            for other in figure.axes:
                data = data_of(other)
                for box in boxes:
                    inside = (data >= box.min).all(axis=1) & (data <= box.max).all(axis=1)
                    assert not inside.any(), (name, width)


def test_everything_lies_within_the_figure_and_legends_apart(composed: Composed) -> None:
    for key, figure in composed.items():
        edge, legends = figure.bbox, []
        for ax in figure.axes:
            texts = [ax.xaxis.label, ax.yaxis.label, ax._left_title]
            boxes = [text.get_window_extent() for text in texts if text.get_text()]
            if legend := ax.get_legend():
                legends.append(legend.get_window_extent())
            for box in [*boxes, *legends]:
                assert (box.min >= edge.min - 1).all(), key
                assert (box.max <= edge.max + 1).all(), key
        for one, other in itertools.combinations(legends, 2):
            assert not one.overlaps(other), key


def test_text_is_legible_at_390_and_768_pixels(composed: Composed) -> None:
    # page and figure keep 40 + 13 pixels of a narrow window, 40 + 26 of a wide one
    for window, width, aside in ((390, "narrow", 53), (768, "wide", 66)):
        for (name, layout), figure in composed.items():
            if layout == width:
                scale = (window - aside) / (figure.get_size_inches()[0] * 72)
                sizes = [
                    text.get_fontsize()
                    for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize"))
                    if text.get_text()
                ]
                assert min(sizes) * scale >= 9, name


def test_the_published_panel_has_the_axis_of_the_study(composed: Composed) -> None:
    for name in ("mtd_curve", "mtd_published", "mtd_by_batch"):
        figure = composed[name, "wide"]
        panels = [ax for ax in figure.axes if "MTD" in ax.get_xlabel()]
        assert panels
        assert {ax.get_xscale() for ax in panels} == {"log"}
        for ax in figure.axes:
            assert ax.yaxis.get_offset_text().get_text() == ""


def test_points_state_their_values_and_lead_to_a_trial() -> None:
    trials = make_trials(seeds=(0, 1), decays=(0.75,), times=(1, 8))
    trials["score"] = [30.0, 31.0, 35.0, 34.0]
    assert describe_runs(trials)["text"][3] == (
        "Trial 3: score 34.00, MTD 12, η 0.75, K 512, N 64, seed 1"
    )
    means = pd.DataFrame({"mtd": [12.0], "mean": 34.5, "low": 28.1, "high": 40.9, "seeds": 2})
    found = describe_means(means, trials)
    assert found["text"].tolist() == [
        "Mean of 2 seeds: score 34.50 (95 % CI 28.10 to 40.90), MTD 12, η 0.75, K 512, N 64"
    ]
    assert found["trial"].tolist() == [2]


def test_every_figure_of_runs_has_points(composed: Composed) -> None:
    without = {"mtd_published", "spectra"}
    for (name, _), figure in composed.items():
        spots = [
            child for ax in figure.axes for child in ax.get_children() if isinstance(child, Spots)
        ]
        assert bool(spots) != (name in without), name
        assert all(len(group.places) == len(group.labels) for group in spots)


def test_a_link_to_a_trial_without_a_row_is_text_alone() -> None:
    links = '<a href="#trial-1"><title>one</title></a><a href="#trial-12"><title>two</title></a>'
    page = f'<tr id="trial-12"></tr>{links}'
    assert drop_dead_links(page) == page.replace('<a href="#trial-1">', '<a tabindex="0">')


def test_the_main_figure_names_what_makes_up_the_mtd() -> None:
    def entries(trials: pd.DataFrame) -> tuple[list[str], Axes]:
        drawing = score_topic.draw(StudyContext(build_study(trials)))
        assert drawing is not None
        figure = compose(drawing, "", narrow=False)
        figure.draw_without_rendering()
        legend = figure.axes[0].get_legend()
        return [text.get_text() for text in legend.get_texts()], figure.axes[0]

    both, _ = entries(make_trials())
    parts = [text for text in both if text[0] in "ηK"]
    assert parts == ["η 0.75", "η 0.85", "K 64", "K 128", "K 256", "K 512"]
    assert "95 % CI" in both
    one, ax = entries(make_trials(decays=(0.5, 0.75, 0.9), times=(8,)))
    assert not any(text.startswith("η") for text in one)
    (top,) = ax.child_axes
    assert top.get_xlabel() == "η (K = 512, N = 64)"
    assert [tick.get_text() for tick in top.get_xticklabels()] == ["0.5", "0.75", "0.9"]


def test_a_grid_of_one_seed_is_drawn_of_plain_means() -> None:
    trials = make_trials(seeds=(0,))
    context = StudyContext(build_study(trials))
    info = sufficiency_topic.compute(context)
    assert info.answer == "cannot be tested"
    assert sorted(info.cells["mean"]) == pytest.approx(sorted(trials["score"]))
    assert sufficiency_topic.build(context).figures["sufficiency"] is not None


def test_deviations_are_within_complete_seeds() -> None:
    runs = pd.DataFrame(
        {
            "a": [0, 0, 1, 1, 0],
            "b": [0, 1, 0, 1, 0],
            "seed": [0, 0, 0, 0, 1],
            "score": [1.0, 2.0, 3.0, 6.0, 50.0],
        }
    )
    found = compute_deviations(runs, ["a", "b"])
    assert found["deviation"].tolist() == [-2, -1, 0, 3]
    assert found["seed"].tolist() == [0] * 4


def test_importances_are_of_settings_that_vary_independently() -> None:
    trials = make_trials()
    trials["initial_queue_size"] = trials["queue_size"] // 2
    trials["score"] = np.log(trials["queue_size"]) * 10 + trials["ema_decay"]
    assert independent_settings(trials, SETTINGS) == ["ema_decay", "queue_size"]
    table = compute_importances(trials, SETTINGS)
    assert table["setting"].iloc[0] == "queue_size"
    assert set(table["setting"]) == {"queue_size", "ema_decay", "seed"}
    assert table["importance"].sum() == pytest.approx(1)
    assert table["importance"].iloc[0] > 0.9
    pd.testing.assert_frame_equal(table, compute_importances(trials, SETTINGS))
    assert not len(compute_importances(trials.iloc[:19], SETTINGS))
    assert not len(compute_importances(trials[trials["ema_decay"] == 0.75], SETTINGS))


def test_importances_are_a_section_where_two_settings_vary() -> None:
    contents = settings_topic.IMPORTANCES.build(StudyContext(build_study(make_trials())))
    assert [*contents.csv["importances"]] == ["setting", "importance", "label"]
    assert {"ema_decay η", "queue_size K"} <= {*contents.csv["importances"]["label"]}
    one = build_study(make_trials(decays=(0.75,)))
    assert settings_topic.IMPORTANCES.build(StudyContext(one)) is None


def test_training_curves_are_thinned() -> None:
    trials = make_trials(seeds=range(8))
    assert len(trials) == 64
    curves = pd.DataFrame(
        [(number, step, float(step)) for number in trials["number"] for step in range(1, 201)],
        columns=["number", "step", "loss"],
    )
    curves["score"] = np.where(curves["step"] % 75 == 0, curves["step"], np.nan)
    study = dataclasses.replace(build_study(trials), curves=curves)
    chosen = choose_curves(trials)
    assert len(chosen) == len(set(chosen)) == MOST_TRIALS
    table = compute_training(study)
    one = table[table["number"] == chosen[0]]
    assert one["loss"].notna().sum() == MOST_POINTS
    assert one["loss"].dropna().tolist() == pytest.approx(np.arange(2.5, 200, 4))
    assert one.loc[one["score"].notna(), "step"].tolist() == [75, 150]
    contents = training_topic.build(StudyContext(study))
    assert "Drawn: 40 trials" in contents.figures["training_curves"].caption
    assert contents.text[0].startswith("40 of 40 trials drawn scored best")
    assert training_topic.build(StudyContext(build_study(trials))) is None


@pytest.mark.parametrize(
    ("select_on", "pairs", "chosen"),
    [
        ("dev", "dev pairs", "chosen on the dev pairs"),
        ("test", "test pairs", "chosen on the TEST pairs"),
        ("last", "dev pairs", "those of the last step"),
    ],
)
def test_training_curves_are_of_the_pairs_that_choose_the_checkpoint(
    select_on: str, pairs: str, chosen: str
) -> None:
    trials = make_trials(seeds=[0]).assign(select_on=select_on)
    evaluated = trials[["number", "score"]].assign(loss=1.0)
    curves = pd.concat([evaluated.assign(step=1), evaluated.assign(step=2)])
    study = dataclasses.replace(build_study(trials), curves=curves)
    contents, ax = training_topic.build(StudyContext(study)), Figure().subplots()
    drawing = contents.figures["training_curves"]
    drawing.panels[0][1](ax)
    label = ax.get_ylabel().replace("\n", " ")
    assert pairs in label
    assert f"Scores: {label}; checkpoints were {chosen}. A point" in drawing.caption


def test_the_svg_file_is_light_whole_and_loads_nothing(composed: Composed) -> None:
    figure = composed["mtd_curve", "wide"]
    with figures.figure_style("mtd_curve"):
        file = figures.to_svg(figure)
        page = figures.to_page(figure, file, name="a", title="t", description="d")
    assert file.startswith("<?xml")
    assert "#trial-" not in file
    assert not re.search(r'(?:href|src)="(?!#)', file)
    assert 'id="patch_1"' in file
    assert "a-patch_1" not in page
    assert page.count("<circle") == page.count('<a href="#trial-') > 10


def test_the_page_rounds_coordinates_and_no_text() -> None:
    with figures.figure_style("plot"):
        figure, [ax] = figures.new_figure(1, 1, width=4, height=3)
        ax.plot([1 / 3, 2 / 3], [1, 2])
        ax.set_title('y="0.0003" d 0.12345')
        page = figures.to_page(
            figure, figures.to_svg(figure), name="a", title="0.1234", description="0.5678"
        )
    shown = re.findall(r">([^<>]+)<", page)
    assert {'y="0.0003" d 0.12345', "0.1234", "0.5678"} <= {*shown}
    places = re.findall(r'<[^>]* (?:d|x|y|transform)="([^"]+)"', page)
    assert len(places) > 20
    assert not [place for place in places if re.search(r"\.\d{3}", place)]
