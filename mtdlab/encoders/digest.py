"""A digest of an encoder: equal on two machines if its weights and its tokens are."""

import hashlib

from transformers import PreTrainedModel


def weights_digest(model: PreTrainedModel) -> str:
    """SHA-256 of a model's weights in float32, without adapters that were added to it."""
    found = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        if ".lora_" not in name:
            found.update(name.replace(".base_layer", "").encode())
            found.update(value.float().cpu().numpy().tobytes())
    return found.hexdigest()
