"""Media options: the operator's bounds of pictures, videos and sound, and which side works on them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from smg_node.core.generation.request import MediaKind

Where: TypeAlias = Literal["auto", "node", "engine"]
ClipUrls: TypeAlias = Literal["fetched", "handed_on"]


@dataclass(frozen=True, slots=True)
class MediaOptions:
    """See the settings `media.*`.

    `where` is who works on media: "auto" is the node wherever it can. `clip_urls` is what becomes of the URLs of videos
    and sound. `low_pixels` is the largest area of a picture that a client wants looked at with little detail.
    `tenants_apart`: equal pictures of two tenants are two pictures. `inflight_bytes` bounds what all media under way
    take, `cache_bytes` what is kept of finished pictures. `processes` of one node share that: by `shared_folder`, or a
    part each where there is none.
    """

    where: Where = "auto"
    clip_urls: ClipUrls = "fetched"
    image_bytes_max: int = 33_554_432
    video_bytes_max: int = 134_217_728
    audio_bytes_max: int = 26_214_400
    image_pixels_max: int = 40_000_000
    low_pixels: int = 262_144
    inflight_bytes: int = 536_870_912
    cache_bytes: int = 268_435_456
    threads: int = 1
    tenants_apart: bool = False
    processes: int = 1
    shared_folder: str = ""
    video_pixels_max: int = 8_000_000_000
    video_seconds_max: int = 60
    video_memory_bytes: int = 1_073_741_824
    video_processes: int = 2

    @property
    def own_cache_bytes(self) -> int:
        """What one process may keep where each keeps its own."""
        return self.cache_bytes // self.processes

    def bytes_max(self, kind: MediaKind) -> int:
        """Return how many bytes the file of a medium of that kind may have."""
        if kind == "video":
            return self.video_bytes_max
        return self.audio_bytes_max if kind == "audio" else self.image_bytes_max

    def hands_on(self, kind: MediaKind) -> bool:
        """Whether engines are handed the URLs of that kind, where they fetch such."""
        return self.where == "engine" or (
            self.clip_urls == "handed_on" and kind in ("video", "audio")
        )
