"""What a trial ran with: its sentences, and its fields read from JSON."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from mtdlab.analysis.data.environment import (
    Environment,
    RecordedCorpus,
    RecordedEncoder,
    RecordedEvaluation,
    RecordedProgram,
    join_sentences,
    read_fields,
)

FULL = Environment(
    RecordedCorpus("builtin", 24_000, "sentences", "0f", "[UNK]", (0, 0.123)),
    RecordedEncoder("tiny", 4_385_920, "cls pooling", "bert, the fast forward pass"),
    RecordedEvaluation("own", 1_500, 20, "MR", "STS12 (STS13 missing)", {"MR": "10 of 20"}),
    device="cpu",
    precision="bfloat16",
    threads=2,
    architecture="x86_64",
    instructions="AVX512",
    processor="x86_64",
    versions={"Python": "3.11.2", "torch": "2.13.0"},
    commit="ab12-dirty",
)


def test_each_fact_is_a_sentence() -> None:
    assert FULL.sentences() == {
        "corpus": "builtin: 24,000 sentences, SHA-256 0f; [UNK] (words that the vocabulary lacks), "
        "of each view: 0.00 %, 0.12 %",
        "encoder": "tiny: 4.39 million weights, cls pooling; bert, the fast forward pass",
        "evaluation": "own: 1,500 dev pairs (sts_dev) and 20 test pairs (sts_test); tasks MR; "
        "checkpoints selected on the average of STS12 (STS13 missing); MR: 10 of 20",
        "device": "cpu, bfloat16, threads a trial: 2",
        "processor": "x86_64, AVX512",
        "versions": "Python 3.11.2, torch 2.13.0 (commit ab12-dirty)",
    }
    own = Environment(program=RecordedProgram("own:train", "0f"), architecture="arm64")
    assert own.sentences() == {"program": "own:train, SHA-256 0f", "processor": "arm64"}
    assert Environment().sentences() == {}


def test_different_sentences_are_joined() -> None:
    cpu, gpu = (Environment(device=name, versions={"torch": "2"}) for name in ("cpu", "H100"))
    assert join_sentences([cpu, gpu, cpu]) == {"device": "cpu; H100", "versions": "torch 2"}


def test_fields_are_read_as_they_were_written() -> None:
    for environment in (FULL, Environment()):
        assert read_fields(Environment, json.loads(json.dumps(asdict(environment)))) == environment
    assert read_fields(Environment, {"device": "cpu", "of a later version": 1}) == Environment(
        device="cpu"
    )


@pytest.mark.parametrize(
    "changed",
    [
        *({"threads": value} for value in ("1", 1.0, True, 2**63, [1])),
        *({"device": value} for value in (None, 1, ["cpu"])),
        *({"versions": value} for value in (None, "torch 2", ["torch"], {"torch": 2})),
        *({"program": value} for value in ("a:b", {"reference": "a:b"}, [])),
        {"corpus": asdict(FULL)["corpus"] | {"unknown": [float("nan")]}},
        {"corpus": asdict(FULL)["corpus"] | {"amount": 10**400}},
    ],
)
def test_what_is_no_environment_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=" is no Environment: "):
        read_fields(Environment, asdict(FULL) | changed)


@pytest.mark.parametrize("value", [None, "cpu", 1, [], [{}]])
def test_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is no Environment"):
        read_fields(Environment, value)
