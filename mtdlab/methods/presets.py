"""The presets of every built-in method, and what its paper and its program say.

`intended` is the default of each method. `published-code` has the values of the program that the
authors published, in training and, but for ConSERT and SNCSE, in the choice of the checkpoint;
precision, random draws, data and the number of steps are not part of it. `paper` is there where
paper and program contradict each other in a setting. HiCL has the presets of its backbone.

This module imports no torch: a study file is read without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mtdlab.settings.trainer import INTENDED, Multiple, Preset

PAPER, PUBLISHED = "paper", "published-code"

_SIMCSE: Preset = {
    "weight_decay": 0.0,
    "max_gradient_norm": 1.0,
    "adam_formula": "transformers",
    "head_initialisation": "normal",
}
"""The program of SimCSE, from which those of ESimCSE, MixCSE and SNCSE are derived."""

PRESETS: Mapping[str, Mapping[str, Preset]] = {
    "mocose": {
        # the paper's method at its base size. Three values follow the program where the paper says
        # otherwise or nothing: in_batch_negatives and fgsm_gradient (against equations 3 and 1),
        # and target_dropout
        INTENDED: {"initial_queue_size": Multiple(1, "queue_size", most=128)},
        # equations 1 and 3 and the schedule of the paper. Not the paper to the letter: its dot
        # product without a temperature is cosine similarity at 0.05 here, and the optimizer, which
        # it does not describe, is AdamW with a linear decay of the learning rate
        PAPER: {
            "in_batch_negatives": False,
            "fgsm_gradient": "current",
            # the only schedule in the paper; the 0.85 of `intended` is the best value of its grid
            "ema_decay": 0.75,
            "ema_decay_end": 0.95,
        },
        PUBLISHED: {
            # its example, a notebook
            "batch_size": 256,
            "queue_size": Multiple(1, "batch_size"),
            "evaluate_every": 175,
            "ema_decay": 0.75,
            # constants in it
            "ema_decay_end": 1.0,
            "ema_schedule_steps": 15_000,
            "in_batch_negatives": True,
            "detach_keys": False,
            "ema_order": "before-target",
            "target_dropout": True,
            "augmented_branch": "target",
            "augmentation_draw": "published-code",
            "fgsm_gradient": "previous",
            "queue_fill": "published",
            "select_on": "sts_average",
            # from the library that trains it and from BERT's configuration
            "adam_formula": "transformers",
            "max_gradient_norm": 1.0,
            "weight_decay_exceptions": "biases-and-norms",
            "head_norm_eps": 1e-12,
            "head_initialisation": "bert",
        },
    },
    "simcse": {INTENDED: {}, PUBLISHED: _SIMCSE},
    "esimcse": {
        INTENDED: {"queue_size": Multiple(2.5, "batch_size")},
        PAPER: {"repetition_draw": "paper", "target_initialisation": "copy"},
        PUBLISHED: {
            **_SIMCSE,
            "repetition_draw": "published-code",
            "target_initialisation": "random",
        },
    },
    "mixcse": {
        INTENDED: {},
        PAPER: {"mixing": "paper", "mixing_weight": 0.2},
        PUBLISHED: {
            **_SIMCSE,
            "mixing": "published-code",
            "mixing_weight": 0.2,
            "select_with_head": True,
        },
    },
    "sncse": {INTENDED: {}, PUBLISHED: {**_SIMCSE, "contracted_not": "kept"}},
    "consert": {
        INTENDED: {},
        PAPER: {"training_pooling": "same"},
        PUBLISHED: {
            "training_pooling": "mean",
            "rescaled_dropout": False,
            # its 0.15 weights the sum of two means over N, the loss here is the mean over 2N
            "loss_weight": 0.3,
            # 64 and three for special tokens
            "max_length": 67,
            "warmup_steps": Multiple(0.1, "steps", up=True),
            "weight_decay": 0.01,
            "weight_decay_exceptions": "biases-and-norms",
            "max_gradient_norm": 1.0,
            "adam_epsilon": 1e-6,
            "adam_bias_correction": False,
            "adam_formula": "transformers",
        },
    },
    "contriever": {
        INTENDED: {
            "queue_size": Multiple(64, "batch_size"),
            "initial_queue_size": Multiple(1, "queue_size"),
            "warmup_steps": Multiple(0.04, "steps"),
        },
        PUBLISHED: {
            "select_on": "last",
            # 256 and the two special tokens of BERT
            "max_length": 258,
            "target_dropout": True,
            "adam_beta2": 0.98,
            "adam_epsilon": 1e-6,
            "weight_decay": 0.01,
        },
    },
}


@dataclass(frozen=True)
class Said:
    """The paper and the program on a setting, or on a point that is no setting.

    Attributes:
        here: what mtdlab does at a point that is no setting.
        effect: of the program's value in place of the default, where it was measured: on the
            built-in data, score in points with its standard error over 3 to 4 seeds.
    """

    paper: str
    program: str
    here: str = ""
    effect: str = ""


def _parse(table: str) -> dict[str, Said]:
    rows = (line.split("|") for line in table.replace("\n    ", " ").splitlines())
    return {name.strip(): Said(*(cell.strip() for cell in cells)) for name, *cells in rows}


# name | paper | program | here | effect
_LIBRARY = """\
adam_formula | – | AdamW of transformers 4
max_gradient_norm | – | 1, its library's default
weight_decay | – | 0, its library's default
head_initialisation | – | normal (0, 0.02), biases 0
"""
_FLOAT16 = "precision: not part of a preset | – | float16 | `precision`\n"
_FLOAT32 = _FLOAT16.replace("float16", "float32")
_TABLES = {
    "mocose": """\
