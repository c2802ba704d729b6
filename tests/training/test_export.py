"""Export of a model: content of the folder, loading by other libraries, failed saves."""

import dataclasses
import json
import logging
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.loading import load_encoder
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.evaluation.pairs import load_pairs
from mtdlab.methods.heads import predictor
from mtdlab.methods.queue import KeyQueue, PublishedQueue
from mtdlab.methods.registry import make_settings
from mtdlab.settings import Representation, TrainerSettings
from mtdlab.training import export
from mtdlab.training.export import locked, model_card, save_model
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import Outcome, train
from tests.branches import CPU, branch_of
from tests.conftest import Settings

FACTS = {"study": "small", "trial": 3, "corpus": "a|b: 60 sentences, SHA-256 0123"}
Run = tuple[TrainerSettings, RunInputs, Outcome]


@pytest.fixture(scope="module")
def run(settings_of: Settings) -> Run:
    return trained(settings_of(steps=6, evaluate_every=2, learning_rate=5e-3))


def trained(settings: TrainerSettings) -> Run:
    inputs = load_inputs(settings)
    return settings, inputs, train(settings, inputs)


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    save_model(tmp_path / "models" / "best", *run, FACTS)
    return tmp_path / "models" / "best"


def test_the_exported_model_has_the_trained_score(
    run: Run, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings, inputs, outcome = run
    encoder = load_encoder(str(folder), settings.dropout)
    vectors = inputs.test.embed(Embedder(encoder.model, Representation("cls"), CPU))
    assert inputs.test.evaluate(vectors).score == pytest.approx(outcome.after.test.score)
    assert outcome.after.test != outcome.before.test
    assert capfd.readouterr().err == ""


def test_auto_model_loads_the_model(
    run: Run,
    folder: Path,
    tiny_encoder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handler = Mock(level=logging.WARNING)
    monkeypatch.setattr(logging.getLogger("transformers"), "handlers", [handler])
    model, report = AutoModel.from_pretrained(folder, output_loading_info=True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert handler.handle.mock_calls == []
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    state, before = model.state_dict(), AutoModel.from_pretrained(tiny_encoder).state_dict()
    assert all(torch.equal(state[name], value) for name, value in run[2].weights.items())
    pooler = state.keys() - run[2].weights.keys()
    assert pooler == {"pooler.dense.weight", "pooler.dense.bias"}
    assert all(torch.equal(state[name], before[name]) for name in pooler)
    # also after export, loading and a second export
    again = load_encoder(str(folder), 0.1).pooler
    assert again is not None
    assert torch.equal(again.state_dict()["dense.weight"], before["pooler.dense.weight"])
    assert tokenizer.get_vocab() == run[1].encoder.tokenizer.get_vocab()


def test_a_pooler_that_was_not_loaded_is_not_exported(
    run: Run, tiny_encoder: Path, tmp_path: Path
) -> None:
    """Randomly initialised weights must not be exported as the encoder's pooler."""
    bare = tmp_path / "bare"
    shutil.copytree(tiny_encoder, bare)
    weights = load_file(bare / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.startswith("pooler.")}
    assert len(kept) == len(weights) - 2
    save_file(kept, bare / "model.safetensors", metadata={"format": "pt"})
    settings, inputs, outcome = run
    encoder = load_encoder(str(bare), settings.dropout)
    assert encoder.pooler is None
    save_model(
        tmp_path / "best", settings, dataclasses.replace(inputs, encoder=encoder), outcome, FACTS
    )
    assert load_file(tmp_path / "best" / "model.safetensors").keys() == kept.keys()


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_sentence_transformer_loads_the_model_with_the_same_pooling(
    run: Run, tmp_path: Path, pooling: str
) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is absent")
    settings, inputs, outcome = trained(run[0].model_copy(update={"pooling": pooling}))
    save_model(tmp_path / pooling, settings, inputs, outcome, FACTS)
    pairs = load_pairs(settings.evaluation, "test")
    theirs = library.SentenceTransformer(str(tmp_path / pooling), device="cpu")
    encoder = load_encoder(str(tmp_path / pooling), 0.1)
    ours = inputs.test.embed(Embedder(encoder.model, Representation(pooling), CPU))
    assert np.allclose(theirs.encode(sorted({*pairs.first, *pairs.second})), ours, atol=1e-5)


def test_the_other_parts_of_a_checkpoint_can_be_loaded(run: Run, folder: Path) -> None:
    settings, inputs, _ = run
    names = ("heads", "target", "queue")
    parts = {name: load_file(folder / "mtdlab" / f"{name}.safetensors") for name in names}
    branch = branch_of(inputs.encoder.model, settings)
    assert branch.load_state_dict(parts["target"], strict=True)
    head = predictor(16, 16, 2, 0.1)
    prefix = "predictor."
    head.load_state_dict(
        {k.removeprefix(prefix): v for k, v in parts["heads"].items() if k.startswith(prefix)}
    )
    queue = KeyQueue(20, 16)
    queue.load_state_dict(parts["queue"])
    assert queue.fill in (5 + 2 * 8, 20)
    assert torch.allclose(queue.ordered().norm(dim=1), torch.ones(queue.fill))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"preset": "published-code"},
            [
                "MoCoSE (",
                "queue of 20 keys",
                "EMA decay 0.75",
                "select_on: sts_average",
                "preset pub",
            ],
        ),
        (
            {"method": "simcse"},
            [
                "the other sentences of a batch of 8",
                "SimCSE (Gao",
                "of 6, by `select_on: dev`.",
            ],
        ),
        (
            {"method": "simcse", "select_on": "last"},
            ["is that of step 6 of 6, by `select_on: last`."],
        ),
    ],
    ids=str,
)
def test_other_methods_are_exported_too(
    settings_of: Settings, tmp_path: Path, changed: dict[str, Any], told: list[str]
) -> None:
    settings, inputs, outcome = trained(settings_of(steps=6, evaluate_every=2, **changed))
    save_model(tmp_path / "best", settings, inputs, outcome, FACTS)
    card = (tmp_path / "best" / "README.md").read_text()
    assert [text for text in told if text not in card] == []
    parts = {path.stem for path in (tmp_path / "best" / "mtdlab").glob("*.safetensors")}
    if settings.method == "simcse":
        assert parts == {"heads", "dropout"}
    else:
        assert parts == {"heads", "target", "queue", "dropout"}
        queue = PublishedQueue(20, 16, initial=5)
        queue.load_state_dict(load_file(tmp_path / "best" / "mtdlab" / "queue.safetensors"))
        assert queue.fill == 20
        assert torch.allclose(queue.negatives().norm(dim=1), torch.ones(20))


