"""Profiles of a study file: laid over it, named, and pointed at where they are wrong."""

from pathlib import Path

import pytest

from mtdlab.config.reader import read_settings
from mtdlab.config.search import Choices
from mtdlab.config.source import SpecError
from tests.config.conftest import Read

FILE = """\
study: heads
metric: sts_dev
trainer:
  batch_size: 64
  learning_rate: 3e-5
search:
  ema_decay: [0.5, 0.85, 0.95]
  projection_layers: [0, 1]
  queue_size: {times: batch_size, values: [8]}
seeds: [0, 1, 2]
profiles:
  small:
    metric: sts_test
    trainer: {learning_rate: 1e-3, steps: 7}
    search:
      ema_decay: {low: 0.5, high: 0.9, step: 0.2}
      projection_layers: null
    seeds: [5]
  drawn: {sampler: random, trials: 4}
"""


def test_a_profile_is_the_study_written_out(read: Read) -> None:
    """Against the same study written by hand, without profiles."""
    written = read(
        "study: heads-small\nmetric: sts_test\n"
        "trainer: {batch_size: 64, learning_rate: 1e-3, steps: 7}\n"
        "search:\n  ema_decay: {low: 0.5, high: 0.9, step: 0.2}\n"
        "  queue_size: {times: batch_size, values: [8]}\nseeds: [5]\n"
    )
    small = read(FILE, profile="small")
    for name in ("name", "metric", "trainer", "seeds", "search"):
        assert getattr(small, name) == getattr(written, name)
    assert small.search_trials() == written.search_trials()
    assert small.identity() == written.identity()
    assert small.text == FILE


def test_null_lets_a_profile_search_what_the_file_fixes_and_fix_what_it_searches(
    read: Read,
) -> None:
    profile = """\
  turned:
    trainer: {batch_size: null, projection_layers: 1}
    search: {batch_size: [32, 64], projection_layers: null}
"""
    turned = read(FILE + profile, profile="turned")
    assert turned.trainer == {"learning_rate": 3e-5, "projection_layers": 1}
    assert turned.search["batch_size"] == Choices((32, 64))
    assert "projection_layers" not in turned.search
    with pytest.raises(SpecError, match="batch_size: also fixed under trainer"):
        read(FILE + profile.replace("batch_size: null, ", ""), profile="turned")


def test_the_file_itself_is_left_as_it_is(read: Read) -> None:
    spec = read(FILE)
    assert (spec.name, spec.metric, len(spec.search_trials())) == ("heads", "sts_dev", 18)
    assert spec.trainer == {"batch_size": 64, "learning_rate": 3e-5}
    assert spec.search["projection_layers"] == Choices((0, 1))


def test_a_profile_may_have_another_sampler(read: Read) -> None:
    spec = read(FILE, profile="drawn")
    assert (spec.name, spec.sampler, spec.trials) == ("heads-drawn", "random", 4)
    assert len(spec.search_trials()) == 12


def test_set_comes_after_the_profile(read: Read) -> None:
    spec = read(FILE, "trainer.steps=9", "search.ema_decay=[0.7]", "study=mine", profile="small")
    assert (spec.name, spec.trainer["steps"]) == ("mine", 9)
    assert spec.search["ema_decay"] == Choices((0.7,))
    with pytest.raises(SpecError, match=r"^--set trainer.stepz=9: .*did you mean steps\?"):
        read(FILE, "trainer.stepz=9", profile="small")
    with pytest.raises(SpecError, match=r"^--set profiles.small.seeds=\[1\]: .*after the profile"):
        read(FILE, "profiles.small.seeds=[1]", profile="small")


def test_a_single_run_takes_a_profile(path: Path) -> None:
    path.write_text(FILE)
    settings = read_settings(path, ["trainer.batch_size=8"], "small")
    assert (settings.steps, settings.batch_size, settings.learning_rate) == (7, 8, 1e-3)
    assert read_settings(path).learning_rate == 3e-5
    with pytest.raises(SpecError, match="--profile small: name the study file"):
        read_settings(None, [], "small")


def test_an_unknown_profile_names_the_nearest(read: Read) -> None:
    with pytest.raises(SpecError, match=r":11:1: .*no profile 'smal'; did you mean small\?"):
        read(FILE, profile="smal")
    with pytest.raises(SpecError, match=r"no profile 'small'; there is none yet"):
        read("study: a\n", profile="small")


BROKEN = [
    ("steps: 7", "stepz: 7", r":14:36: profile small: trainer.stepz: .*did you mean steps\?"),
    ("steps: 7", "steps: 0", r":14:36: profile small: trainer.steps: 0: must be 1 or more"),
    ("seeds: [5]", "seeds: [5, -1]", r":18:16: profile small: seeds.1: -1: must be 0 or more"),
    ("seeds: [5]", "sedes: [5]", r":18:5: profile small: sedes: .*did you mean seeds\?"),
    ("seeds: [5]", "steps: 5", r":18:5: profile small: steps: .*did you mean trainer.steps\?"),
    ("seeds: [5]", "study: b", r":18:5: profiles.small.study: is not for a profile to change"),
    ("seeds: [5]", "trials: 5", r":18:5: profile small: trials: a grid has as many trials as"),
    ("step: 0.2", "stop: 0.2", r":16:40: profile small: search.ema_decay.stop: .*mean step\?"),
    ("high: 0.9", "high: 1.9", r":16:7: profile small: search.ema_decay: 1.9: must be below 1"),
    ("layers: null", "layers: []", r":17:7: profile small: search.projection_layers: needs at"),
    ("projection_layers: null", "pooling: null", r":17:7: .*pooling: null takes away what the"),
    ("{sampler: random, trials: 4}", "{sampler: random}", r":19:11: profile drawn: sampler: rand"),
    ("{sampler: random, trials: 4}", "5", r":19:3: profiles.drawn: write what it changes"),
    ("drawn:", f"{'d' * 99}:", r":19:3: profile d+: study: .*: a name has letters, digits"),
    ("drawn:", "'a b':", r":19:3: profile a b: study: .*: a name has letters, digits"),
    ("batch_size: 64", "batch_size: 0", r":4:3: trainer.batch_size: 0: must be 1 or more"),
]


@pytest.mark.parametrize("chosen", [None, "small", "drawn"])
@pytest.mark.parametrize(("right", "wrong", "message"), BROKEN)
def test_a_mistake_in_any_profile_is_found_by_every_read(
    read: Read, path: Path, right: str, wrong: str, message: str, chosen: str | None
) -> None:
    text = FILE.replace(right, wrong, 1)
    assert text != FILE
    with pytest.raises(SpecError, match=message):
        read(text, profile=chosen)
    with pytest.raises(SpecError, match=message):
        read_settings(path, (), chosen)


def test_profiles_are_a_mapping(read: Read) -> None:
    with pytest.raises(SpecError, match=r":2:1: profiles: \['small'\]: write NAME: and what"):
        read("study: a\nprofiles: [small]\n")


def test_a_caret_stands_under_what_the_profile_says(read: Read) -> None:
    with pytest.raises(SpecError, match="stepz") as caught:
        read(FILE.replace("steps: 7", "stepz: 7"))
    _, quoted, caret = str(caught.value).split("\n")
    assert quoted[caret.index("^") :].startswith("stepz: 7")
