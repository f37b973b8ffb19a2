"""Seeing models: whether a checkpoint's config.json is that of a model that takes pictures; pure, and costs nothing.

Asked of every model that is loaded, so that nothing else of this room is loaded for those that read text only.
"""

from collections.abc import Mapping
from typing import Any, Final

_KEYS: Final = (
    "vision_config",
    "image_token_id",
    "image_token_index",
    "img_processor",
    "mm_vision_tower",
    "embd_layer",  # Phi-4-multimodal
)
"""Keys that only models with eyes have."""


def sees(config: Mapping[str, Any]) -> bool:
    """Return whether the model takes pictures, by the decoded config.json."""
    return any(config.get(key) is not None for key in _KEYS)
