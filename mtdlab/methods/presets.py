"""The presets of every built-in method.

`intended` is the default of each method. `published-code` has the values of the program that the
authors published, in training and, but for ConSERT and SNCSE, in the choice of the checkpoint;
precision, random draws, data and the number of steps are not part of it. `paper` is there where
paper and program contradict each other in a setting (`tests/docs/paper_and_program.csv`). HiCL has
the presets of its backbone.

This module imports no torch: a study file is read without it.
"""

from collections.abc import Mapping

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
