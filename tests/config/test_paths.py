"""Where relative paths are looked up: beside the study file, in the working folder, elsewhere."""

from pathlib import Path

import pytest

from mtdlab.config.paths import Places, locate_augmentation, resolve_paths
from mtdlab.config.reader import parse_study, read_settings, read_study
from mtdlab.corpus.corpus import open_corpus

STUDY = """\
study: own
trainer: {corpus: text.txt, evaluation: pairs, encoder: model}
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The folder of a study with its texts, and the working folder."""
    beside, here = tmp_path / "studies", tmp_path / "work"
    for folder in (beside / "pairs", beside / "model", here):
        folder.mkdir(parents=True)
    (beside / "text.txt").write_text("a sentence beside the study\n")
    (beside / "own.yaml").write_text(STUDY)
    monkeypatch.chdir(here)
    monkeypatch.delenv("MTDLAB_DATA", raising=False)
    return beside, here


def test_paths_of_a_study_are_found_beside_its_file(folders: tuple[Path, Path]) -> None:
    beside, _ = folders
    spec = read_study(Path("../studies/own.yaml"))
    found = resolve_paths(spec.fixed(), spec.places)
    assert found.corpus == str(Path.cwd() / "../studies/text.txt")
    assert Path(found.evaluation).samefile(beside / "pairs")
    assert Path(found.encoder).samefile(beside / "model")
    assert list(open_corpus(found.corpus).sentences()) == ["a sentence beside the study"]
    single = read_settings(Path("../studies/own.yaml"))
    assert single.corpus == found.corpus


def test_a_study_is_the_same_from_every_working_folder(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, _ = folders
    elsewhere = read_study(beside / "own.yaml")
    assert resolve_paths(elsewhere.fixed(), elsewhere.places).corpus == str(beside / "text.txt")
    monkeypatch.chdir(beside)
    here = read_study(Path("own.yaml"))
    assert here.identity() == elsewhere.identity()
    assert here.identity()["trainer"]["corpus"] == "text.txt"
    assert resolve_paths(here.fixed(), here.places).corpus == "text.txt"


def test_what_is_not_beside_the_file_is_looked_up_in_the_working_folder_and_under_the_variable(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, here = folders
    (beside / "text.txt").rename(here / "text.txt")
    spec = read_study(beside / "own.yaml")
    assert resolve_paths(spec.fixed(), spec.places).corpus == "text.txt"
    (here / "data").mkdir()
    (here / "text.txt").rename(here / "data" / "text.txt")
    monkeypatch.setenv("MTDLAB_DATA", "data")
    name = resolve_paths(spec.fixed(), spec.places).corpus
    assert name == "text.txt"
    assert list(open_corpus(name).sentences()) == ["a sentence beside the study"]


def test_a_path_of_the_command_line_is_looked_up_in_the_working_folder_first(
    folders: tuple[Path, Path],
) -> None:
    beside, here = folders
    (here / "text.txt").write_text("a sentence of the working folder\n")
    given = read_study(beside / "own.yaml", ["trainer.corpus=text.txt"])
    assert resolve_paths(given.fixed(), given.places).corpus == "text.txt"
    written = read_study(beside / "own.yaml")
    assert resolve_paths(written.fixed(), written.places).corpus == str(beside / "text.txt")


def test_names_that_are_no_paths_stay(folders: tuple[Path, Path]) -> None:
    beside, _ = folders
    text = "study: a\ntrainer: {encoder: bert-base-uncased, corpus: 'dataset:wiki:en#text'}\n"
    for name in ("builtin", "bert-base-uncased"):
        spec = parse_study("a", text.replace("bert-base-uncased", name), folder=beside)
        found = resolve_paths(spec.fixed(), spec.places)
        assert (found.encoder, found.corpus) == (name, "dataset:wiki:en#text")
        assert found.evaluation == "builtin"


def test_folders_of_datasets_and_of_augmentations_are_found_too(
    folders: tuple[Path, Path],
) -> None:
    beside, _ = folders
    (beside / "saved").mkdir()
    text = "study: a\ntrainer: {corpus: 'dataset:saved#column'}\n"
    spec = parse_study("a", text, folder=beside)
    assert resolve_paths(spec.fixed(), spec.places).corpus == f"dataset:{beside / 'saved'}#column"
    written = ("typos:0.1+synonyms:model", "back-translation:model,other", "none")
    assert [locate_augmentation(name, Places(beside)) for name in written] == [
        f"typos:0.1+synonyms:{beside / 'model'}",
        f"back-translation:{beside / 'model'},other",
        "none",
    ]
