"""How each hyperparameter affects the cost of a trial."""

from mtdlab.config import TrainerSettings

LOADED_BY = (
    "encoder",
    "pooling",
    "corpus",
    "evaluation",
    "tasks",
    "max_length",
    "dropout",
    "device",
    "precision",
)
"""Settings that decide what a worker loads: where one changes, it loads again."""
NO_STEP_COST = (
    "ema_decay",
    "ema_decay_end",
    "ema_schedule_steps",
    "ema_order",
    "initial_queue_size",
    "temperature",
    "learning_rate",
    "weight_decay",
    "steps",
    "evaluate_every",
    "seed",
    "select_on",
    "tasks",
    "preset",
)
"""Settings that do not change the cost of a step."""
SCALES_STEP_COST = (
    "batch_size",
    "queue_size",
    "max_length",
    "projection_layers",
    "prediction_layers",
    "prediction_dim",
)
"""Settings that change the cost of a step in proportion to the operations they add."""


def encoder_copies(settings: TrainerSettings) -> int:
    """How many copies of the encoder a checkpoint holds: the online branch's, the target's."""
    return 1 if settings.method == "simcse" else 2
