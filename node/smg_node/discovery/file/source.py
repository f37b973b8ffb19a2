"""File source: looks at a file again and again, or runs a program, and shows the workers that it lists.

A file that is gone, wrong or half written changes nothing: the last good list stays, and the view says since when and why.
A text that could go on from its end, such as a YAML list, is believed when the file has not changed from one look to the
next; one that closes what it opens, at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from math import inf
from os.path import basename
from typing import Final, TypeAlias

from smg_node.discovery.file.look import (
    LookError,
    Signature,
    read_file,
    run_program,
    signature_of,
)
from smg_node.discovery.file.manifest import Manifest, ManifestError, read_manifest
from smg_node.discovery.file.options import FileOptions
from smg_node.discovery.sighting import Endpoint, Sighting, View
from smg_node.discovery.source import Show, SourceKind

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
"""Sleeps for so many seconds."""
FILE: Final = "file"
COMMAND: Final = "command"
SETTLE_S: Final = 1.0
"""A text that may go on is looked at again after this, however seldom a file is looked at."""


class FileSource:
    """This node's own list. Its time comes from outside; nothing is looked at before it runs."""

    def __init__(
        self,
        options: FileOptions,
        *,
        monotonic_s: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._options = options
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._begin()

    def _begin(self) -> None:
        self._view = View({})
        self._seen: Signature | None = None
        """What the file was at the last look."""
        self._read: Signature | None = None
        """What it was when it was read, whether that was of use or not."""
        self._read_s = 0.0
        self._digest = b""
        """Of the last good text."""

    @property
    def kind(self) -> SourceKind:
        """See `Source`."""
        return "file"

    @property
    def name(self) -> str:
        """See `Source`."""
        return FILE if self._options.path else COMMAND

    async def run(self, show: Show) -> None:
        """See `Source`."""
        self._begin()
        while True:
            before = self._view
            if self._options.path:
                await self._look()
            else:
                await self._run_program()
            if self._view != before:
                show(self._view)
            await self._sleep(self._wait_s())

    def _wait_s(self) -> float:
        if not self._options.path:
            return self._options.run_interval_s
        unsettled = self._seen is not None and self._seen != self._read
        return min(self._options.check_interval_s, SETTLE_S if unsettled else inf)

    async def _look(self) -> None:
        path = self._options.path
        try:
            # In a thread: the file may lie behind a network.
            seen = await asyncio.to_thread(signature_of, path)
            settled, self._seen = seen == self._seen, seen
            if seen == self._read and self._monotonic_s() < self._read_s + self._options.reread_s:
                return
            read = await asyncio.to_thread(read_file, path)
        except LookError as error:
            self._seen = self._read = None
            self._keep(error)
            return
        self._read, self._read_s = read.signature, self._monotonic_s()
        try:
            manifest = await self._parsed(read.raw)
        except ManifestError as error:
            self._keep(error)
            return
        if manifest is not None and not manifest.closed and not (settled and seen == self._read):
            self._read = None  # it is read again at the next look
            return
        self._believe(read.raw, manifest)

    async def _run_program(self) -> None:
        command = self._options.command
        try:
            raw = await run_program(command, timeout_s=self._options.run_timeout_s)
            manifest = await self._parsed(raw)
        except (LookError, ManifestError) as error:
            self._keep(error)
            return
        self._believe(raw, manifest)

    async def _parsed(self, raw: bytes) -> Manifest | None:
        """Return what a text lists, None if it is the last good one."""
        if self._view.whole_ms and blake2b(raw).digest() == self._digest:
            return None
        return await asyncio.to_thread(read_manifest, raw)

    def _believe(self, raw: bytes, manifest: Manifest | None) -> None:
        sightings: Mapping[Endpoint, Sighting] = self._view.sightings
        if manifest is not None:
            sightings = manifest.sightings
            self._digest = blake2b(raw).digest()
        self._view = View(sightings, whole_ms=max(1, self._now_ms()))

    def _keep(self, error: Exception) -> None:
        before = self._view
        # Its own name says which file it is, and leaves room for what is wrong where texts are short.
        named = basename(self._options.path or self._options.command[0])
        self._view = View(
            before.sightings,
            whole_ms=before.whole_ms,
            trouble=f"{named}: {error}",
            failing_since_ms=before.failing_since_ms or max(1, self._now_ms()),
        )

    def _now_ms(self) -> int:
        return int(self._monotonic_s() * 1000)
