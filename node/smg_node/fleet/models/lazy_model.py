"""Lazy model: a model's files kept compressed until a request needs its tokenizer and template.

A control process of a node of several serves few requests itself, and often none: a tokenizer's tables, 150 MB for a
vocabulary of 150,000, would lie there for nothing. What it has to know of a model otherwise, its data processes found out.
Packed, the files of such a vocabulary are 2 MB, so that reading them later depends on neither disk nor engine.
"""

import asyncio
import zlib
from typing import Any, Final, cast

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.models.load_result import Finding
from smg_node.fleet.models.model_files import ModelFiles

_LEVEL: Final = 1
"""The fastest: 0.1 s for 11 MB, and a fifth of the size."""


class LazyModel:
    """One per model that has not been read. Made in a thread, used on the loop."""

    def __init__(self, bundle: TokenizerBundle) -> None:
        self._digest: Final = bundle.digest
        self._origin: Final = bundle.origin
        self._files: Final = {
            name: zlib.compress(content, _LEVEL) for name, content in bundle.files.items()
        }
        self.finding: Finding | None = None
        """What a process found that has read these very files."""
        self.under_way: asyncio.Future[ModelFiles] | None = None
        """Reads them now; done soon after."""

    def bundle(self) -> TokenizerBundle:
        """Return the files as they came; takes 50 ms for large ones."""
        files = {name: zlib.decompress(packed) for name, packed in self._files.items()}
        return TokenizerBundle(files, self._digest, self._origin)

    def reading(self) -> ModelFiles:
        """Return a placeholder for the parts: using it too early raises an AttributeError."""
        none_yet = cast("Any", self)
        return ModelFiles(
            none_yet, none_yet, None, none_yet, none_yet, "its files were not read yet"
        )