def test_a_card_contains_the_text_of_its_method(settings_of: Settings, folder: Path) -> None:
    told = json.loads((folder / "mtdlab" / "run.json").read_text())
    card = model_card(told, settings_of(method="sncse"), ["bank", "heads"])
    assert "# A sentence encoder trained by SNCSE\n" in card
    assert "soft negatives the negations of the sentences. The checkpoint\nis that of step" in card
    assert "Method: SNCSE (Wang and Dou, ICIC 2023), as implemented in mtdlab, preset in" in card
    assert "checkpoint (bank, heads) and a description of the run" in card
    assert f"| sts_test | {told['scores_before']['sts_test']:.2f} | " in card


def test_a_card_says_where_training_did_not_raise_the_score(run: Run, folder: Path) -> None:
    told = json.loads((folder / "mtdlab" / "run.json").read_text())
    told |= {"scores": {"a": 74.9, "b": 70.0}, "scores_before": {"a": 75.2, "b": 60.0}}
    card = model_card(told, run[0], [])
    assert "Training did not raise the score on a above the untrained encoder's." in card
    told["scores"]["a"] = 76.0
    assert "did not raise" not in model_card(told, run[0], [])


def test_the_model_folder_records_its_provenance(run: Run, folder: Path) -> None:
    told = json.loads((folder / "mtdlab" / "run.json").read_text())
    settings, _, outcome = run
    assert (told["study"], told["trial"], told["seed"]) == ("small", 3, 0)
    assert told["mtd"] == settings.mtd
    assert told["scores"]["sts_test"] == outcome.after.test.score
    assert make_settings(**told["settings"]) == settings
    card = (folder / "README.md").read_text()
    metadata = ModelCard(card).data.to_dict()
    assert metadata["library_name"] == "sentence-transformers"
    assert "mtdlab" in metadata["tags"]
    assert "`pooler_output` of `AutoModel`, where there is one, is not the sentence emb" in card
    assert "checkpoint (dropout, heads, queue, target) and a description of the run" in card
    before, after = outcome.before.dev.score, outcome.after.dev.score
    assert f"| sts_dev | {before:.2f} | {after:.2f} |" in card
    assert f"a maximum traceable distance of {settings.mtd:.2f} steps" in card
    assert r"| corpus | a\|b: 60 sentences, SHA-256 0123 |" in card


def test_only_a_saved_model_is_replaced(run: Run, folder: Path) -> None:
    (folder / "stale.txt").write_text("from before")
    save_model(folder, *run, FACTS)
    assert not (folder / "stale.txt").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["best"]
    other = folder.parent / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("dear")
    with pytest.raises(MtdlabError, match="other: exists and is not a saved model"):
        save_model(other, *run, FACTS)
    with pytest.raises(MtdlabError, match=r"thesis.tex: exists and is not a saved model"):
        save_model(other / "thesis.tex", *run, FACTS)
    assert (other / "thesis.tex").read_text() == "dear"


def test_a_failed_save_keeps_the_earlier_model(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> str:
        raise OSError(28, "No space left on device")

    before = (folder / "mtdlab" / "run.json").read_text()
    monkeypatch.setattr(export, "model_card", full)
    with pytest.raises(OSError, match="No space left"):
        save_model(folder, *run, {"study": "another"})
    assert (folder / "mtdlab" / "run.json").read_text() == before
    assert [path.name for path in folder.parent.iterdir()] == ["best"]


def test_the_model_folder_is_readable_by_others(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert {path.stat().st_mode & 0o777 for path in files} == {0o644}
    assert folder.stat().st_mode & 0o777 == 0o755


def test_temporary_folders_of_killed_processes_are_removed(folder: Path) -> None:
    half, neighbour = (folder.parent / name for name in (".best.building-x", ".best-2.building-x"))
    half.mkdir()
    neighbour.mkdir()
    with locked(folder):
        assert not half.exists()
    assert neighbour.exists()


def test_a_model_with_another_score_after_saving_is_refused(run: Run, tmp_path: Path) -> None:
    settings, inputs, outcome = run
    generator = torch.Generator().manual_seed(0)
    weights = {k: torch.randn(v.shape, generator=generator) for k, v in outcome.weights.items()}
    wrong = dataclasses.replace(outcome, states={**outcome.states, "encoder": weights})
    with pytest.raises(TrialError, match=r"^the saved model scores .* on dev, the trained one "):
        save_model(tmp_path / "best", settings, inputs, wrong, FACTS)
    assert list(tmp_path.iterdir()) == []
