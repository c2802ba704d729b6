"""The model card of a saved encoder: what it is, how it was made, how to open it."""

from collections.abc import Mapping
from typing import Any

_FACTS = ("corpus", "encoder", "evaluation", "device", "versions", "study", "trial", "file")

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

{negatives} The
checkpoint is that of step {best_step}, the best of {steps} on the {select_on} pairs.

## Use

```python
{use}
```

## Scores

Spearman x 100 of cosine similarity; {pooling} pooling.

{scores}

## How it was made

{facts}

Method: {source} as mtdlab has it, preset {preset}.

{settings}

`mtdlab/` holds {holds} of that step, and the run as JSON.
"""

_METHODS = {
    "mocose": {
        "holds": "the projection and prediction heads, the target branch and the queue",
        "title": "momentum contrast",
        "source": "MoCoSE (Cao et al., Findings of ACL 2022)",
        "negatives": """\
Its negatives came from a queue of {queue_size} keys of an averaged encoder (EMA decay
{ema_decay}), in batches of {batch_size}: a maximum traceable distance of {mtd:.2f} steps.""",
    },
    "simcse": {
        "holds": "the head",
        "title": "contrast within the batch",
        "source": "SimCSE (Gao et al., EMNLP 2021)",
        "negatives": "Its negatives were the other sentences of a batch of {batch_size}.",
    },
}

_SENTENCE_TRANSFORMER = """\
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("this folder").encode(["A sentence.", "Another one."])"""

_OTHER = """\
from mtdlab.encoders.encoder import load_encoder

# SentenceTransformer has no {pooling} pooling
encoder = load_encoder("this folder", dropout=0.1)"""


def model_card(run: Mapping[str, Any]) -> str:
    """The card as Markdown, of what `run.json` holds."""
    settings = run["settings"]
    known = settings["pooling"] in ("cls", "mean")
    told = {"preset": "none"} | settings | {"mtd": run["mtd"], "best_step": run["best_step"]}
    method = {name: text.format(**told) for name, text in _METHODS[settings["method"]].items()}
    return _CARD.format(
        **told,
        **method,
        use=_SENTENCE_TRANSFORMER if known else _OTHER.format(pooling=settings["pooling"]),
        scores=_table("task", "score", {k: f"{v:.2f}" for k, v in run["scores"].items()}),
        facts=_table("", "", {name: run[name] for name in _FACTS if name in run}),
        settings=_table("setting", "value", settings),
    )


def _table(left: str, right: str, rows: Mapping[str, Any]) -> str:
    lines = [f"| {left} | {right} |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {_cell(value)} |" for name, value in rows.items())])


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
