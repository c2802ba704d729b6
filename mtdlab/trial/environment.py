"""What a trial ran with, as text: for running it again, and for finding trials that differ."""

import torch

from mtdlab.config import TrainerSettings
from mtdlab.device import choose_device
from mtdlab.encoders.traits import describe_encoder
from mtdlab.settings.representation import describe
from mtdlab.training.inputs import RunInputs
from mtdlab.training.selection import describe_sets
from mtdlab.trial.machine import describe_processor, describe_versions

PACKAGES = ("mtdlab", "torch", "transformers", "optuna", "numpy")


def environment(settings: TrainerSettings, inputs: RunInputs) -> dict[str, str]:
    """Corpus, encoder, evaluation, device, precision, threads, processor, versions and commit."""
    model, fields = inputs.encoder.model, inputs.encoder.traits.dropout_fields
    selection = ""
    if settings.select_on == "sts_average":
        sets = describe_sets(settings.evaluation)
        selection = f"; checkpoints selected on the average of {sets}"
    weights = sum(parameter.numel() for parameter in model.parameters())
    return {
        "corpus": f"{settings.corpus}: {len(inputs.tokens):,} {inputs.corpus.unit}, "
        f"SHA-256 {inputs.corpus.fingerprint}{_unknown(inputs)}",
        "encoder": f"{settings.encoder}: {weights / 1e6:.2f} million weights, "
        f"{describe(settings.representation)}; {describe_encoder(model, fields)}",
        "evaluation": f"{settings.evaluation}: {len(inputs.dev.gold):,} dev pairs (sts_dev) and "
        f"{len(inputs.test.gold):,} test pairs (sts_test)"
        + (f"; tasks {settings.tasks}" if settings.tasks else "")
        + selection
        + "".join(f"; {name}: {text}" for name, text in inputs.suite.shortfalls.items()),
        "device": f"{choose_device(settings)}, threads a trial: {torch.get_num_threads()}",
        "processor": describe_processor(torch.backends.cpu.get_cpu_capability()),
        "versions": describe_versions(PACKAGES),
    }


def _unknown(inputs: RunInputs) -> str:
    """The share of [UNK] in the tokens of each view, prompts included; empty if there are none."""
    tokenizer = inputs.encoder.tokenizer
    if tokenizer.unk_token_id is None or tokenizer.unk_token_id == tokenizer.pad_token_id:
        return ""
    shares = [100 * view.share_of(int(tokenizer.unk_token_id)) for view in inputs.views]
    if not any(shares):
        return ""
    listed = ", ".join(f"{share:.2f} %" for share in shares)
    kind = "each view" if len(shares) > 1 else "it"
    return f"; {tokenizer.unk_token} (words that the vocabulary lacks), of {kind}: {listed}"
