"""Picture source: the files of pictures as clients sent or named them; what they are is read in threads."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from smg_node.core.generation.request import MediaPart
from smg_node.media.picture import Picture, PictureHeader


class PictureSource(Protocol):
    """Where the files of pictures come from, and what they are."""

    async def files(
        self,
        parts: Sequence[MediaPart],
        charge: Callable[[int], None],
        alike: Callable[[int, int], bool] | None = None,
        tenant: str | None = "",
    ) -> Sequence[bytes]:
        """Return the files of some parts of one request in their order, out of data URLs or fetched.

        With `alike` nothing but their sizes is wanted, and they may end where those are known; it is whether a picture
        of some width and height is the same to the caller when it is turned. Files kept of a URL are those of its
        `tenant`; for None none are kept or used.

        `charge` is told of bytes before they are kept, and what it raises ends everything. SmgError with the path of
        a part that cannot be had.
        """
        ...

    def header(self, data: bytes, where: str) -> PictureHeader:
        """Return what the file of a picture says of its size; SmgError with that path. Meant for a thread."""
        ...

    def decoded(self, data: bytes, header: PictureHeader) -> Picture:
        """Return the pixels of a picture; SmgError, perhaps without a path. Meant for a thread."""
        ...

    def digest(
        self,
        data: bytes,
        fingerprint: str,
        part: MediaPart,
        area_max: int | None = None,
        tenant: str = "",
    ) -> str:
        """Return the identity of a picture that is processed so, 64 hex digits. Meant for a thread.

        `area_max` is the largest area that it was planned with, `tenant` whose it is if others must not share it.
        """
        ...


class SentPicture(msgspec.Struct, frozen=True):
    """The file of a picture; `header` is None where nobody here has to know what it is."""

    source: PictureSource
    data: bytes
    header: PictureHeader | None

    def decoded(self) -> Picture:
        """Return its pixels; takes milliseconds, in a thread."""
        assert self.header is not None, "what is decoded has been looked at"
        return self.source.decoded(self.data, self.header)

    def url(self) -> str:
        """Return it as a data URL; takes milliseconds where it is large."""
        kind = "octet-stream" if self.header is None else self.header.format.lower()
        return f"data:image/{kind};base64,{b64encode(self.data).decode()}"
