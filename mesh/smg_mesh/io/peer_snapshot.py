"""Peer snapshot: what one life leaves to the next in the data dir: the last boot and the peers.

A new file is written beside the old one, synced and renamed, so a reader finds one or the other and
never half of it. A disk that is full, slow, read-only or gone costs the memory, not the node: what
cannot be kept is reported once, counted, and tried again.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from smg_mesh.io.atomic_files import lock_file, write_durably
from smg_mesh.io.blocking_threads import Threads, ThreadsBusyError
from smg_mesh.io.counters import Counters
from smg_mesh.io.discovery.host_address import parse_place
from smg_mesh.io.errors import MeshError
from smg_mesh.swim.messages import Address

PEERS_MAX: Final = 256
SAVE_APART_S: Final = 5.0
SAVE_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 2.0
"""A node that stops does not wait longer for a disk that hangs."""
_FILE_BYTES_MAX: Final = 1_048_576
_BOOT_MAX: Final = 2**63
"""Boots are milliseconds << 16: beyond this is no time that will be, but a damaged file."""
_FILE: Final = "peers.json"
_LOCK: Final = "mesh.lock"

_log = logging.getLogger("smg_mesh.snapshot")


@dataclass(frozen=True, slots=True)
class KeptPeer:
    """A member of an earlier life; `seen_ms` is wall-clock time."""

    name: str
    address: Address
    seen_ms: int


@dataclass(frozen=True, slots=True)
class Kept:
    """Contents of a snapshot file; the default is that of no file."""

    boot: int = 0
    label: str = ""
    peers: tuple[KeptPeer, ...] = ()


class SnapshotError(Exception):
    """Bytes that are no snapshot."""


class _PeerRow(msgspec.Struct, forbid_unknown_fields=False):
    name: str
    address: str
    seen_ms: int


class _File(msgspec.Struct, forbid_unknown_fields=False):
    version: int
    boot: int
    label: str = ""
    peers: list[_PeerRow] = []


def encode_kept(kept: Kept) -> bytes:
    """Return the file's content: JSON that people can read, newest peer first."""
    newest = sorted(kept.peers, key=lambda peer: (-peer.seen_ms, peer.name))[:PEERS_MAX]
    rows = [_PeerRow(peer.name, str(peer.address), peer.seen_ms) for peer in newest]
    file = _File(version=1, boot=kept.boot, label=kept.label, peers=rows)
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def decode_kept(content: bytes) -> Kept:
    """Return what a file says; SnapshotError for anything that `encode_kept` would not write."""
    try:
        file = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SnapshotError(str(error)) from error
    if file.version != 1 or not 0 <= file.boot < _BOOT_MAX:
        raise SnapshotError("another version, or a boot that no clock gives")
    peers = []
    for row in file.peers[:PEERS_MAX]:
        try:
            address = parse_place(row.address, default_port=0).numeric
        except ValueError:
            address = None
        if address is None or address.port == 0:
            raise SnapshotError(f"{row.address!r} is no address")
        peers.append(KeptPeer(row.name, address, row.seen_ms))
    return Kept(file.boot, file.label, tuple(peers))


