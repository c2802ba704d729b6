"""The complete examples of docs/how-to: a method, a section of the page, a training program."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from markdown_blocks import ROOT, blocks_of

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.report import write_report
from mtdlab.testing import Check, method_checks, run_check
from tests.analysis.conftest import make_trials

EXAMPLES = {
    block.file.removesuffix(".py"): block.text
    for name in ("add-a-method", "add-a-statistic", "own-program")
    for block in blocks_of(ROOT / "docs" / "how-to" / f"{name}.md")
    if block.file.endswith(".py")
}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    """Imports the example that is saved under that name."""

    def load(name: str) -> ModuleType:
        path = tmp_path_factory.mktemp("example") / f"{name}.py"
        path.write_text(EXAMPLES[name], encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # pydantic looks a class's module up there
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.parametrize("check", method_checks(), ids=lambda check: check.__name__)
def test_the_example_method_conforms(
    check: Check,
    example: Callable[[str], ModuleType],
    tiny_encoder: Path,
    tiny_corpus: Path,
    tiny_pairs: Path,
) -> None:
    data = {"encoder": tiny_encoder, "corpus": tiny_corpus, "evaluation": tiny_pairs}
    run_check(check, example("byol").BYOL, **{name: str(path) for name, path in data.items()})


def test_the_example_topic_is_on_the_page(
    example: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    trials = make_trials(seeds=(0, 1), decays=(0.75, 0.85), times=(8,))
    trials = trials.assign(score=[30.0, 33.0, 31.0, 32.0])
    topic = example("best_seeds").TOPIC
    study = StudyFrames("toy", "sts_test", 4, trials)
    written = write_report(study, tmp_path, generated="today", version="0", topics=(topic,))
    page = written.page.read_text(encoding="utf-8")
    assert '<h2 id="best-seeds">Best score of each seed</h2>' in page
    assert "The best score of a seed is between 31.00 and 33.00." in page
    assert pd.read_csv(tmp_path / "tables" / "best_seeds.csv")["score"].tolist() == [31.0, 33.0]
    assert (tmp_path / "figures" / "best_seeds.png").is_file()


class Stopped(Exception):
    """Ends a program at a report."""


@pytest.mark.slow
def test_the_example_program_resumes_bit_for_bit(
    example: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    train = example("digits").train
    settings = {"steps": 300, "batch_size": 16, "queue_size": 64, "ema_decay": 0.9}
    settings |= {"learning_rate": 1e-3, "temperature": 0.1}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    curve, other = list[tuple[int, float]](), list[tuple[int, float]]()

    def stop(step: int, score: float) -> None:
        other.append((step, score))
        raise Stopped

    expected = train(settings, seed=3, checkpoints=whole, report=lambda *point: curve.append(point))
    for _ in range(3):
        with pytest.raises(Stopped, match=r"^$"):
            train(settings, seed=3, checkpoints=parts, report=stop)
    assert train(settings, seed=3, checkpoints=parts, report=stop) == expected
    assert other == curve
    assert expected["accuracy"] > 80
