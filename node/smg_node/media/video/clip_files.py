"""Clip files: the numbers of a checkpoint's video processor, from the file that the engine reads as well.

One file has them all: the video_processor of processor_config.json, else video_preprocessor_config.json, else
preprocessor_config.json, which old checkpoints have for pictures and clips alike. The operator's overrides go before
it, and what it does not have is the family's default.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.media.families.checkpoint.processor_files import (
    OVERRIDES,
    PREPROCESSOR,
    PROCESSOR,
    ProcessorFiles,
    ProcessorLayer,
)

VIDEO_PREPROCESSOR: Final = "video_preprocessor_config.json"
NESTED: Final = "video_processor"


class ClipFiles(ProcessorFiles):
    """Values of a checkpoint's video processor; ProcessorError for one that is not of its kind or out of bounds."""

    placeholder_names = ("video_token_id", "video_token_index")
    placeholder_note = "video_token_id"

    def layers(
        self, files: Mapping[str, bytes], overrides: Mapping[str, object]
    ) -> tuple[ProcessorLayer, ...]:
        """Return the places of values, the first one first; operators write theirs as `video_processor`."""
        own = overrides.get(NESTED)
        return (
            (OVERRIDES, own if isinstance(own, dict) else {}),
            self._file(files),
        )

    def _file(self, files: Mapping[str, bytes]) -> tuple[str, Mapping[str, Any]]:
        nested = self.processor.get(NESTED)
        if isinstance(nested, dict):
            return (PROCESSOR, nested)
        name = VIDEO_PREPROCESSOR if VIDEO_PREPROCESSOR in files else PREPROCESSOR
        return (name, self.document(files, name))