batch_size | 64, base size | 256 in its example
queue_size | 512, base size | 256 in its example: K/N is 1 instead of 8
initial_queue_size | 128, base size | 128
queue_fill | K_s random keys at first, at most K | 2 K_s at first, and more than K while it fills (K
    512, K_s 128, N 64: 256, 320, 384, 448, 768, 832, 896, 512, …)
evaluate_every | 100 | 175 in its example
select_on | “validate” | the average of the seven test sets
ema_decay | 0.85 is the best constant of table 3; its schedule starts at 0.75 | 0.75 in its example
ema_decay_end | constant, or a cosine from 0.75 to 0.95 | a cosine to 1
ema_schedule_steps | the run's steps | 15,000 calls, whatever the run's length
ema_order | after the optimizer's step | before the next step's target pass
in_batch_negatives | the queue alone (equation 3) | also the batch's other keys
detach_keys | no gradient through the keys | gradients reach the shared embeddings and the target's
    projection
target_dropout | – | on
augmented_branch | – | the target branch
augmentation_draw | – | cut-offs and shuffle include [CLS] and padding; at least one is cut; one
    permutation of positions a batch | | in table 5 alone
fgsm_epsilon | 5e-9, the best of table 9 | 5e-9
fgsm_gradient | this batch's (equation 1) | the previous batch's, added to both branches
temperature | – | 0.05
projection_layers | 1, the best of table 4 | 1
prediction_layers | 2, the best of table 4 | 2
prediction_dim | the encoder's, the best of table 6 | the encoder's
head_norm_eps | – | BERT's configuration
head_initialisation | – | normal (0, 0.02), biases 0, the pre-trained pooler
learning_rate | 3e-5 | 3e-5
weight_decay | 1e-6 | 1e-6
weight_decay_exceptions | – | its library's
max_gradient_norm | – | 1, its library's default
adam_formula | – | AdamW of transformers 4.11 | | loss 5e-4, weights 3.5 % after 24 steps
max_length | 32 | 32
pooling | [CLS] of the last layer, before the pooler | the same
dropout | 0.1 in embeddings and encoder | 0.1
similarity | dot product | cosine | cosine
embedding block | – | shared by both branches, trained, not averaged | the same
learning rate | – | linear decay to 0, no warm-up | the same
augmentation during evaluation | – | on | off | not measured
transfer scores | accuracy | cross-validated on training data | test accuracy
precision: not part of a preset | – | float32 | `precision`
""",
    "simcse": _LIBRARY
    + _FLOAT16
    + """\
batch_size | 64 | 64
learning_rate | 3e-5 | 3e-5
temperature | 0.05 | 0.05
max_length | 32 | 32
evaluate_every | 125 | 125
""",
    "esimcse": _LIBRARY
    + _FLOAT16
    + """\
