"""The paper's studies: read with every profile, as large as their tables, affordable when small."""

import csv
from pathlib import Path

import pytest

from mtdlab.analysis.data.published import __file__ as published
from mtdlab.config.reader import read_study
from mtdlab.config.study import StudySpec
from tests.config.conftest import settings_of

PAPER = Path(__file__).parents[2] / "studies" / "paper"
SIZES = {
    # settings with the paper's, the small and the minilm-3 profile's values
    "table3-ema-decay": (6, 6, 5),
    "table4-heads": (12, 12, 12),
    "table5-augmentation": (10, 7, 7),
    "table6a-prediction-dim": (5, 5, 5),
    "table6b-batch-size": (4, 4, 4),
    "table7-initial-queue": (20, 12, 16),
    "table8-queue-slices": (5, 5, 5),
    "table9-fgsm-epsilon": (5, 5, 5),
    "figure2-mtd": (27, 27, 9),
    "figure5-collapse": (4, 4, 4),
    "figure7-simcse": (1, 1, 1),
    "figure13-mtd-large": (13, 13, 13),
    "slides-queue-clusters": (6, 6, 6),
    "table1-simcse": (2, 2, 2),
    "simcse-batch-size": (3, 3, 3),
    "hicl-simcse": (2, 2, 2),
    "hicl-weights": (6, 6, 6),
    "mixcse-simcse": (2, 2, 2),
    "mixcse-gradient": (2, 2, 2),
}
SEEDS = {None: 5, "small": 3, "minilm-3": 2}
RAN = {"figure2-mtd", "table7-initial-queue", "table8-queue-slices"}
"""Those whose profile minilm-3 has the seeds with which it ran, the paper's number."""
SIMCSE = {"figure7-simcse", "simcse-batch-size"}
OTHERS = {"hicl-simcse", "hicl-weights", "mixcse-simcse", "mixcse-gradient"}
MOCOSE = sorted({*SIZES} - SIMCSE - OTHERS)


def read(name: str, profile: str | None = None) -> StudySpec:
    return read_study(PAPER / f"{name}.yaml", (), profile)


def column(file: str, name: str) -> list[str]:
    with (Path(published).parent / f"{file}.csv").open() as lines:
        return [row[name] for row in csv.DictReader(lines)]


def test_every_file_is_counted_here() -> None:
    assert {path.stem for path in PAPER.glob("*.yaml")} == set(SIZES)


@pytest.mark.parametrize("profile", SEEDS)
@pytest.mark.parametrize("name", SIZES)
def test_a_study_is_as_large_as_its_table(name: str, profile: str | None) -> None:
    spec = read(name, profile)
    assert spec.name == (f"{name}-{profile}" if profile else name)
    expected = SIZES[name][list(SEEDS).index(profile)]
    seeds = SEEDS[None if name in RAN and profile == "minilm-3" else profile]
    assert (len(settings_of(spec)), len(spec.seeds)) == (expected, seeds)
    assert len(spec.search_trials()) == expected * seeds


@pytest.mark.parametrize("name", SIZES)
def test_the_papers_settings(name: str) -> None:
    spec = read(name)
    assert spec.metric == "sts_average"
    large = name == "figure13-mtd-large"
    for settings in settings_of(spec):
        assert settings.encoder == ("bert-large-uncased" if large else "bert-base-uncased")
        assert settings.learning_rate == (1e-5 if large else 3e-5)
        assert (settings.weight_decay, settings.temperature) == (1e-6, 0.05)
        # longer texts, of which HiCL makes segments
        assert settings.max_length == (64 if name.startswith("hicl") else 32)
        # one epoch
        assert settings.sentences == 10**6
        assert settings.steps == 10**6 // settings.batch_size
        assert settings.select_on == "dev"


@pytest.mark.parametrize("profile", [*SEEDS, "published-code"])
@pytest.mark.parametrize("name", MOCOSE)
def test_negatives_are_those_of_the_queue_as_in_equation_3(name: str, profile: str | None) -> None:
    """The profile of the published program has those of the batch too."""
    for settings in settings_of(read(name, profile)):
        if settings.method == "mocose":
            assert settings.in_batch_negatives == (profile == "published-code")
        assert (settings.preset == "published-code") == (profile == "published-code")


@pytest.mark.parametrize("profile", SEEDS)
def test_a_study_of_batch_sizes_has_equal_sentences(profile: str | None) -> None:
    for name in ("figure2-mtd", "table6b-batch-size", "simcse-batch-size"):
        seen = {one.steps * one.batch_size for one in settings_of(read(name, profile))}
        assert max(seen) - min(seen) < 256


def test_table_1_has_the_schedule_of_the_text() -> None:
    mocose, simcse = settings_of(read("table1-simcse"))
    assert (mocose.ema_decay, mocose.ema_decay_end, mocose.queue_size) == (0.75, 0.95, 512)
    assert simcse.method == "simcse"


@pytest.mark.parametrize("name", SIZES)
def test_what_the_seeds_can_decide_is_said(name: str) -> None:
    text = (PAPER / f"{name}.yaml").read_text(encoding="utf-8").replace("\n# ", " ")
    unknown = {"figure7-simcse", "figure13-mtd-large", "hicl-weights", "mixcse-gradient"}
    assert ("difference of" in text and "80 % power" in text) == (name not in unknown)


