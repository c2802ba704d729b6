"""`mtdlab init`: new study files and copies of the packaged ones."""

import json
import sys
from pathlib import Path

import pytest

from mtdlab.commands.new_study import VALUES
from mtdlab.config import read_study
from mtdlab.packaged import packaged_studies
from tests.commands.conftest import Command

STUDIES = Path(__file__).parents[2] / "studies"


def test_a_packaged_study_is_copied_byte_by_byte(command: Command, tmp_path: Path) -> None:
    text = command("init mtd").stdout
    assert "wrote mtd.yaml: study mtd, 56 trials (ema_decay varied, 8 seeds)" in text
    assert (tmp_path / "mtd.yaml").read_bytes() == (STUDIES / "mtd.yaml").read_bytes()
    error = command("init mtd", 2).stderr
    assert "mtd.yaml exists and is not overwritten; name another file with --out" in error
    found = json.loads(command("init table3-ema-decay --out t.yaml --json").stdout)
    assert (found["file"], found["study"]) == ("t.yaml", "table3-ema-decay")


def test_every_packaged_study_is_listed_with_its_question(command: Command) -> None:
    text = command("init --list").stdout
    rows = json.loads(command("init --list --json").stdout)["studies"]
    files = [*STUDIES.glob("*.yaml"), *STUDIES.glob("paper/*.yaml")]
    assert sorted(row["name"] for row in rows) == sorted(path.stem for path in files)
    assert all(row["question"][-1] in "?." for row in rows)
    assert max(map(len, text.splitlines())) <= 80
    for row in rows:
        assert f"\n{row['name']} " in f"\n{text}"
    assert rows[0]["name"] == "collapse"
    by_name = {row["name"]: row["profiles"] for row in rows}
    assert by_name["methods"] == ["minilm"]


def test_options_make_a_study_that_can_be_read(command: Command, tmp_path: Path) -> None:
    (tmp_path / "my text.txt").write_text("a\n")
    text = command(
        "init mine --encoder org/model --corpus 'my text.txt' --evaluation pairs "
        "--vary queue_size --vary learning_rate=3e-5,1e-4 --seeds 3"
    ).stdout
    assert "study mine, 24 trials (queue_size, learning_rate varied, 3 seeds)" in text
    assert text.endswith(
        "  mtdlab plan mine.yaml\n  mtdlab sweep mine.yaml\n  mtdlab report --study mine\n"
    )
    spec = read_study(tmp_path / "mine.yaml")
    fixed = spec.fixed()
    assert (fixed.encoder, fixed.corpus, fixed.evaluation) == ("org/model", "my text.txt", "pairs")
    points = {(unit.parameters or {})["learning_rate"] for unit in spec.units()}
    assert (points, spec.seeds) == ({3e-5, 1e-4}, (0, 1, 2))
    assert "org/model" in spec.description


def test_a_path_is_absolute_where_the_file_is_written_elsewhere(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("a\n")
    (tmp_path / "sub").mkdir()
    command("init mine --corpus text.txt --out sub/mine.yaml")
    assert read_study(tmp_path / "sub/mine.yaml").fixed().corpus == str(tmp_path / "text.txt")


@pytest.mark.parametrize("name", VALUES)
def test_the_usual_values_of_a_setting_make_a_study(
    command: Command, tmp_path: Path, name: str
) -> None:
    found = json.loads(command(f"init mine --vary {name} --json").stdout)
    assert found["trials"] == 5 * len(VALUES[name])
    assert list(read_study(tmp_path / "mine.yaml").search) == [name]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("init mtd --seeds 2", "mtd is a packaged study, copied as it is"),
        ("init bad/name", "'bad/name': not a name that a study can have"),
        ("init b --vary nope", "--vary nope: write NAME=VALUE,VALUE, as in dropout=0.1,0.2"),
        ("init b --vary dropout=", "--vary dropout=: write NAME=VALUE,VALUE"),
        ("init b --vary foo=1,2", "search.foo: unknown key"),
        ("init b --vary dropout=x", "search.dropout: 'x'"),
        ("init b --out no/such/b.yaml", "no/such/b.yaml cannot be written: no such file"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(
    command: Command, tmp_path: Path, line: str, sentence: str
) -> None:
    assert sentence in command(line, 2).stderr
    assert not list(tmp_path.glob("*.yaml"))


def test_in_a_terminal_it_asks(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["", "text.txt", "", "ema_decay queue_size=64,512", "3"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(
        "typer.prompt", lambda _text, default, **_: type(default)(next(answers) or default)
    )
    text = command("init mine").stdout
    assert "the built-in evaluation pairs are synthetic" in text
    assert "42 trials (ema_decay, queue_size varied, 3 seeds)" in text
    assert read_study(tmp_path / "mine.yaml").fixed().corpus == "text.txt"


def test_a_packaged_study_is_used_by_its_name_where_no_file_has_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mtdlab.commands.training_run.run_once",
        lambda settings, *_, **__: {"steps": settings.steps},
    )
    assert json.loads(command("train mtd --json").stdout)["steps"] == 160
    (tmp_path / "mtd").mkdir()
    assert json.loads(command("train mtd --json").stdout)["steps"] == 160
    error = command("sweep studies/mtd.yaml", 2).stderr
    assert "studies/mtd.yaml: no such file; mtdlab comes with a study mtd: write mtd" in error
    assert "did you mean mtd?" in command("sweep mdt", 2).stderr
    (tmp_path / "mtd").rmdir()
    (tmp_path / "mtd").write_text("study: own\ntrainer: {steps: 7}\n")
    assert json.loads(command("train mtd --json").stdout)["steps"] == 7


def test_packaged_studies_have_different_names() -> None:
    files = [*STUDIES.glob("*.yaml"), *STUDIES.glob("*/*.yaml")]
    assert len(packaged_studies()) == len(files)
    assert {path.resolve() for path in packaged_studies().values()} == set(files)
