"""Part limits: counts the content parts and media of one request against their maximum."""

from dataclasses import dataclass, field

from smg_node.core.generation.request import MediaKind
from smg_node.dialects.options import ReaderOptions


@dataclass(slots=True)
class PartCounter:
    """Counts the parts of one request against the limits."""

    options: ReaderOptions
    parts: int = 0
    media: dict[str, int] = field(default_factory=dict)

    def limit(self, kind: MediaKind) -> int:
        """Return the maximum of a kind in one request."""
        options = self.options
        limits = {
            "image": options.images_max,
            "audio": options.audios_max,
            "video": options.videos_max,
            "file": options.parts_max,
        }
        return limits[kind]
