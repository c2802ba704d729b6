"""Which training steps cost the same, and how the cost of the others grows."""

from mtdlab.settings import TrainerSettings, settings_of
from mtdlab.training.inputs import RunInputs

Kind = tuple[tuple[str, object], ...]


def kind_of(settings: TrainerSettings) -> Kind:
    """The settings that decide the cost of a step; equal for steps that cost the same."""
    found: list[tuple[str, object]] = []
    for name, setting in settings_of(type(settings)).items():
        value = getattr(settings, name)
        if setting.step_cost == "switch":
            found.append((name, value > 0))
        elif setting.step_cost != "none":
            found.append((name, value))
    return tuple(found)


def family_of(settings: TrainerSettings) -> Kind:
    """Those of them that do not scale the cost: steps of one family lie near one line."""
    known = settings_of(type(settings))
    return tuple(item for item in kind_of(settings) if known[item[0]].step_cost != "scales")


def operations(settings: TrainerSettings, inputs: RunInputs) -> float:
    """Approximate floating point operations of a step: encoder passes, heads, queue."""
    model = inputs.encoder.model
    width, table = int(model.config.hidden_size), model.get_input_embeddings().weight
    blocks = [
        weights.numel()
        for name, weights in model.named_parameters()
        if "embeddings" not in name and weights is not table
    ]
    stores = inputs.views or (inputs.tokens,)
    longest = min(settings.max_length, max(int(store.lengths.max()) for store in stores))
    sentence = longest * sum(blocks) + settings.head_operations(width)
    return 8.0 * settings.batch_size * sentence
