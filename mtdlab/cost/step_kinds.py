"""Which training steps cost the same, and how the cost of the others grows."""

from mtdlab.config import TrainerSettings
from mtdlab.cost.traits import NO_STEP_COST, SCALES_STEP_COST
from mtdlab.training.inputs import Materials

Kind = tuple[tuple[str, object], ...]


def kind_of(settings: TrainerSettings) -> Kind:
    """The settings that decide the cost of a step; equal for steps that cost the same."""
    values = settings.model_dump(exclude=set(NO_STEP_COST))
    return tuple((values | {"fgsm_epsilon": settings.fgsm_epsilon > 0}).items())


def family_of(settings: TrainerSettings) -> Kind:
    """Those of them that do not scale the cost: steps of one family lie near one line."""
    return tuple(item for item in kind_of(settings) if item[0] not in SCALES_STEP_COST)


def operations(settings: TrainerSettings, materials: Materials) -> float:
    """Approximate floating point operations of a step: both branches, heads, queue."""
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
