"""The model card of a saved encoder: description, training, usage."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mtdlab.methods.registry import find_method
from mtdlab.settings import Pooling, Representation, TrainerSettings
from mtdlab.settings.representation import describe
from mtdlab.settings.tasks import DEV

_FACTS = (
    "corpus",
    "encoder",
    "evaluation",
    "device",
    "versions",
    "study",
    "trial",
    "chosen",
    "file",
)

SENTENCE_TRANSFORMER_POOLING: dict[Pooling, str] = {
    "cls": "cls_token",
    "mean": "mean_tokens",
    "last-token": "lasttoken",
}
"""The poolings that SentenceTransformer has too, and its names of them."""

_CARD = """\
---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-similarity
- feature-extraction
- mtdlab
---

# A sentence encoder trained by {title}

{text} The
checkpoint is that of step {best_step}, the best of {steps} on {selection}.

## Use

```python
{use}
```

`pooler_output` of `AutoModel`, where there is one, is not the sentence embedding: training neither
used nor changed the encoder's pooler.

## Scores

Spearman x 100 of cosine similarity; {representation}.{no_gain}

{scores}

## How it was made

{facts}

Method: {source}, as implemented in mtdlab{preset}.

{settings}

`mtdlab/` contains the other parts of this checkpoint ({saved}) and a description of the run
(`run.json`).
"""

_SENTENCE_TRANSFORMER = """\
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("this folder").encode(["A sentence.", "Another one."])"""

_OTHER = """\
import mtdlab

# SentenceTransformer opens this folder too, but its vectors are others: the scores below need
# {representation}
vectors = mtdlab.load_encoder("this folder").encode(["A sentence.", "Another one."])"""


@dataclass(frozen=True)
class MethodText:
    """The parts of a card that depend on the method.

    title   completes "A sentence encoder trained by"; source: the method's name and paper.
    text    sentences on the source of the negatives.
    """

    title: str
    source: str
    text: str


def method_text(settings: TrainerSettings) -> MethodText:
    """The method's parts of the card."""
    method = find_method(settings.method)
    return MethodText(method.title, f"{method.title} ({method.source})", method.describe(settings))


def model_card(run: Mapping[str, Any], method: MethodText, saved: Iterable[str]) -> str:
    """The card as Markdown. run: content of `run.json`; saved: names of the other saved parts."""
    settings = run["settings"]
    preset = settings.get("preset")
    representation = Representation.of(settings)
    known = representation in map(Representation, SENTENCE_TRANSFORMER_POOLING)
    return _CARD.format(
        **vars(method),
        steps=settings["steps"],
        selection=_selection(settings["select_on"]),
        representation=describe(representation),
        preset=f", preset {preset}" if preset else "",
        saved=", ".join(saved),
        best_step=run["best_step"],
        use=_SENTENCE_TRANSFORMER
        if known
        else _OTHER.format(representation=describe(representation)),
        scores=_score_table(run["scores"], run["scores_before"]),
        no_gain=_describe_no_gain(run["scores"], run["scores_before"]),
        facts=_table("", "", {name: run[name] for name in _FACTS if name in run}),
        settings=_table("setting", "value", settings),
    )


def _score_table(after: Mapping[str, float], before: Mapping[str, float]) -> str:
    rows = [
        f"| {task} | {f'{before[task]:.2f}' if task in before else '–'} | {score:.2f} |"
        for task, score in after.items()
    ]
    return "\n".join(["| task | before training | score |", "|---|---|---|", *rows])


def _describe_no_gain(after: Mapping[str, float], before: Mapping[str, float]) -> str:
    """That training did not raise the score on some tasks; empty where it raised all."""
    tasks = [task for task, score in after.items() if score <= before.get(task, -math.inf)]
    if not tasks:
        return ""
    return f" Training did not raise the score on {', '.join(tasks)} above the untrained encoder's."


def _selection(select_on: str) -> str:
    average = "the average of the STS test sets"
    if select_on.endswith(DEV):
        return f"the dev data of {select_on.removesuffix(DEV)}"
    return average if select_on == "sts_average" else f"the {select_on} pairs"


def _table(left: str, right: str, rows: Mapping[str, Any]) -> str:
    lines = [f"| {left} | {right} |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {_cell(value)} |" for name, value in rows.items())])


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
