"""The text of a new study file, from what `init` is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from mtdlab.errors import MtdlabError

BUILTIN = "builtin"
VALUES: Mapping[str, list[Any]] = {
    "ema_decay": [0.5, 0.75, 0.9, 0.95, 0.97, 0.985, 0.995],
    "queue_size": [64, 256, 512, 1024],
    "batch_size": [32, 64, 128],
    "temperature": [0.03, 0.05, 0.1],
    "learning_rate": [1e-5, 3e-5, 1e-4],
    "method": ["mocose", "simcse", "esimcse", "mixcse", "sncse", "hicl", "consert", "contriever"],
}
"""What `init` varies a setting over, unless it is given other values."""

SETTINGS: Mapping[bool, Mapping[str, Any]] = {
    True: {"learning_rate": 1e-3, "steps": 160, "evaluate_every": 80},
    False: {"learning_rate": 3e-5, "steps": 200, "evaluate_every": 50},
}
"""Of the built-in encoder, and of others, which are trained already, and whose steps are long."""
_WIDEST = 80
_COMMENTS = {
    "encoder": "builtin, a folder, or a Hugging Face name",
    "pooling": "how the encoder was made; cls if its folder has no 1_Pooling/config.json",
    "corpus": "builtin, a text file with a sentence a line, or a folder of them",
    "evaluation": "builtin, or a folder with graded sentence pairs",
    "batch_size": "sentences of a training step",
    "queue_size": "keys in the negative queue",
    "steps": "training steps of a trial; mtdlab plan estimates the time",
}


@dataclass(frozen=True)
class NewStudy:
    """What a new study is made from. vary: values by setting; seeds: how many."""

    name: str
    encoder: str
    corpus: str
    evaluation: str
    vary: Mapping[str, list[Any]]
    seeds: int


def read_varied(texts: Sequence[str]) -> dict[str, list[Any]]:
    """The settings to vary: each as NAME for the usual values, or as NAME=VALUE,VALUE.

    Values are read as in a study file. Raises MtdlabError for a text that is neither, and for a
    NAME without usual values.
    """
    # here, since --help imports this module
    from mtdlab.config.source import parse

    varied = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals and name in VALUES:
            varied[name] = VALUES[name]
            continue
        listed = parse(f"--vary {text}", f"[{values}]").values
        if not name or not listed:
            raise MtdlabError(
                f"--vary {text}: write NAME=VALUE,VALUE, as in dropout=0.1,0.2; without values "
                f"only {', '.join(VALUES)}"
            )
        varied[name] = listed
    return varied


def write_study(new: NewStudy) -> str:
    """The text of the study file, with a comment beside what is likely to be changed."""
    builtin = new.encoder == BUILTIN
    trainer: dict[str, Any] = {"encoder": new.encoder} | _pooling(new)
    trainer |= {"corpus": new.corpus, "evaluation": new.evaluation}
    trainer |= {"batch_size": 64} | ({} if "method" in new.vary else {"queue_size": 512})
    trainer |= SETTINGS[builtin]
    kept = {name: value for name, value in trainer.items() if name not in new.vary}
    lines = [
        "# Written by mtdlab init. Next: mtdlab plan, then mtdlab sweep, with this file.",
        f"study: {new.name}",
        f"description: {_scalar(describe(new))}",
        "metric: sts_test  # reported; sts_dev ranks the trials",
        "trainer:  # the same for every trial",
        *(line for name, value in kept.items() for line in _lines(name, value)),
        "search:  # varied",
        *(f"  {name}: [{', '.join(map(_scalar, values))}]" for name, values in new.vary.items()),
        f"seeds: {list(range(new.seeds))}",
        "sampler: grid",
    ]
    return "\n".join(lines) + "\n"


def _pooling(new: NewStudy) -> dict[str, Any]:
    """The pooling that the encoder was made with; methods that are varied have their own."""
    if new.encoder == BUILTIN or "method" in new.vary:
        return {}
    # here, as in read_varied
    from mtdlab.encoders.folders import declared_pooling

    return {"pooling": declared_pooling(new.encoder) or "cls"}


def describe(new: NewStudy) -> str:
    """The study's question, for its page."""
    varied = " and ".join(new.vary)
    data = "the built-in, synthetic data" if new.corpus == BUILTIN else new.corpus
    encoder = "the built-in encoder" if new.encoder == BUILTIN else new.encoder
    return f"How does the score depend on {varied}, for {encoder} trained on {data}?"


def _lines(name: str, value: Any) -> list[str]:
    """A setting with its comment, above it where both do not fit on a line."""
    text = f"  {name}: {_scalar(value)}"
    if name not in _COMMENTS:
        return [text]
    whole = f"{text:24}  # {_COMMENTS[name]}"
    return [whole] if len(whole) <= _WIDEST else [f"  # {_COMMENTS[name]}", text]


def _scalar(value: Any) -> str:
    """A value as YAML in one line, quoted where it must be."""
    if isinstance(value, float):
        return f"{value:g}"
    text = yaml.safe_dump(value, width=10**6, allow_unicode=True, default_flow_style=True)
    return text.removesuffix("...\n").strip()
