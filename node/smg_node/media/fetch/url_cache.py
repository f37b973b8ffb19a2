"""URL cache: fetched files, for as long as their origins allow caches that many share to use them again. Pure.

A URL is no identity of a picture: nothing is kept unless the origin says so (RFC 9111), and never longer than an hour.
Keys are digests, as a URL may be a secret by which its picture is had.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import msgspec

FRESH_MAX_S: Final = 3_600.0
ENTRIES_MAX: Final = 4_096
_SHARE: Final = 4
"""One file takes this part of the cache at most, so that it never empties it."""
_DIRECTIVE: Final = re.compile(r"([a-z-]+)(?:=\"?(\d{1,10})\"?)?[^,]*(?:,|\Z)")
_FORBIDDEN: Final = frozenset({"no-store", "no-cache", "private"})


class _Kept(msgspec.Struct, frozen=True, gc=False):
    content: bytes
    until_s: float


class UrlCache:
    """Files by URL, the one that was asked for the longest ago goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self.size = 0
        """Bytes of all files that are kept."""

    def find(self, url: str, now_s: float, *, tenant: str = "") -> bytes | None:
        """Return the file of a URL that was kept for a tenant, None if there is none that may still be used."""
        key = _key(url, tenant)
        found = self._kept.get(key)
        if found is None:
            return None
        if found.until_s <= now_s:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return found.content

    def keep(
        self, url: str, content: bytes, *, until_s: float, bytes_max: int, tenant: str = ""
    ) -> None:
        """Keep a file until then, unless it is large; all files together have at most `bytes_max` bytes afterwards."""
        key = _key(url, tenant)
        self._drop(key)
        if len(content) <= bytes_max // _SHARE:
            self._kept[key] = _Kept(content, until_s)
            self.size += len(content)
        self.shrink(bytes_max)

    def shrink(self, bytes_max: int) -> None:
        """Let the oldest files go until all together have at most `bytes_max` bytes."""
        while self.size > bytes_max or len(self._kept) > ENTRIES_MAX:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: bytes) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self.size -= len(found.content)


def fresh_s(headers: Mapping[str, str]) -> float:
    """Return for how many seconds an answer with these headers may be used again by anybody, 0 for not at all."""
    said = {
        match[1]: match[2]
        for match in _DIRECTIVE.finditer(headers.get("cache-control", "").lower())
    }
    if not _FORBIDDEN.isdisjoint(said) or _varies(headers.get("vary", "")):
        return 0.0
    lifetime = said.get("s-maxage") or said.get("max-age")
    if lifetime is None:
        return 0.0
    age = headers.get("age", "0").strip()
    if not age.isascii() or not age.isdigit() or len(age) > 10:
        return 0.0
    return min(max(float(lifetime) - float(age), 0.0), FRESH_MAX_S)


def _varies(said: str) -> bool:
    """Whether another client might be answered otherwise: all of ours ask alike but for the encoding."""
    return any(name.strip().lower() not in ("", "accept-encoding") for name in said.split(","))


def _key(url: str, tenant: str) -> bytes:
    whose = tenant.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(len(whose).to_bytes(8, "little") + whose)
    digest.update(url.encode("utf-8", "surrogatepass"))
    return digest.digest()
