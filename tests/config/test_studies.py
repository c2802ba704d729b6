"""The studies that come with mtdlab: each is valid, and the default study has the stated power."""

from pathlib import Path

import pytest

from mtdlab.analysis.data.beyond_run import find_beyond
from mtdlab.config.reader import profile_names, read_study
from mtdlab.config.source import read as read_source
from mtdlab.config.study import StudySpec
from mtdlab.methods.registry import BUILTIN
from tests.config.conftest import settings_of

STUDIES = Path(__file__).parents[2] / "studies"
SIZES = {
    # configurations and seeds
    "mtd": (4, 8),
    "mtd-equation-3": (6, 8),
    "queue-and-decay": (9, 3),
    "sufficiency": (16, 8),
    "robustness": (24, 3),
    "methods": (9, 8),
    "contriever": (6, 8),
    "collapse": (4, 5),
    "staleness": (4, 5),
    "history": (12, 4),
    "queue-or-batch": (10, 6),
    "ema-rule": (7, 5),
    "age-or-number": (20, 6),
    "minilm-3-pilot": (16, 2),
    "rate-tolerance": (20, 5),
    "simcse-to-mocose": (6, 5),
    # at most; it runs until it is decided
    "wiki-minilm": (5, 10),
}


def read(name: str, profile: str | None = None) -> StudySpec:
    return read_study(STUDIES / f"{name}.yaml", (), profile)


def test_every_file_is_counted_here() -> None:
    assert {path.stem for path in STUDIES.glob("*.yaml")} == set(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_a_study_has_its_name_and_size(name: str) -> None:
    spec = read(name)
    assert spec.name == name
    assert (len(settings_of(spec)), len(spec.seeds)) == SIZES[name]


def test_the_default_study_varies_the_ema_decay_alone() -> None:
    spec = read("mtd")
    found = settings_of(spec)
    assert [run.mtd for run in found] == pytest.approx([9, 12, 18, 48])
    assert (spec.seeds, spec.baseline) == (tuple(range(4000, 4008)), {"method": "simcse"})
    fixed = {tuple(run.model_dump(exclude={"ema_decay"}).items()) for run in found}
    assert len(fixed) == 1
    first = found[0].model_dump()
    expected = {
        **{"preset": "intended", "queue_size": 512, "initial_queue_size": 128, "batch_size": 64},
        **{"steps": 240, "learning_rate": 1e-3, "evaluate_every": 30, "in_batch_negatives": True},
        **dict.fromkeys(("encoder", "corpus", "evaluation"), "builtin"),
    }
    assert {name: first[name] for name in expected} == expected
    for stated in ("only the EMA decay", "synthetic", "no part in the choice"):
        assert stated in spec.description


def test_negatives_of_equation_3_come_from_the_queue_alone() -> None:
    other = read("mtd-equation-3")
    assert not any(run.model_dump()["in_batch_negatives"] for run in settings_of(other))
    # the same question with another method
    shared = {"ema_decay", "queue_size", "batch_size", "steps", "learning_rate"}
    mocose, contriever = (
        [run.model_dump(include=shared) for run in settings_of(spec)]
        for spec in (other, read("contriever"))
    )
    assert mocose == contriever
    for stated in ("only the EMA decay", "synthetic", "not confirmatory"):
        assert stated in other.description


@pytest.mark.parametrize(
    ("profile", "encoder", "corpus", "seeds"),
    [
        (None, "builtin", "builtin", 8),
        ("minilm-3", "sentence-transformers/all-MiniLM-L6-v2", "wiki/wiki1m_head.txt", 3),
        ("published-code", "builtin", "builtin", 6),
    ],
)
def test_every_built_in_method_is_compared(
    profile: str | None, encoder: str, corpus: str, seeds: int
) -> None:
    spec = read("methods", profile)
    found = settings_of(spec)
    # losses of sentence-transformers need an extra; XBM has no preset published-code
    absent = {"sentence-transformers"} | ({"xbm"} if profile == "published-code" else set())
    assert {run.method for run in found} == set(BUILTIN) - absent
    assert {(run.encoder, run.corpus) for run in found} == {(encoder, corpus)}
    assert len({(run.steps, run.batch_size) for run in found}) == 1
    assert spec.nuisance is not None
    assert list(spec.nuisance.values) == ["learning_rate"]
    assert ("synthetic" in spec.description) == (profile is None)
    assert len(spec.seeds) == seeds
    preset = "published-code" if profile == "published-code" else "intended"
    assert {(run.preset, run.select_on) for run in found} == {(preset, "dev")}


def test_the_study_of_sufficiency_has_near_mtds_from_different_settings() -> None:
    found = settings_of(read("sufficiency"))
    queues = {(run.queue_size, run.initial_queue_size) for run in found}
    assert queues == {(64, 16), (256, 64), (1024, 256), (4096, 1024)}
    near = [run for run in found if run.mtd is not None and 67 < run.mtd < 71]
    settings = {(run.ema_decay, run.queue_size) for run in near}
    assert settings == {(0.75, 4096), (0.985, 64), (0.985, 256)}


def test_the_study_of_robustness_has_the_same_levels_in_four_conditions() -> None:
    found = settings_of(read("robustness"))
    conditions = {(run.learning_rate, run.steps) for run in found}
    assert conditions == {(1e-3, 160), (3e-4, 160), (3e-3, 160), (1e-3, 640)}
    for rate, steps in conditions:
        there = [run for run in found if (run.learning_rate, run.steps) == (rate, steps)]
        assert [run.mtd for run in there] == pytest.approx(
            [10, 12, 18, 28, 41.333, 74.667], abs=1e-3
        )


@pytest.mark.parametrize("path", sorted(STUDIES.rglob("*.yaml")), ids=lambda path: path.stem)
def test_no_study_has_a_level_beyond_the_run_without_saying_so(path: Path) -> None:
    for profile in (None, *profile_names(read_source(path))):
        spec = read_study(path, (), profile)
        assert find_beyond(spec.configurations().values(), spec.beyond_run) == ()
