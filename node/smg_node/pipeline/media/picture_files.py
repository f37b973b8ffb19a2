"""Picture files: data URLs and fetched files of media, and what is read from them; see `picture_source`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final, Protocol

from smg_node.core.cooperative_steps import REST_S
from smg_node.core.generation.request import MediaPart
from smg_node.media.clips import check_clip
from smg_node.media.picture import Picture, PictureHeader
from smg_node.media.pixels.beginnings import size_is_known
from smg_node.media.pixels.decode import DecodeLimits, decode, read_header
from smg_node.media.pixels.identity import picture_digest
from smg_node.media.sources import InlineSource, decoded, source_of
from smg_node.pipeline.media.media_options import MediaOptions

QUICK_BYTES: Final = 196_608
"""Of files that are decoded at once: it takes 0.2 ms, twice what handing them to a thread does."""
_REST: Final = partial(time.sleep, REST_S)


class Fetches(Protocol):
    """What fetches files of clients' URLs; see `media.fetch.fetcher`."""

    async def fetch(
        self,
        parts: Sequence[MediaPart],
        charge: Callable[[int], None],
        enough: Callable[[bytes], Awaitable[bool]] | None = None,
        tenant: str | None = "",
    ) -> list[bytes]:
        """Return the files of parts in their order, of each no more than is `enough`; those kept are of that tenant,
        for None none are.
        """
        ...

    async def check(self, parts: Sequence[MediaPart]) -> None:
        """Return if the URLs of parts might be fetched now."""
        ...


class PictureFiles:
    """The files of media as they come from clients: inside the request, or by a URL that this node fetches."""

    def __init__(
        self,
        options: Callable[[], MediaOptions],
        fetcher: Callable[[], Fetches],
        threads: Executor,
    ) -> None:
        """`fetcher` returns what fetches, made at its first call."""
        self._options = options
        self._fetcher = fetcher
        self._threads = threads

    async def files(
        self,
        parts: Sequence[MediaPart],
        charge: Callable[[int], None],
        alike: Callable[[int, int], bool] | None = None,
        tenant: str | None = "",
    ) -> Sequence[bytes]:
        """See `PictureSource`; all addresses are looked at before anything is fetched."""
        options = self._options()
        sources = [source_of(part, bytes_max=options.bytes_max(part.kind)) for part in parts]
        found: dict[int, bytes] = {}
        remote, inline = [], 0
        for at, (part, source) in enumerate(zip(parts, sources, strict=True)):
            if isinstance(source, InlineSource):
                charge(source.size)
                inline += source.size
            else:
                remote.append((at, part))
        loop = asyncio.get_running_loop()
        quick = inline <= QUICK_BYTES
        for at, (part, source) in enumerate(zip(parts, sources, strict=True)):
            if not isinstance(source, InlineSource):
                continue
            if quick:
                found[at] = decoded(source, part)
            else:
                found[at] = await loop.run_in_executor(self._threads, decoded, source, part, _REST)
        if remote:
            enough = None if alike is None else partial(self._is_enough, alike)
            wanted = [part for _, part in remote]
            fetched = await self._fetcher().fetch(wanted, charge, enough, tenant)
            found.update(zip([at for at, _ in remote], fetched, strict=True))
        return [found[at] for at in range(len(parts))]

    async def _is_enough(self, alike: Callable[[int, int], bool], data: bytes) -> bool:
        """Whether the size of a picture is known by the first bytes of its file."""
        look = partial(size_is_known, data, alike)
        return await asyncio.get_running_loop().run_in_executor(self._threads, look)

    async def check_clip(self, part: MediaPart) -> int:
        """See `PictureSource`; looked at in a thread."""
        check = partial(
            check_clip, part, bytes_max=self._options().bytes_max(part.kind), rest=_REST
        )
        return await asyncio.get_running_loop().run_in_executor(self._threads, check)

    async def check_handed_on(self, parts: Sequence[MediaPart]) -> None:
        """See `PictureSource`."""
        for part in parts:
            source_of(part, bytes_max=self._options().bytes_max(part.kind))
        await self._fetcher().check(parts)

    def header(self, data: bytes, where: str) -> PictureHeader:
        """See `PictureSource`."""
        return read_header(data, DecodeLimits(self._options().image_pixels_max), where)

    def decoded(self, data: bytes, header: PictureHeader) -> Picture:
        """See `PictureSource`."""
        return decode(data, header, None)

    def digest(
        self,
        data: bytes,
        fingerprint: str,
        part: MediaPart,
        area_max: int | None = None,
        tenant: str = "",
    ) -> str:
        """See `PictureSource`."""
        return picture_digest(
            data,
            fingerprint=fingerprint,
            tenant=tenant,
            detail=part.detail,
            area_max=area_max,
            uuid=part.uuid,
        )
