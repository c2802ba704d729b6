"""docs/how-to/rank-models.md: the tree of results of MTEB becomes a table."""

import json
from pathlib import Path

import pandas as pd
import pytest
from markdown_blocks import ROOT, blocks_of

DOCUMENT = ROOT / "docs" / "how-to" / "rank-models.md"


def test_the_tree_of_mteb_becomes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the keys that mteb 2.10 writes; a task has the mean over its subsets."""
    scores = {"org__small": [0.5, 0.7], "base": [0.8]}
    for model, parts in scores.items():
        folder = tmp_path / "results" / model / "0a1b2c3"
        folder.mkdir(parents=True)
        (folder / "model_meta.json").write_text('{"name": "x"}')
        rows = [
            {"main_score": part, "hf_subset": f"{at}", "languages": ["eng-Latn"]}
            for at, part in enumerate(parts)
        ]
        result = {"dataset_revision": "d", "task_name": "STS22", "mteb_version": "2.10.3"}
        result |= {"scores": {"test": rows}, "evaluation_time": 1.5, "kg_co2_emissions": None}
        (folder / "STS22.json").write_text(json.dumps(result))
    monkeypatch.chdir(tmp_path)
    [block] = [block for block in blocks_of(DOCUMENT) if block.not_run]
    exec(block.text, {})
    table = pd.read_csv("scores.csv").set_index("model")
    assert table["task"].tolist() == ["STS22", "STS22"]
    assert table["score"].to_dict() == pytest.approx({"org/small": 0.6, "base": 0.8})
