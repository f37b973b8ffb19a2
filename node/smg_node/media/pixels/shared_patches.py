"""Shared patches: the patch cache of a node of several processes: one file a picture in memory that they all see.

A client's next turn comes to any of the processes, and the patches of its pictures are there. Files are named by the
pictures' digests and never change: they are written under another name and renamed, so that whoever finds one has all of
it. Writers take turns by a lock, and make room within the bound before they write, the least recently used first. The
system takes locks away from a process that ends, whatever it ended by; what that one was writing, the next writer
overwrites. A picture that is being read stays readable when its file goes.

    smg-pictures-<16 hex digits of the node>/   alive   locked, shared, by each process that lives
                                                turn    locked by the one that writes
                                                new     what it writes
                                                <64 hex digits>   64 bytes of lengths, then the patches

The folder of a node whose processes have all ended is removed by the last of them, or by the next node that has pictures.
"""

import errno
import fcntl
import mmap
import os
import re
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from smg_node.media.pixels.patch_cache import ENTRY_OVERHEAD, CacheCounts, CachedPatches, held

if TYPE_CHECKING:
    from smg_node.media.family import PicturePlan
    from smg_node.media.picture import Pixels

FOLDER: Final = Path("/dev/shm")
PREFIX: Final = "smg-pictures-"
SPARE_BYTES: Final = 64 << 20
"""What is left to others: tensors for engines lie in the same memory, of which containers may have little."""
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_HEAD: Final = struct.Struct("<4sI7Q")
_HEAD_BYTES: Final = 64
_MARK: Final = b"SMGP"
_AXES_MAX: Final = 7
_TRIES: Final = 8
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW


def folder_of_node(pid: int, under: Path = FOLDER) -> Path | None:
    """Return the folder for the processes that `pid` has started; None where the system does not say which it is."""
    try:
        started = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19]
    except (OSError, IndexError):
        return None
    name = sha256(b"%d %d %s" % (os.getuid(), pid, started)).hexdigest()[:16]
    return under / f"{PREFIX}{name}"