@pytest.mark.parametrize("name", SIZES)
def test_a_small_study_needs_nothing_but_the_package(name: str) -> None:
    spec = read(name, "small")
    assert spec.metric == "sts_test"
    for settings in settings_of(spec):
        assert (settings.encoder, settings.corpus, settings.evaluation) == ("builtin",) * 3
        assert settings.tasks == ""
        assert 1e-3 <= settings.learning_rate <= 2e-3
        assert settings.steps * settings.batch_size >= 4_800
        assert 30 <= settings.steps <= 300
        for needs_a_model in ("synonyms", "paraphrase", "translation"):
            assert needs_a_model not in settings.augmentation


def test_all_small_studies_together_fit_into_a_coffee_break() -> None:
    """In trials of 200 steps of 64 sentences, of which two cores do about ten a minute."""
    cost = sum(
        settings.steps * settings.batch_size / (200 * 64) * len(spec.seeds)
        for spec in (read(name, "small") for name in SIZES)
        for settings in settings_of(spec)
    )
    assert 100 < cost < 300


@pytest.mark.parametrize(
    ("study", "setting"),
    [
        ("table3-ema-decay", "ema_decay"),
        ("table6a-prediction-dim", "prediction_dim"),
        ("table6b-batch-size", "batch_size"),
        ("table9-fgsm-epsilon", "fgsm_epsilon"),
    ],
)
def test_values_are_those_of_the_table(study: str, setting: str) -> None:
    expected = {float(value) for value in column(study.replace("-", "_"), setting)}
    assert {float(getattr(settings, setting)) for settings in settings_of(read(study))} == expected


def test_heads_queues_and_slices_are_those_of_their_tables() -> None:
    numbers = [column("table4_heads", f"{head}_layers") for head in ("projection", "prediction")]
    fours = settings_of(read("table4-heads"))
    found = {(four.projection_layers, four.prediction_layers) for four in fours}
    assert found == {(int(first), int(second)) for first, second in zip(*numbers, strict=True)}

    sevens = [
        (seven.queue_size, seven.initial_queue_size / seven.queue_size)
        for seven in settings_of(read("table7-initial-queue"))
    ]
    assert sorted(sevens) == [
        (size, share) for size in (128, 256, 512, 1024, 4096) for share in (0, 0.25, 0.5, 1)
    ]

    eights = settings_of(read("table8-queue-slices"))
    written = [eight.queue_slice.replace(",", " and ") for eight in eights]
    assert written == column("table8_queue_slices", "positions_used")
    sizes = {(eight.queue_size, eight.initial_queue_size, eight.batch_size) for eight in eights}
    assert (sizes, {eight.ema_decay for eight in eights}) == ({(1024, 128, 256)}, {0.85})


def test_a_small_queue_is_cut_where_the_tables_is() -> None:
    def shares(profile: str | None) -> list[list[float]]:
        return [
            [
                float(edge) / settings.queue_size
                for part in settings.queue_slice.split(",")
                for edge in part.split("-")
            ]
            if settings.queue_slice != "all"
            else []
            for settings in settings_of(read("table8-queue-slices", profile))
        ]

    assert shares("small") == shares("minilm-3") == shares(None)


@pytest.mark.parametrize(
    ("profile", "sizes"), [(None, {64, 128, 256}), ("small", {32, 64, 128}), ("minilm-3", {64})]
)
def test_the_nine_distances_of_figure_2_at_every_batch_size(
    profile: str | None, sizes: set[int]
) -> None:
    """The published ones have three decimals."""
    expected = sorted(float(value) for value in column("figure2_mtd", "mtd"))
    found = settings_of(read("figure2-mtd", profile))
    for size in sizes:
        distances = sorted(settings.mtd for settings in found if settings.batch_size == size)
        assert distances == pytest.approx(expected, abs=1e-3)
    assert {settings.batch_size for settings in found} == sizes


def test_augmentations_are_the_ten_rows_of_table_5() -> None:
    fives = settings_of(read("table5-augmentation"))
    found = {(five.fgsm_epsilon, five.augmentation) for five in fives}
    assert len(found) == len(column("table5_augmentation", "average"))
    assert {augmentation for epsilon, augmentation in found if epsilon} == {"none"}


def test_the_large_encoder_is_tried_at_its_published_optimum() -> None:
    distances = [settings.mtd for settings in settings_of(read("figure13-mtd-large"))]
    assert min(abs(distance - 22.667) for distance in distances) < 1e-3
    assert (min(distances), max(distances)) == pytest.approx((5, 38.667), abs=1e-3)


def test_simcse_has_no_mtd_and_clusters_go_from_0_to_20() -> None:
    [simcse] = settings_of(read("figure7-simcse"))
    assert (simcse.method, simcse.mtd) == ("simcse", None)
    clusters = [settings.queue_clusters for settings in settings_of(read("slides-queue-clusters"))]
    assert clusters == [0, 1, 5, 10, 15, 20]


def test_the_collapse_is_looked_for_with_the_queue_alone() -> None:
    found = [
        (settings.ema_decay, settings.prediction_layers, settings.in_batch_negatives)
        for settings in settings_of(read("figure5-collapse"))
    ]
    assert found == [(0, 0, False), (0, 2, False), (0.85, 0, False), (0.85, 2, False)]
