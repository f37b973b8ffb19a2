"""Process memory after the start: freezes what stays, returns what only the start needed.

Much of what is resident after a start was needed for the start alone. `settle` takes three steps:

- The collector looks once at everything there is and then leaves it alone: modules and classes stay. From then on it
  looks at what is new less often.
- The C library returns the pages that are free in the middle of its heap (`malloc_trim`, glibc only).
- Pages of program files that are mapped and unchanged (code, constants) are unmapped. No memory is lost
  by that and none has to be read from a disk: they stay in the page cache, no process owns them,
  and the ones that are used come back by themselves, at about 1 us for 64 KiB. But they no longer count
  as this process's, and when memory is short they are the first to go. Measured on an idle node: 10 MB
  of 16; with the libraries of a mesh, 23 MB of 33.

Linux only; elsewhere nothing but the collector does anything.

Before that, `without_certificates` keeps out what is never needed: the web framework's client,
where a node needs it, reads all certificates that the machine trusts when it is imported, twice. A
client that connects over TLS reads them then.
"""

import gc
import mmap
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol, cast

_SMAPS: Final = "/proc/self/smaps"
# `7f00c000-7f00e000 r-xp 00002000 08:01 1234   /usr/lib/libc.so.6`, then lines of `Name:   4 kB`.
_MAPPING: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ (\d+)")

COLLECTED_AFTER: Final = (10_000, 20, 50)
"""The collector looks at new objects when there are this many; and at older ones after so many such looks.

A short request leaves 3 objects in cycles. At Python's own 700 they are looked for every 250 requests, which is 1.3 us a
request, of 417 us of CPU; at 10,000 it is 0.1 us, and all in all 405 us were measured (50,000 streamed requests each; 428 and
419 in six interleaved rounds). What is not yet collected is 2 MB at most, 90 MB were resident either way; one look takes 1 ms.
"""
_MMAP_THRESHOLD: Final = -3
"""`M_MMAP_THRESHOLD` of glibc's malloc.h."""
_TRIM_THRESHOLD: Final = -1
"""`M_TRIM_THRESHOLD`."""
_LARGE_BYTES: Final = 1 << 20
_FREE_AT_END_BYTES: Final = 4 << 20
"""Requests take and free less than that, so their memory stays where it is from one to the next."""
_CERTIFICATES: Final = "SSL_CERT_FILE"
"""Where OpenSSL looks up, each time, which file of certificates is trusted."""


@contextmanager
def without_certificates() -> Iterator[None]:
    """Let TLS contexts made meanwhile know no file of certificates: two of 140 take 1.5 MB. Before there are threads."""
    before = os.environ.get(_CERTIFICATES)
    os.environ[_CERTIFICATES] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CERTIFICATES]
        else:
            os.environ[_CERTIFICATES] = before


class _Calls(Protocol):
    """Calls of the C library and the kernel; each returns whether it did anything."""

    def malloc_trim(self) -> bool: ...

    def mallopt(self, name: int, value: int, /) -> bool: ...

    def unmap_pages(self, start: int, length: int, /) -> bool: ...


class ForeignCalls:
    """The same calls as `native.memory_calls`, by a library that takes half a megabyte: where there was no compiler."""

    def __init__(self) -> None:
        import ctypes

        self._library: Final = ctypes.CDLL(None)
        self._library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def malloc_trim(self) -> bool:
        """Return what is free in the heap; glibc only."""
        return hasattr(self._library, "malloc_trim") and self._library.malloc_trim(0) == 1

    def mallopt(self, name: int, value: int, /) -> bool:
        """Set an option of the allocator; glibc only."""
        return hasattr(self._library, "mallopt") and self._library.mallopt(name, value) == 1

    def unmap_pages(self, start: int, length: int, /) -> bool:
        """Let go of pages of a file."""
        return int(self._library.madvise(start, length, mmap.MADV_DONTNEED)) == 0


def _calls() -> _Calls | None:
    """Return what makes the calls; None but on Linux."""
    if sys.platform != "linux":
        return None
    try:
        from smg_node.native import memory_calls
    except ImportError:
        return ForeignCalls()
    return cast("_Calls", memory_calls)


def settle() -> None:
    """Let go of what only the start needed; call it once, when everything is up. Takes about 30 ms."""
    keep()
    calls = _calls()
    if calls is None:
        return
    calls.malloc_trim()
    for start, length in _unchanged():
        # Refused for memory that is locked; then it stays, which does no harm.
        calls.unmap_pages(start, length)


def trim() -> None:
    """Have the C library return what is free in its heap; takes milliseconds, in any thread.

    For after something large was read: a tokenizer leaves 110 MB behind that are not used any more.
    """
    if (calls := _calls()) is not None:
        calls.malloc_trim()


def set_mmap_threshold(least_bytes: int) -> None:
    """Have the C library give pieces of memory this large pages of their own from now on; glibc only.

    It does so from 128 KiB on, but for as long as none of them was freed: then it takes ever larger ones out of its
    heap.
    """
    if (calls := _calls()) is not None:
        calls.mallopt(_MMAP_THRESHOLD, least_bytes)


def give_back_large() -> None:
    """Have the C library return freed pieces of a megabyte at once, and what is free at the end of a heap beyond four; glibc only.

    Without it 12 MB stayed with each process that had unpacked a tokenizer in a thread: they lie at the end of that thread's
    heap, which `trim` does not look at.
    """
    if (calls := _calls()) is not None:
        calls.mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
        calls.mallopt(_TRIM_THRESHOLD, _FREE_AT_END_BYTES)


def keep() -> None:
    """Tell the collector that all there is now will stay; it need not look at it again and again, nor at what comes so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


def spare() -> None:
    """Have the collector leave alone what there is now, without a last look, which would stop the loop.

    For when the cluster's state has just arrived: ten thousand workers are 70,000 objects, and a full
    collection over them takes tens of milliseconds each time.
    """
    gc.freeze()


def _unchanged() -> Iterable[tuple[int, int]]:
    try:
        with open(_SMAPS, encoding="utf-8", errors="replace") as lines:
            return list(unchanged_mappings(lines))
    except OSError:
        # A kernel or a sandbox that does not show it.
        return ()


def unchanged_mappings(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield address and length of each mapping of a file that cannot be written and has not been.

    What was changed before it was protected (the linker relocates, then protects) has anonymous pages,
    whose only copy is in memory. `lines` are those of `/proc/PID/smaps`.
    """
    candidate: tuple[int, int] | None = None
    for line in lines:
        found = _MAPPING.match(line)
        if found is not None:
            start, end, permissions, inode = found.groups()
            is_file = inode != "0" and "w" not in permissions
            candidate = (int(start, 16), int(end, 16) - int(start, 16)) if is_file else None
        elif candidate is not None and line.startswith("Anonymous:"):
            if line.split()[1] == "0":
                yield candidate
            candidate = None
