"""`mtdlab init`: new study files and copies of the packaged ones."""

import io
import json
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from mtdlab.api.plan import NoEstimate, find_costs
from mtdlab.commands.init import VALUES
from mtdlab.config.reader import read_study
from mtdlab.data_paths import packaged_studies
from tests.commands.conftest import Command

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(autouse=True)
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is timed, which takes seconds."""
    _time(monkeypatch, lambda: NoEstimate("nothing is timed here"))


def _time(monkeypatch: pytest.MonkeyPatch, find: Callable[[], object]) -> None:
    monkeypatch.setattr("mtdlab.commands.init.find_costs", lambda *_, **__: find())


def test_a_packaged_study_is_copied_byte_by_byte(command: Command, tmp_path: Path) -> None:
    text = command("init mtd").stdout
    assert "wrote mtd.yaml: study mtd, 40 trials (ema_decay varied, 8 seeds)" in text
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
    assert rows[0]["name"] == "age-or-number"
    by_name = {row["name"]: row["profiles"] for row in rows}
    assert by_name["methods"] == ["minilm-3", "published-code"]


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
    points = {(unit.parameters or {})["learning_rate"] for unit in spec.search_trials()}
    assert (points, spec.seeds) == ({3e-5, 1e-4}, (0, 1, 2))
    assert "org/model" in spec.description


@pytest.mark.parametrize(
    ("each", "options", "kept", "sentence"),
    [
        (60.0, "", (6, 5, 200), "About 15 min on this machine, 2 trials at a time. Left out "),
        (300.0, "", (4, 5, 200), "ema_decay 0.75, 0.95."),
        (1000.0, "--hours 8", (6, 5, 200), "About 4 h 10 min"),
        (1000.0, "", (3, 4, 100), "0.75, 0.9, 0.95; 1 of 5 seeds; half of the steps."),
        (1000.0, "--seeds 4", (3, 4, 100), "ema_decay 0.75, 0.9, 0.95; half of the steps."),
        (1000.0, "--vary ema_decay=0.5,0.9", (2, 3, 200), "Left out for 60 min (--hours): 2 of 5"),
        (9000.0, "", (3, 3, 100), "2 trials at a time; take fewer values or pairs"),
    ],
)
def test_a_study_has_what_fits_its_hours(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    each: float,
    options: str,
    kept: tuple[int, int, int],
    sentence: str,
) -> None:
    trials = 10 if "=" in options else 24 if "seeds" in options else 30
    costs = {"seconds": (0.0, trials * each / 2 + 10), "start": 10.0, "evaluation": each / 10}
    _time(monkeypatch, lambda: SimpleNamespace(**costs, trials=trials, workers=2))
    found = json.loads(command(f"init mine --vary ema_decay {options} --json").stdout)
    text = (tmp_path / "mine.yaml").read_text()
    values = yaml.safe_load(text)
    assert (len(values["search"]["ema_decay"]), len(values["seeds"])) == kept[:2]
    assert values["trainer"]["steps"] == kept[2] * 160 // 200
    assert sentence in found["size"]
    assert " ".join(text.split()).replace(" # ", " ").count(found["size"]) == 1
    assert found["seconds"] <= 3600 or "8" in options or "take fewer" in found["size"]


@pytest.mark.parametrize(("texts", "queue"), [(90, 64), (400, 128), (3000, 512)])
def test_the_queue_has_few_keys_of_a_text_that_a_step_trains_on(
    command: Command, tmp_path: Path, texts: int, queue: int
) -> None:
    (tmp_path / "text.txt").write_text("".join(f"sentence {at}\n" for at in range(texts)))
    said = " ".join(command("init mine --corpus text.txt").stdout.split())
    text = (tmp_path / "mine.yaml").read_text()
    assert yaml.safe_load(text)["trainer"]["queue_size"] == queue
    sentence = (
        f"The queue has {queue} keys: in a larger one the {texts} texts would meet their own."
    )
    assert (sentence in said) is (sentence in " ".join(text.split()).replace(" # ", " "))
    assert (sentence in said) is (queue < 512)


def test_a_study_that_cannot_be_timed_is_whole_and_one_that_is_timed_too_long_small(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = command("init whole --vary queue_size").stdout
    assert "20 trials" in whole
    assert "How long it takes is not known: nothing is timed here." in " ".join(whole.split())
    _time(monkeypatch, lambda: signal.raise_signal(signal.SIGALRM))
    small = command("init small --vary queue_size").stdout
    assert "9 trials" in small
    assert "took more than 30 s here, so the study is small." in " ".join(small.split())


def test_a_study_for_another_machine_is_written_with_what_is_missing_here(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtdlab.commands.init.find_costs", find_costs)
    text = " ".join(command("init mine --corpus nowhere.txt").stdout.split())
    assert "30 trials" in text
    assert "How long it takes is not known: corpus nowhere.txt: cannot be read" in text
    assert "# How long it takes is not known: corpus" in (tmp_path / "mine.yaml").read_text()


def test_a_path_is_absolute_where_the_file_is_written_elsewhere(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("a\n")
    (tmp_path / "sub").mkdir()
    command("init mine --corpus text.txt --out sub/mine.yaml")
    assert read_study(tmp_path / "sub/mine.yaml").fixed().corpus == str(tmp_path / "text.txt")


def test_a_level_beyond_the_run_is_not_written_without_saying_so(command: Command) -> None:
    written = command("init mine --vary ema_decay").stdout
    assert "beyond" not in written
    assert "remain" not in written
    found = json.loads(command("init other --vary ema_decay=0.5,0.995 --json").stdout)
    assert found["warnings"][0].startswith("MTD 208 (η 0.995): 45 % of")
    text = command("init third --vary ema_decay=0.5,0.995").stdout
    assert "warning Beyond the run, and taking no part" in text


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
        ("init bad/name", "study 'bad/name': not a name that a folder can have"),
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


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives these answers to the questions of a terminal."""

    def answered(*answers: str) -> None:
        typed = io.StringIO("".join(f"{answer}\n" for answer in answers))
        monkeypatch.setattr(sys, "stdin", typed)
        for stream in (sys.stdin, sys.stdout):
            monkeypatch.setattr(stream, "isatty", lambda: True)

    return answered


