"""Model files, read: tokenizer, encoder, renderer and answer formats that were made from them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smg_node.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    # Imported with the first model, see `assembly`; here they are only names of types.
    from smg_node.fleet.models.format_recognition import Recognition
    from smg_node.parsers.selection.model_formats import Printing
    from smg_node.prompts.renderer import Renderer
    from smg_node.tokens.caches.cached_encoder import CachedEncoder


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What became of a model's files; see `ServedModel`."""

    tokenizer: Tokenizer
    encoder: "CachedEncoder"
    renderer: "Renderer | None"
    recognition: "Recognition"
    printing: "Printing"
    why_no_template: str
    faster: Callable[[], Callable[[], None]] | None = None
    """Makes the encoder faster, see `ModelParts.faster`; None where it is as fast as it can be."""
