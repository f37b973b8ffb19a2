"""Plain pictures: a family and a source of pictures without pixels, for tests of what is around them.

The "file" of a picture is `WIDTHxHEIGHT:anything`; its patches are the bytes of the file as one row. A file that ends
in `!` cannot be decoded.
"""

import threading
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Literal

import numpy as np

from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.request import MediaPart
from smg_node.media.engine_media import MediaRange, Tensor, TensorBatch
from smg_node.media.family import ContentOrder, FinishedFor, PictureLayout, PicturePlan, TokenLookup
from smg_node.media.picture import Picture, PictureHeader
from smg_node.media.pixels.patch_cache import PatchCache
from smg_node.pipeline.media.making.clip_works import ClipWorks
from smg_node.telemetry.metrics.cells import Cells
from smg_node.telemetry.metrics.declared.media import MEDIA_METRICS

PLACE = 7
"""The id that stands for the place of a feature."""


class PlainSource:
    """Files by URL; counts what was asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.held = files
        self.got: list[str] = []
        self.looked: list[str] = []
        """What was only looked at, to be handed on."""
        self.decodes = 0
        self.gate = threading.Event()
        self.gate.set()
        """Decoding waits for it."""

    async def files(
        self,
        parts: Sequence[MediaPart],
        charge: Callable[[int], None],
        alike: Callable[[int, int], bool] | None = None,
        tenant: str | None = "",
    ) -> Sequence[bytes]:
        found = []
        for part in parts:
            self.got.append(part.source)
            data = self.held.get(part.source)
            if data is None:
                raise invalid("the file cannot be had", part.where, code="media_unavailable")
            charge(len(data))
            found.append(data)
        return found

    async def check_clip(self, part: MediaPart) -> int:
        self.looked.append(part.source)
        if part.source.endswith("!"):
            raise invalid("it is broken", part.where)
        return len(part.source)

    async def check_handed_on(self, parts: Sequence[MediaPart]) -> None:
        for part in parts:
            self.looked.append(part.source)
            if "private" in part.source:
                raise invalid("its host is private", part.where, code="media_forbidden")

    def header(self, data: bytes, where: str) -> PictureHeader:
        try:
            width, height = data.partition(b":")[0].split(b"x")
            return PictureHeader(int(width), int(height), "PNG")
        except ValueError:
            raise invalid("this is no picture", where, code="invalid_image") from None

    def decoded(self, data: bytes, header: PictureHeader) -> Picture:
        assert self.gate.wait(10)
        self.decodes += 1
        if data.endswith(b"!"):
            raise invalid("the picture is cut off", code="invalid_image")
        return Picture(data)  # type: ignore[arg-type]  # whose pixels nobody looks at

    def digest(
        self,
        data: bytes,
        fingerprint: str,
        part: MediaPart,
        area_max: int | None = None,
        tenant: str = "",
    ) -> str:
        words = (fingerprint, part.detail, str(area_max), part.uuid, tenant)
        said = b"\0".join((data, *(word.encode() for word in words)))
        return sha256(said).hexdigest()


class PlainFamily:
    """A place for each ten (or other) `pixels` of width; pictures of several heights cannot be one tensor."""

    modality: Literal["image"] = "image"
    name = "plain"
    anchor = chr(PLACE)
    placeholder = PLACE
    order: ContentOrder = "as_sent"

    def __init__(self, fingerprint: str = "plain-1", pixels: int = 10) -> None:
        self.fingerprint = fingerprint
        self.pixels = pixels
        self.finished: list[FinishedFor] = []

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        if not width or not height:
            raise invalid("a picture has at least one pixel", code="invalid_image")
        if area_max is not None and width * height > area_max:
            width = max(1, area_max // height)
        tokens = max(1, width // self.pixels)
        # It has no pixels, so nothing is resized.
        return PicturePlan(width, height, 1, 1, tokens, (1, width * height), (1, 1, tokens))

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        return PictureLayout([PLACE] * plan.tokens)

    def patches(self, picture: Picture, plan: PicturePlan) -> Any:
        return np.frombuffer(picture.pixels, dtype=np.uint8).copy()

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: Sequence[Any],
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        self.finished.append(wanted)
        if len({plan.height for plan in plans}) > 1:
            return None
        pieces = tuple(each.tobytes() for each in patches)
        dtype = "uint8" if wanted.device_normalizes else wanted.dtype
        pixels = Tensor((sum(map(len, pieces)),), dtype, pieces)
        return TensorBatch("image", "pixel_values", pixels, {}, {}, (), (), PLACE, tuple(ranges))


class Kept:
    """A cache of patches, and cells for what is counted beside it."""

    def __init__(self) -> None:
        self.cache = PatchCache(1 << 20)
        self.cells = Cells(MEDIA_METRICS, before=lambda: None)


def no_clips() -> ClipWorks:
    """Fail: nobody works on videos here."""
    raise AssertionError("no video was to be made into tensors")


def refusal(error: SmgError) -> tuple[int, str, str | None]:
    """Return status, code and path of an error."""
    return error.status, error.code, error.where
