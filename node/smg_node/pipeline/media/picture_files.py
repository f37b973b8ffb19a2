"""Picture files: data URLs and fetched files of pictures, and what is read from them; see `picture_source`."""

from collections.abc import Awaitable, Callable

from smg_node.core.generation.request import MediaPart
from smg_node.media.picture import Picture, PictureHeader
from smg_node.media.pixels.decode import DecodeLimits, decode, read_header
from smg_node.media.pixels.identity import picture_digest
from smg_node.pipeline.media.media_options import MediaOptions


class PictureFiles:
    """The files of pictures as they come from clients: inside the request, or by a URL that this node fetches."""

    def __init__(
        self,
        options: Callable[[], MediaOptions],
        file: Callable[[MediaPart], Awaitable[bytes]],
    ) -> None:
        self._options = options
        self._file = file

    async def file(self, part: MediaPart) -> bytes:
        """See `PictureSource`."""
        return await self._file(part)

    def header(self, data: bytes, where: str) -> PictureHeader:
        """See `PictureSource`."""
        return read_header(data, DecodeLimits(self._options().image_pixels_max), where)

    def decoded(self, data: bytes, header: PictureHeader) -> Picture:
        """See `PictureSource`."""
        return decode(data, header, None)

    def digest(self, data: bytes, fingerprint: str, part: MediaPart) -> str:
        """See `PictureSource`."""
        return picture_digest(data, fingerprint=fingerprint, detail=part.detail, uuid=part.uuid)
