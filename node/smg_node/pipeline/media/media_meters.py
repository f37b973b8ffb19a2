"""Media meters: what is counted of pictures, videos and sound, on the loop."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Literal, TypeAlias

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaKind
from smg_node.pipeline.media.media_ways import Way
from smg_node.telemetry.metrics.cells import Cells
from smg_node.telemetry.metrics.declared import media as declared

Stage: TypeAlias = Literal["fetch", "plan", "decode", "patches", "finish"]
Kept: TypeAlias = Literal["hit", "shared", "miss"]


class MediaMeters:
    """Counts into the cells of one process."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._refusals = _Refusals(cells)

    def got(self, kind: MediaKind, *, fetched: bool, size: int) -> None:
        """Count the file of a medium, of `size` bytes."""
        self._cells.tally(declared.MEDIA_BYTES, kind, "url" if fetched else "data").inc(size)

    def took(self, stage: Stage, seconds: float) -> None:
        """Observe how long a stage took."""
        self._cells.spread(declared.MEDIA_SECONDS, stage).observe(seconds)

    def looked(self, outcome: Kept) -> None:
        """Count a picture by whether its patches were kept."""
        self._cells.tally(declared.MEDIA_CACHE, outcome).inc()

    def handed(self, way: Way, counts: Mapping[MediaKind, int]) -> None:
        """Count the media of each kind that an engine is handed."""
        for kind, count in counts.items():
            self._cells.tally(declared.MEDIA_ITEMS, kind, way).inc(count)

    def refusals(self) -> AbstractContextManager[None]:
        """Count an SmgError that ends the block, and pass it on."""
        return self._refusals


class _Refusals(AbstractContextManager[None]):
    """Counts the errors that end its blocks; it has no state, so that every block has the same."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, SmgError):
            self._cells.tally(declared.MEDIA_REFUSALS, error.code).inc()

    def __enter__(self) -> None:
        return None
