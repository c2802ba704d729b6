"""Which steps cost the same, and how the cost of the others grows."""

from mtdlab.config import TrainerSettings
from mtdlab.training.inputs import RunInputs

FREE = (
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
"""Settings that leave the cost of a step as it is."""
NUMBERS = (
    "batch_size",
    "queue_size",
    "max_length",
    "projection_layers",
    "prediction_layers",
    "prediction_dim",
)
"""Settings that change it in proportion to the operations they bring."""
Kind = tuple[tuple[str, object], ...]


def kind_of(settings: TrainerSettings) -> Kind:
    """What decides the cost of a step, equal for steps that cost the same."""
    values = settings.model_dump(exclude=set(FREE))
    return tuple((values | {"fgsm_epsilon": settings.fgsm_epsilon > 0}).items())


def family_of(settings: TrainerSettings) -> Kind:
    """What decides it beside numbers."""
    return tuple(item for item in kind_of(settings) if item[0] not in NUMBERS)


def operations(settings: TrainerSettings, materials: RunInputs) -> float:
    """Floating point operations of a step, roughly: both branches, heads, queue."""
    width = int(materials.encoder.model.config.hidden_size)
    blocks = [
        weights.numel()
        for name, weights in materials.encoder.model.named_parameters()
        if "embeddings" not in name
    ]
    longest = min(settings.max_length, int(materials.tokens.lengths.max()))
    head = (1 + settings.projection_layers) * width**2
    head += settings.prediction_layers * width * (settings.prediction_dim or width)
    sentence = longest * sum(blocks) + head + settings.queue_size * width
    return 8.0 * settings.batch_size * sentence