class DataDir:
    """A folder that belongs to one node at a time. The methods block: call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: int | None = None

    def open(self) -> Kept:
        """Take the folder and return what is kept there.

        MeshError if another process has it; OSError if there is no folder to be had; SnapshotError
        if the file is damaged. In the last case the folder is taken nevertheless.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock_file(self.folder / _LOCK)
        if self._lock is None:
            raise MeshError(f"another node uses the data dir {self.folder}")
        try:
            with (self.folder / _FILE).open("rb") as file:
                return decode_kept(file.read(_FILE_BYTES_MAX))
        except FileNotFoundError:
            return Kept()

    def save(self, kept: Kept) -> None:
        """Replace the file, durably; OSError if that cannot be, and then the old one stays."""
        write_durably(self.folder / _FILE, encode_kept(kept))

    def close(self) -> None:
        """Give the folder to the next."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class Memory:
    """The snapshot as the rest of the mesh sees it: always there, kept if a disk allows."""

    def __init__(self, folder: Path | None, *, label: str, counters: Counters) -> None:
        self._directory = DataDir(folder) if folder is not None else None
        self._label = label
        self._counters = counters
        self._threads = Threads("disk", threads_max=2)
        self._kept = Kept(label=label)
        self._boot_before = 0
        self._saved: Kept | None = None
        self._peers: dict[str, KeptPeer] = {}
        self._changed = asyncio.Event()
        self._warned = False

    async def open(self) -> Kept:
        """Return what the last life left, of this cluster's label; nothing if there is nothing.

        MeshError if another process uses the folder.
        """
        if self._directory is None:
            return self._kept
        try:
            kept = await self._threads.call(self._directory.open, timeout_s=SAVE_TIMEOUT_S)
        except (OSError, SnapshotError, TimeoutError, ThreadsBusyError) as error:
            self._failed(self._directory, "cannot be read", error)
            return self._kept
        peers = kept.peers if kept.label == self._label else ()
        self._peers = {peer.name: peer for peer in peers}
        self._kept = Kept(kept.boot, self._label, peers)
        self._boot_before = kept.boot
        return self._kept

    async def keep_boot(self, boot: int) -> None:
        """Write the boot down before it is used: two lives must not have the same."""
        self._kept = Kept(boot, self._label, self._kept.peers)
        await self._save()

    def changed(self) -> None:
        """Save soon: members came, went or moved."""
        self._changed.set()

    def boot_changed(self, boot: int) -> None:
        """Remember the larger boot that this node took; written with the next save."""
        self._kept = Kept(boot, self._label, self._kept.peers)
        self._changed.set()

    def boot_refused(self) -> None:
        """Forget the boot of this life, which was refused its name: the next one begins where it did."""
        self.boot_changed(self._boot_before)

    def remember(self, peers: Iterable[KeptPeer], *, gone: Iterable[str]) -> None:
        """Take in members that are here now, and drop those that said goodbye; written soon if
        that changed any name or address.
        """
        before = {name: peer.address for name, peer in self._peers.items()}
        for name in gone:
            self._peers.pop(name, None)
        for peer in peers:
            self._peers[peer.name] = peer
        newest = sorted(self._peers.values(), key=lambda peer: (-peer.seen_ms, peer.name))
        self._peers = {peer.name: peer for peer in newest[:PEERS_MAX]}
        self._kept = Kept(self._kept.boot, self._label, tuple(self._peers.values()))
        if {name: peer.address for name, peer in self._peers.items()} != before:
            self._changed.set()

    async def run(self, refresh: Callable[[], None]) -> None:
        """Save after changes, at most once per 5 s, until cancelled; `refresh` is called before each save."""
        while True:
            await self._changed.wait()
            refresh()
            self._changed.clear()
            await self._save()
            await asyncio.sleep(SAVE_APART_S)

    async def close(self) -> None:
        """Save what was not (if only when whom was last seen), and give the folder back."""
        directory, self._directory = self._directory, None
        if directory is None:
            return
        if self._kept != self._saved:
            await self._save_to(directory, timeout_s=CLOSE_TIMEOUT_S)
        directory.close()

    async def _save(self) -> None:
        if self._directory is not None:
            await self._save_to(self._directory, timeout_s=SAVE_TIMEOUT_S)

    async def _save_to(self, directory: DataDir, *, timeout_s: float) -> None:
        kept = self._kept
        try:
            await self._threads.call(lambda: directory.save(kept), timeout_s=timeout_s)
        except (OSError, TimeoutError, ThreadsBusyError) as error:
            self._failed(directory, "cannot be written", error)
            self._changed.set()
        else:
            self._saved = kept
            self._warned = False
            self._counters.add("snapshot_saved")

    def _failed(self, directory: DataDir, what: str, error: Exception) -> None:
        self._counters.add("snapshot_failed")
        if self._warned:
            return
        self._warned = True
        reason = str(error) or type(error).__name__
        _log.warning(
            "the peers snapshot in %s %s, going on without: %s",
            directory.folder,
            what,
            reason,
            extra={"fields": {"event": "snapshot_failed"}},
        )


def seeds_of(kept: Kept, *, seeds_max: int) -> Sequence[Address]:
    """Return the peers to greet after a restart, last seen first."""
    return [peer.address for peer in kept.peers[:seeds_max]]
