"""docs/architecture.md: its examples work, and packages import each other as it states."""

import ast
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from analysis.frames import StudyFrames
from analysis.report import write_report
from analysis.report.topics import TOPICS
from mtdlab.testing import Check, method_checks, run_check

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    """Imports the example that begins with a comment of that file name."""

    def load(name: str) -> ModuleType:
        match = re.search(rf"```python\n(# {name}\.py\n.*?)```", TEXT, re.DOTALL)
        assert match, f"docs/architecture.md has no example {name}.py"
        path = tmp_path_factory.mktemp("example") / f"{name}.py"
        path.write_text(match[1], encoding="utf-8")
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
    method = example("align_uniform").AlignUniform
    run_check(check, method, **{name: str(path) for name, path in data.items()})


def test_the_example_topic_is_on_the_page(
    example: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    trials = pd.DataFrame(
        {
            "number": range(4),
            "state": "COMPLETE",
            "reason": "",
            "seed": [0, 0, 1, 1],
            "ema_decay": [0.75, 0.85] * 2,
            "queue_size": 512,
            "batch_size": 64,
            "initial_queue_size": 128,
            "queue_slice": "all",
            "mtd": [12.0, 14.67] * 2,
            "score": [30.0, 31.0, 33.0, 32.0],
            "alignment": 0.2,
            "uniformity": -2.0,
            "mean_cosine": 0.1,
            "score_before": 20.0,
            "best_step": 80.0,
            "wall_seconds": 5.0,
        }
    )
    topic = example("best_seeds").TOPIC
    study = StudyFrames("toy", "sts_test", 4, trials)
    written = write_report(study, tmp_path, generated="today", version="0", topics=(*TOPICS, topic))
    page = written.page.read_text(encoding="utf-8")
    assert '<h2 id="best-seeds">Best score of each seed</h2>' in page
    assert "The best score of a seed is between 31.00 and 33.00." in page
    assert pd.read_csv(tmp_path / "tables" / "best_seeds.csv")["score"].tolist() == [31.0, 33.0]
    assert (tmp_path / "figures" / "best_seeds.png").is_file()


def order_of_packages() -> list[str]:
    """The line of docs/architecture.md that begins with analysis."""
    match = re.search(r"^analysis  .*$", TEXT, re.MULTILINE)
    assert match
    return match[0].split()


def package_of(module: str) -> str:
    """analysis, a package of mtdlab, or a module beside them."""
    first, _, rest = module.partition(".")
    return "analysis" if first == "analysis" else rest.split(".")[0]


def imported(path: Path) -> set[str]:
    """The packages that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    ours = {name for name in found if name.split(".")[0] in ("analysis", "mtdlab")}
    return {package_of(name) for name in ours} - {""}


def test_packages_import_only_those_before_them() -> None:
    order = order_of_packages()
    free = {"errors", "files", "terminal", "data_paths", "device", "packaged"}
    folders = {
        path.name for path in (ROOT / "mtdlab").iterdir() if (path / "__init__.py").is_file()
    }
    assert set(order) == folders | {"analysis"}
    for at, package in enumerate(order):
        folder = ROOT / package if package == "analysis" else ROOT / "mtdlab" / package
        for path in folder.rglob("*.py"):
            allowed = {*order[: at + 1], *(free if package != "analysis" else ())}
            assert imported(path) <= allowed, path


def test_free_modules_import_no_package() -> None:
    allowed = {"errors": set(), "files": set(), "terminal": set(), "data_paths": {"errors"}}
    allowed |= {"packaged": {"errors"}, "device": {"errors", "settings"}}
    for name, modules in allowed.items():
        assert imported(ROOT / "mtdlab" / f"{name}.py") <= modules, name


def test_every_file_that_the_documentation_links_to_exists() -> None:
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