class SharedPatches:
    """Patches by digest in a folder of a node's processes, of at most `bytes_max` bytes together; see `PatchCache`.

    Its methods may be called from any thread. OSError where the folder cannot be had, or its memory is too small for that. `processes` share the folder:
    each tells of its part of what is held.
    """

    def __init__(self, folder: Path, bytes_max: int, *, processes: int = 1) -> None:
        self._folder = folder
        self._bytes_max = bytes_max
        self._processes = processes
        self._hits = self._misses = self._evictions = 0
        self._counting = Lock()
        _check_room(folder.parent, bytes_max)
        _sweep(folder)
        self._alive = _entered(folder)

    def get(self, digest: str) -> CachedPatches | None:
        """Return what any of the processes has put under the digest; None where it is not kept."""
        found = self._read(digest) if self._bytes_max and _NAME.fullmatch(digest) else None
        with self._counting:
            if found is None:
                self._misses += 1
            else:
                self._hits += 1
        return found

    def has(self, digest: str) -> bool:
        """Whether any of the processes keeps something under the digest; nothing is counted, and nothing used."""
        named = bool(self._bytes_max) and _NAME.fullmatch(digest) is not None
        return named and (self._folder / digest).exists()

    def put(self, digest: str, plan: "PicturePlan", patches: "Pixels") -> CachedPatches:
        """Keep a copy of the patches, if there is room for it; return them as they came, not to be written to again."""
        patches = held(patches)
        size = _HEAD_BYTES + patches.nbytes
        if size + ENTRY_OVERHEAD <= self._bytes_max and patches.ndim <= _AXES_MAX:
            # What cannot be kept is made anew.
            with suppress(OSError), self._turn():
                self._make_room(size + ENTRY_OVERHEAD)
                if _free_bytes(self._folder) >= size + SPARE_BYTES:
                    self._write(digest, patches)
        return CachedPatches(plan, patches)

    def resize(self, bytes_max: int) -> None:
        """Set the bound; what is beyond it goes at once."""
        self._bytes_max = bytes_max
        with suppress(OSError), self._turn():
            self._make_room(0)

    def counts(self) -> CacheCounts:
        """Return what this process counted, and its part of what all hold."""
        files = self._files()
        count, size = len(files), sum([size for _, size, _ in files])
        with self._counting:
            counted = (self._hits, self._misses, self._evictions)
        return CacheCounts(*counted, count // self._processes, size // self._processes)

    def close(self) -> None:
        """Leave the folder, and remove it if nobody else is there; harmless the second time."""
        alive, self._alive = self._alive, -1
        if alive >= 0:
            os.close(alive)
            self._bytes_max = 0
            _remove_if_left(self._folder)

    # ── Files ────────────────────────────────────────────────────────────────

    def _read(self, digest: str) -> CachedPatches | None:
        import numpy as np  # with the first picture

        path = self._folder / digest
        try:
            handle = os.open(path, os.O_RDONLY | _FLAGS)
        except OSError:
            return None
        try:
            content = mmap.mmap(handle, 0, prot=mmap.PROT_READ)
            # It was used now.
            os.utime(handle)
        except (OSError, ValueError):
            return None
        finally:
            os.close(handle)
        shape = _shape_of(content)
        if shape is None:
            with suppress(OSError):
                path.unlink()
            return None
        flat = np.frombuffer(content, np.uint8, offset=_HEAD_BYTES)
        return CachedPatches(None, flat.reshape(shape))

    def _write(self, digest: str, patches: "Pixels") -> None:
        lengths = (*patches.shape, *[0] * (_AXES_MAX - patches.ndim))
        new = self._folder / "new"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
        try:
            os.write(handle, _HEAD.pack(_MARK, patches.ndim, *lengths))
            left = patches.data.cast("B")
            while left:
                left = left[os.write(handle, left) :]
        except OSError:
            os.ftruncate(handle, 0)
            raise
        finally:
            os.close(handle)
        new.rename(self._folder / digest)

    def _make_room(self, size: int) -> None:
        """Remove the least recently used until there is room for `size` more bytes; in turn."""
        files = self._files()
        total = size + sum([each for _, each, _ in files])
        for _, each, path in sorted(files):
            if total <= self._bytes_max:
                return
            path.unlink(missing_ok=True)
            total -= each
            with self._counting:
                self._evictions += 1

    def _files(self) -> list[tuple[int, int, Path]]:
        """Return when each picture was used last, its bytes, and its file."""
        found = []
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name):
                    with suppress(OSError):
                        said = entry.stat(follow_symlinks=False)
                        size = said.st_size + ENTRY_OVERHEAD
                        found.append((said.st_mtime_ns, size, Path(entry.path)))
        return found

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until no other process or thread writes."""
        with _locked(self._folder / "turn", fcntl.LOCK_EX):
            yield


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


def _entered(folder: Path) -> int:
    """Return the handle that says that this process lives, of a folder that is there."""
    for _ in range(_TRIES):
        folder.mkdir(mode=0o700, exist_ok=True)
        owner = folder.stat(follow_symlinks=False)
        if owner.st_uid != os.getuid():
            raise PermissionError(f"{folder} is another user's")
        with suppress(FileNotFoundError):
            handle = os.open(folder / "alive", os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
            fcntl.flock(handle, fcntl.LOCK_SH)
            # It may have been removed before it was locked.
            with suppress(FileNotFoundError):
                if os.stat(folder / "alive").st_ino == os.fstat(handle).st_ino:
                    return handle
            os.close(handle)
    raise FileNotFoundError(f"{folder} cannot be kept")


def _remove_if_left(folder: Path) -> None:
    """Remove a folder whose processes have all ended."""
    with suppress(OSError), _locked(folder / "alive", fcntl.LOCK_EX | fcntl.LOCK_NB):
        shutil.rmtree(folder)


def _sweep(own: Path) -> None:
    """Remove folders of nodes that are no more."""
    with suppress(OSError), os.scandir(own.parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.name != own.name:
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                        _remove_if_left(Path(entry.path))


def _shape_of(content: mmap.mmap) -> tuple[int, ...] | None:
    """Return the lengths of the axes in a file; None for one that is none of ours."""
    if len(content) < _HEAD_BYTES:
        return None
    mark, axes, *lengths = _HEAD.unpack_from(content)
    if mark != _MARK or not 0 < axes <= _AXES_MAX:
        return None
    shape = tuple(lengths[:axes])
    total = 1
    for length in shape:
        total *= length
    return shape if total == len(content) - _HEAD_BYTES else None


def _check_room(parent: Path, bytes_max: int) -> None:
    """Raise OSError where a folder could never hold so much: containers often have 64 MiB of such memory."""
    said = os.statvfs(parent)
    whole = said.f_blocks * said.f_frsize
    if whole < bytes_max + SPARE_BYTES:
        why = f"it has {whole >> 20} MiB, too few for media.cache_bytes and {SPARE_BYTES >> 20} MiB for others"
        raise OSError(errno.ENOSPC, why)


def _free_bytes(folder: Path) -> int:
    said = os.statvfs(folder)
    return said.f_bavail * said.f_frsize
