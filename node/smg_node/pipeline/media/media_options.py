"""Media options: the operator's bounds of pictures, and which side works on them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Where: TypeAlias = Literal["auto", "node", "engine"]


@dataclass(frozen=True, slots=True)
class MediaOptions:
    """See the settings `media.*`.

    `where` is who works on pictures: "auto" is the node wherever it can. `low_pixels` is the largest area of a picture
    that a client wants looked at with little detail. `tenants_apart`: equal pictures of two tenants are two pictures. `inflight_bytes` bounds what all pictures under way take, `cache_bytes` what is kept of finished
    ones. `processes` of one node share that: by `shared_folder`, or a part each where there is none.
    """

    where: Where = "auto"
    image_bytes_max: int = 33_554_432
    image_pixels_max: int = 40_000_000
    low_pixels: int = 262_144
    inflight_bytes: int = 536_870_912
    cache_bytes: int = 268_435_456
    threads: int = 1
    tenants_apart: bool = False
    processes: int = 1
    shared_folder: str = ""

    @property
    def own_cache_bytes(self) -> int:
        """What one process may keep where each keeps its own."""
        return self.cache_bytes // self.processes
