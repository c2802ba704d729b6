"""A program is found and checked before anything is trained."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mtdlab.errors import MtdlabError
from mtdlab.programs import Program, ProgramSettings, find_program

FUNCTIONS = """
import collections
from typing import TYPE_CHECKING, Any
from collections.abc import Mapping

if TYPE_CHECKING:
    from nowhere import Scores

number = 3
def train(settings, *, seed, checkpoints, report): return {}
def positional(settings, seed, checkpoints, report): return {}
def anything(*args, **kwargs) -> dict[str, float]: return {}
def typed(settings, *, seed, checkpoints, report) -> Mapping[str, float]: return {}
def either(settings, *, seed, checkpoints, report) -> dict[str, float] | None: return {}
def unknown(settings, *, seed, checkpoints, report) -> "Scores": return {}
def no_seed(settings, *, checkpoints, report): return {}
def more(settings, *, seed, checkpoints, report, epochs): return {}
def as_float(settings, *, seed, checkpoints, report) -> float: return 1.0
def as_none(settings, *, seed, checkpoints, report) -> None: pass
async def later(settings, *, seed, checkpoints, report): return {}
def generated(settings, *, seed, checkpoints, report): yield 1.0
class Trainer:
    def __call__(self, settings, *, seed, checkpoints, report): return {}
trainer = Trainer()
"""
REFUSED = {
    "own": "--objective own: write MODULE:FUNCTION, such as digits:train",
    "own:": "write MODULE:FUNCTION",
    ":train": "write MODULE:FUNCTION",
    "own:train()": "write MODULE:FUNCTION",
    "gone.py:train": "--objective gone.py:train: no such file",
    "gone:train": "--objective gone:train: no file gone.py in the working folder or beside the",
    "own:trian": "own has no function trian; did you mean train\\?",
    "own:number": "own has no function number; ",
    "own:no_seed": "unexpected keyword argument 'seed'.*its signature is \\(settings, \\*, chec",
    "own:more": "missing a required argument: 'epochs'.*expected train\\(settings, \\*, seed",
    "own:as_float": "annotated to return float; expected a mapping of names to scores",
    "own:as_none": "annotated to return NoneType; expected a mapping",
    "own:later": "it is asynchronous or a generator; expected a plain function",
    "own:generated": "it is asynchronous or a generator",
    "broken:train": "--objective broken:train: RuntimeError: no data",
    "ended:train": "--objective ended:train: SystemExit: no data",
    "sys:exit": "sys is no module of Python files",
}


@pytest.fixture
def modules(folder: Path) -> Path:
    """The functions in own.py, and two modules that cannot be imported."""
    (folder / "own.py").write_text(FUNCTIONS)
    (folder / "broken.py").write_text("raise RuntimeError('no data')\n")
    (folder / "ended.py").write_text("raise SystemExit('no data')\n")
    return folder


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(("reference", "message"), REFUSED.items(), ids=list(REFUSED))
def test_a_program_that_cannot_be_called_is_refused(reference: str, message: str) -> None:
    with pytest.raises(MtdlabError, match=message):
        find_program(reference)


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    "name", ["train", "positional", "anything", "typed", "either", "unknown", "trainer"]
)
def test_a_program_that_can_be_called_is_found(name: str) -> None:
    assert find_program(f"own:{name}").reference == f"own:{name}"


def found(folder: Path, *folders: Path) -> Program:
    """The program of `package/deep.py`, which imports a module beside the package."""
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "helper.py").write_text("SCORE = 3.0\n")
    text = "import helper\ndef train(settings, *, seed, checkpoints, report):\n"
    (folder / "package" / "deep.py").write_text(text + "    return {'a': helper.SCORE}\n")
    return find_program("package.deep:train", folders)


def test_a_dotted_module_of_the_working_folder_is_imported_with_its_helpers(folder: Path) -> None:
    program = found(folder, Path())
    assert program.reference == "package.deep:train"
    result = program.load()({}, seed=0, checkpoints=folder, report=lambda *_: None)
    assert result == {"a": 3.0}
    # at the end: its modules hide no installed ones
    assert sys.path[-1] == str(folder)


def test_the_folder_of_the_study_file_comes_after_the_working_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    for place, score in ((folder, 1), (other, 2)):
        text = "def train(settings, *, seed, checkpoints, report): return {'a': SCORE}\n"
        (place / "both.py").write_text(text.replace("SCORE", str(score)))
    (other / "beside.py").write_text((other / "both.py").read_text())
    for name, score in (("both", 1), ("beside.py", 2)):
        program = find_program(f"{name}:train", (Path(), other))
        assert program.load()({}, seed=0, checkpoints=folder, report=print) == {"a": score}


def test_a_module_that_changed_since_this_process_imported_it_is_refused(folder: Path) -> None:
    """A notebook would run the former code, and record the digest of the new one."""
    find_program("own:train")
    (folder / "own.py").write_text((folder / "own.py").read_text() + "# changed\n")
    with pytest.raises(MtdlabError, match=r"own.py changed since this process imported it; start"):
        find_program("own:train")


def test_a_module_that_changed_is_refused_in_another_process(folder: Path) -> None:
    program = find_program("own:train")
    (folder / "own.py").write_text("changed = True\n")
    with pytest.raises(MtdlabError, match=r"own.py changed while the sweep was running"):
        program.load()


def test_the_packages_that_a_program_uses_are_known(folder: Path) -> None:
    text = "import numpy as np\nfrom torch.nn.functional import normalize\nfrom torch import nn\n"
    end = "def train(settings, *, seed, checkpoints, report): return {}\n"
    (folder / "uses.py").write_text(text + end)
    assert {"numpy", "torch"} <= set(find_program("uses:train").uses())


MTD = {"ema_decay": 0.85, "queue_size": 512, "batch_size": 64}


@pytest.mark.parametrize(
    ("changed", "mtd"),
    [
        ({}, 1 / 0.15 + 8),
        ({"ema_decay": 0}, 9.0),
        ({"ema_decay": 1.0}, None),
        ({"ema_decay": "slow"}, None),
        ({"queue_size": True}, None),
        ({"batch_size": 0}, None),
        *(({name: None}, None) for name in MTD),
    ],
)
def test_the_mtd_follows_from_its_three_settings(
    changed: dict[str, Any], mtd: float | None
) -> None:
    assert ProgramSettings("own:train", 0, MTD | changed).mtd == pytest.approx(mtd)