repetition_draw | 0 to max(2, ⌊rate n⌋), n a sentence's own sub-words | 0 to min(10, ⌊rate n⌋) − 1,
    n with [CLS] and [SEP]
target_initialisation | a copy of the encoder | random weights, drawn after the copy | | +0.5 ± 1.2
ema_decay | 0.995 | 0.995
queue_size | 2.5 N | 2.5 N
time of the repetitions | – | once for the corpus, before training | at every step | not measured
rest of the oldest batch in the queue | – | its last sentences | its first ones; their order is
    random | none expected
""",
    "mixcse": _LIBRARY
    + _FLOAT32
    + """\
mixing | one mixture of normalised vectors a sentence | those of all sentences, in both directions,
    not normalised
mixing_weight | 0.2 | 0.2 since June 2022, 0.6 before
select_with_head | – | checkpoints are chosen with the head, scored without
the other sentence of a mixture | a random one | the next of the batch | the next of the batch,
    whose order is random
""",
    "sncse": _LIBRARY
    + _FLOAT32
    + """\
contracted_not | – | “n't” is no negation: a sentence with one gets a `not` more
batch_size | 256 | 256
learning_rate | 1e-5 | 1e-5
margin_weight | 1e-3 (BERT) | 1e-3; 5e-4 for RoBERTa
verb that is negated | by a dependency parser | the same | by the forms of words | negations of 78 %
    of 4,000 sentences are the same, 69 % with the full stop
full stop | – | appended to sentences without punctuation at their end, in training and evaluation;
    negations of such sentences begin with `Not` whatever their verb | not appended | not measured
""",
    "consert": """\
training_pooling | mean of the last two layers | mean of the last layer; scores are of the last two
    | | −2.6 ± 0.3
adam_formula | – | AdamW of transformers 3 | | −0.6 ± 2.0, with the rest of the optimizer, at a
    `loss_weight` of 0.15
adam_bias_correction | – | none | | with `adam_formula`
adam_epsilon | – | 1e-6 | | with `adam_formula`
weight_decay | – | 0.01 | | with `adam_formula`
weight_decay_exceptions | – | biases and LayerNorms | | with `adam_formula`
max_gradient_norm | – | 1 | | with `adam_formula`
warmup_steps | – | 10 % of the steps, rounded up | | with `adam_formula`
loss_weight | – | 0.15 of the sum of two directions, each a mean over N: 0.3 of the mean over 2N | |
    with `adam_formula`
rescaled_dropout | – | no, in the perturbation `dropout` | | none at the default perturbations
first_perturbation | feature cut-off 0.2 | the same
second_perturbation | token shuffle | the same
dropout | 0 | 0
temperature | 0.1 | 0.1
batch_size | 96 | 96
learning_rate | 5e-7 | 5e-7
max_length | 64 | 64, and three for special tokens
evaluate_every | 200 | 200, and the end of each epoch
[CLS] in the shuffle | moved | moved | keeps its position, so that every pooling can be used | not
    measured
pooling of the checkpoint's choice | – | mean of the last layer | that of scores, `pooling` | not
    measured
last batch of an epoch | – | what is left over is a smaller batch | what is left over is left out |
    not measured
""",
    "contriever": """\
target_dropout | – | on: the program sets the keys' encoder to evaluation mode only where it is in
    it already | | −1.2 ± 1.2; mean loss 2.439 with dropout, 2.469 without
adam_beta2 | – | 0.98
adam_epsilon | – | 1e-6
weight_decay | – | 0.01
ema_decay | 0.9995 | 0.9995
queue_size | 131,072 | 131,072
batch_size | 2,048 | 64 on each of 32 GPUs
learning_rate | 5e-5 | 5e-5
warmup_steps | 20,000 of 500,000 | 20,000 of 500,000
select_on | – | the last checkpoint is taken
max_length | 256 | 256 without special tokens: 258
document | 256 tokens | 256 tokens of the whole text; an incomplete one is left out | whole lines,
    joined to at most `max_length` tokens | not measured
order of documents | – | drawn with replacement | a permutation each epoch | not measured
""",
}
SAID: Mapping[str, Mapping[str, Said]] = {name: _parse(table) for name, table in _TABLES.items()}
"""Every setting that a preset changes, and each known difference that is no setting."""