def test_in_a_terminal_it_asks(
    command: Command, tmp_path: Path, answer: Callable[..., None]
) -> None:
    (tmp_path / "text.txt").write_text("A sentence.\n")
    answer("", "text.txt", "", "ema_decay queue_size=64,512", "3")
    text = command("init mine").stdout
    assert "builtin: synthetic, for the built-in text; a folder of pairs" in text
    assert "36 trials (ema_decay, queue_size varied, 3 seeds)" in text
    assert read_study(tmp_path / "mine.yaml").fixed().corpus == "text.txt"


def test_a_wrong_answer_is_named_and_asked_for_again(
    command: Command, tmp_path: Path, answer: Callable[..., None], tiny_encoder: Path
) -> None:
    (tmp_path / "my-study.yaml").write_text("")
    (tmp_path / "text.txt").write_text("A sentence.\n")
    names = ["", "mtd", "a/b", "mine"]
    inputs = ["no-encoder", str(tmp_path), str(tiny_encoder), "/nope.txt", "text.txt", "/nope", ""]
    answer(
        *names, *inputs, "foo=1", "dropout=", "temperature=x,2", "dropout=0,0.1", "0", "20000", "2"
    )
    text = command("init").stdout
    for sentence in (
        "Error: my-study.yaml exists and is not overwritten",
        "Error: mtd is the name of a packaged study",
        "Error: study 'a/b': not a name that a folder can",
        "Error: encoder no-encoder: neither a folder here nor in the local hub cache",
        f"Error: encoder {tmp_path}: the folder holds no config.json",
        "Error: corpus /nope.txt: ",
        "Error: evaluation /nope",
        "Error: search.foo: unknown key",
        "Error: --vary dropout=: write NAME=VALUE,VALUE",
        "Error: search.temperature",
        "Error: '0': write how many, 1 to 1,000",
        "Error: '20000': write how many, 1 to 1,000",
        "wrote mine.yaml: study mine, 4 trials (dropout varied, 2 seeds)",
    ):
        assert sentence in text
    fixed = read_study(tmp_path / "mine.yaml").fixed()
    assert (fixed.encoder, fixed.corpus) == (str(tiny_encoder), "text.txt")


def test_the_pooling_of_a_new_study_is_the_encoders(
    command: Command, tmp_path: Path, tiny_encoder: Path
) -> None:
    command(f"init plain --encoder {tiny_encoder}")
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    (tmp_path / "encoder" / "1_Pooling").mkdir()
    (tmp_path / "encoder" / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    command("init mean --encoder encoder")
    command("init both --encoder encoder --vary method=mocose,consert")
    studies = [read_study(tmp_path / f"{name}.yaml") for name in ("plain", "mean", "both")]
    assert [study.trainer.get("pooling") for study in studies] == ["cls", "mean", None]
    assert [studies[2].fixed(method).pooling for method in studies[2].methods] == ["mean", "last2"]


def test_a_packaged_study_is_used_by_its_name_where_no_file_has_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mtdlab.api.run.run_once",
        lambda settings, *_, **__: {"steps": settings.steps},
    )
    assert json.loads(command("train mtd --json").stdout)["steps"] == 240
    (tmp_path / "mtd").mkdir()
    assert json.loads(command("train mtd --json").stdout)["steps"] == 240
    error = command("sweep studies/mtd.yaml", 2).stderr
    assert "studies/mtd.yaml: no such file; `mtdlab init NAME` copies a study that comes" in error
    assert error.rstrip().endswith("uses it as it is: did you mean mtd?")
    assert "did you mean mtd?" in command("sweep mdt", 2).stderr
    (tmp_path / "mtd").rmdir()
    (tmp_path / "mtd").write_text("study: own\ntrainer: {steps: 7}\n")
    assert json.loads(command("train mtd --json").stdout)["steps"] == 7


def test_a_study_file_that_cannot_be_read_is_not_called_missing(command: Command) -> None:
    error = command(f"plan {'a' * 300}.yaml", 2).stderr
    assert f"{'a' * 60}: cannot be read: file name too long" in " ".join(error.split())


def test_packaged_studies_have_different_names() -> None:
    files = [*STUDIES.glob("*.yaml"), *STUDIES.glob("*/*.yaml")]
    assert len(packaged_studies()) == len(files)
    assert {path.resolve() for path in packaged_studies().values()} == set(files)
