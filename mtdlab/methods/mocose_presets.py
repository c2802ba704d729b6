"""The presets of MoCoSE, and what the paper and the published program say about each value.

Source: Cao et al., Findings of ACL 2022, and the program that its authors published.
"""

from collections.abc import Mapping
from typing import Any

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # the defaults of the settings: the paper's method at its base size. Three values follow the
    # program where the paper says otherwise or nothing: in_batch_negatives and fgsm_gradient
    # (against equations 3 and 1), and target_dropout
    "intended": {},
    # equations 1 and 3 and the schedule of the paper. Not the paper to the letter: its dot product
    # without a temperature is cosine similarity at 0.05 here, and the optimizer, which it does not
    # describe, is AdamW with a linear decay of the learning rate
    "paper": {
        "in_batch_negatives": False,
        "fgsm_gradient": "current",
        # the only schedule in the paper; the 0.85 of `intended` is the best value of its grid
        "ema_decay": 0.75,
        "ema_decay_end": 0.95,
    },
    # the authors' program in training. Not reproduced: its augmentations during evaluation, and its
    # transfer scores, which are cross-validated on training data
    "published-code": {
        "in_batch_negatives": True,
        "detach_keys": False,
        # the start is that of its example; the end and the number of calls are constants in it
        "ema_decay": 0.75,
        "ema_decay_end": 1.0,
        "ema_schedule_steps": 15_000,
        "ema_order": "before-target",
        "target_dropout": True,
        "augmented_branch": "target",
        "fgsm_gradient": "previous",
        "queue_fill": "published",
        "select_on": "sts_average",
        # from the library that trains it and from BERT's configuration
        "max_gradient_norm": 1.0,
        "weight_decay_exceptions": "biases-and-norms",
        "head_norm_eps": 1e-12,
        "head_initialisation": "bert",
        "precision": "float32",
    },
}

SOURCES: Mapping[str, str] = {
    "ema_decay": "paper: 0.85 is the best constant of table 3, its schedule starts at 0.75; "
    "program: its example starts at 0.75",
    "ema_decay_end": "paper: constant, or a cosine from 0.75 to 0.95; program: a cosine to 1",
    "ema_schedule_steps": "paper: the run's steps; program: 15,000 calls, whatever the run's "
    "length (none: the run's steps)",
    "ema_order": "paper: after the optimizer's step; program: before the next step's target pass",
    "in_batch_negatives": "paper: the queue alone (equation 3); program: also the batch's other "
    "keys",
    "temperature": "paper: not given; program: 0.05",
    "detach_keys": "paper: no gradient through the keys; program: gradients reach the shared "
    "embeddings and the target's projection",
    "target_dropout": "paper: not described; program: on",
    "augmented_branch": "paper: not described; program: the target branch",
    "fgsm_epsilon": "paper: the best value of table 9",
    "fgsm_gradient": "paper: this batch's (equation 1); program: the previous batch's, for both "
    "branches",
    "queue_size": "paper: base size",
    "initial_queue_size": "paper: base size",
    "queue_fill": "paper: K_s random keys at first, at most K; program: 2 K_s at first, more than "
    "K while it fills",
    "select_on": "paper: “validate”; program: the average of the seven test sets",
    "projection_layers": "paper: the best value of table 4",
    "prediction_layers": "paper: the best value of table 4",
    "prediction_dim": "paper: the encoder's dimension is the best value of table 6 (none: the "
    "encoder's)",
    "head_norm_eps": "paper: not described; program: BERT's configuration",
    "head_initialisation": "paper: not described; program: BERT's, and the pre-trained pooler",
    "batch_size": "paper: base size",
    "learning_rate": "paper: base size",
    "weight_decay": "paper: base size",
    "weight_decay_exceptions": "paper: not described; program: its library's",
    "max_gradient_norm": "paper: not described; program: its library's default (0: no clipping)",
    "max_length": "paper: base size",
    "evaluate_every": "paper: every 100 steps",
    "pooling": "paper: [CLS] of the last layer, before the pooler",
    "dropout": "paper: 0.1 in embeddings and encoder",
    "precision": "program: float32",
}
"""What the paper and the program say about each setting that a preset or the paper determines."""
FIXED: Mapping[str, str] = {
    "similarity: cosine": "paper: dot product; program: cosine",
    "embedding block: shared, trained, not averaged": "paper: not described; program: the same",
    "optimizer: AdamW": "paper: not described; program: the same",
    "learning rate: linear decay to 0, no warm-up": "paper: not described; program: the same",
}
"""What is the same in every preset and is not a setting."""
