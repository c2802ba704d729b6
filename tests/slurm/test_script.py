"""The text of the array script: options as sbatch reads them, words as the shell reads them."""

import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mtdlab.errors import MtdlabError
from mtdlab.slurm import array
from mtdlab.slurm.array import (
    DEFAULT_SIZE,
    OWN_OPTIONS,
    Resources,
    Script,
    max_array_size,
    read_options,
    submissions,
)

HOSTILE = "a 'b\" $(touch oops) `touch oops` \n %A ; exit 9 #"
SCRIPT = Script(
    study="own",
    trials=24,
    resources=Resources(
        3, 1, 2, gpus=0, seconds=5400, lead=120, memory=1500, timeouts=3, reasons={}
    ),
    command=["/opt/python", "-P", "-m", "mtdlab", "worker", "--study", "own"],
    url_is_secret=False,
    options={},
    folder=Path("/home/me/work"),
    logs=Path("/home/me/work/own-logs"),
    size=3,
)
VARIANTS = {
    "plain": SCRIPT,
    "secret": replace(SCRIPT, url_is_secret=True),
    "gpus": replace(SCRIPT, resources=replace(SCRIPT.resources, gpus=2, memory=None)),
    "hostile": replace(
        SCRIPT,
        command=["/opt/py thon", HOSTILE],
        folder=Path("/home") / HOSTILE.replace("/", ""),
        options={"comment": "a 'b\" $(touch oops) \\ #"},
    ),
}


def directives(script: Script) -> list[str]:
    """The options of sbatch, in order."""
    lines = script.text().splitlines()
    assert lines[0] == "#!/bin/sh"
    return [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]


def shellcheck() -> str:
    """Where shellcheck is; the test is skipped without it."""
    beside = Path(sys.executable).with_name("shellcheck")
    found = str(beside) if beside.exists() else shutil.which("shellcheck")
    if found is None:
        pytest.skip("shellcheck is not installed")
    return found


def test_the_options_of_an_array() -> None:
    assert directives(SCRIPT) == [
        "--job-name=mtdlab-own",
        "--array=0-2",
        "--time=01:30:00",
        "--cpus-per-task=2",
        "--mem=1500M",
        "--signal=USR1@120",
        "--requeue",
        "--open-mode=append",
        "--output=/home/me/work/own-logs/%A_%a.log",
    ]
    assert "--gres=gpu:2" in directives(VARIANTS["gpus"])
    assert not any("--mem" in line for line in directives(VARIANTS["gpus"]))


def test_no_option_follows_the_first_command() -> None:
    lines = SCRIPT.text().splitlines()
    last = max(at for at, line in enumerate(lines) if line.startswith("#SBATCH"))
    assert all(line.startswith("#") for line in lines[: last + 1])


def test_given_options_replace_those_that_are_derived() -> None:
    options = read_options(["mem=4G", "--qos=low", "exclusive", "comment=a b"])
    lines = directives(replace(SCRIPT, options=options))
    assert [line for line in lines if "mem" in line] == ["--mem=4G"]
    assert lines[-3:] == ["--qos=low", "--exclusive", '--comment="a b"']


@pytest.mark.parametrize("name", OWN_OPTIONS)
def test_options_that_the_script_relies_on_are_refused(name: str) -> None:
    with pytest.raises(MtdlabError, match=f"--sbatch {name}: cannot be set here, "):
        read_options([f"{name}=1"])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("", "--sbatch '': not an option of sbatch; write it as OPTION=VALUE"),
        ("-p=x", "not an option of sbatch"),
        ("mem 4G", "not an option of sbatch"),
        ("comment=a\nscancel", "comment .*: a line of #SBATCH cannot hold a line break"),
        ("partition=\x1b[2J", "partition .*: a line of #SBATCH cannot hold"),
    ],
)
def test_an_option_that_cannot_be_written_is_refused(given: str, sentence: str) -> None:
    with pytest.raises(MtdlabError, match=sentence):
        read_options([given])


def test_a_folder_of_logs_that_slurm_cannot_name_is_refused() -> None:
    with pytest.raises(MtdlabError, match="has a backslash"):
        replace(SCRIPT, logs=Path("/home/a\\b")).text()
    with pytest.raises(MtdlabError, match="cannot hold a line break"):
        replace(SCRIPT, logs=Path("/home/a\nb")).text()
    (output,) = (line for line in directives(replace(SCRIPT, logs=Path("/a 5%A"))) if "out" in line)
    assert output == '--output="/a 5%%A/%A_%a.log"'


@pytest.mark.parametrize("script", VARIANTS.values(), ids=VARIANTS)
def test_the_shell_and_shellcheck_accept_it(script: Script, tmp_path: Path) -> None:
    path = tmp_path / "own.sbatch"
    path.write_text(script.text())
    read = subprocess.run(["sh", "-n", path], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")
    checked = subprocess.run([shellcheck(), path], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_every_word_of_a_hostile_command_is_quoted() -> None:
    text = VARIANTS["hostile"].text()
    assert shlex.join(["/opt/py thon", HOSTILE]) in text
    assert f"cd -- {shlex.quote('/home/' + HOSTILE.replace('/', ''))} || exit 2" in text


def test_tasks_are_split_at_the_size_of_an_array() -> None:
    path = Path("own study.sbatch")
    assert submissions(path, 1001, 1001) == ["sbatch 'own study.sbatch'"]
    assert submissions(path, 2500, 1001) == [
        "sbatch --array=0-1000 'own study.sbatch'",
        "sbatch --array=0-1000 'own study.sbatch'",
        "sbatch --array=0-497 'own study.sbatch'",
    ]
    assert submissions(path, 1002, 1001)[-1] == "sbatch --array=0-0 'own study.sbatch'"


def test_the_size_of_an_array_is_asked_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert max_array_size(None) == DEFAULT_SIZE
    assert max_array_size(50) == 50
    scontrol = tmp_path / "scontrol"
    for printed, expected in {"MaxArraySize            = 11": 11, "unreachable": 1001}.items():
        scontrol.write_text(f"#!/bin/sh\necho 'MaxJobCount = 7\n{printed}'\n")
        scontrol.chmod(0o755)
        assert max_array_size(None) == expected
    assert max_array_size(50) == 50
    scontrol.write_text("#!/bin/sh\necho 'MaxArraySize = 0'\n")
    with pytest.raises(MtdlabError, match=r"allows no job arrays \(MaxArraySize is 0\)"):
        max_array_size(None)
    scontrol.write_text("#!/bin/sh\nwhile :; do :; done\n")
    monkeypatch.setattr(array, "ANSWER_SECONDS", 0.1)
    assert max_array_size(None) == DEFAULT_SIZE
