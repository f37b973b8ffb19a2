"""Block hash: chained xxh3 hash that names a block of tokens together with all tokens before it.
Pure.

    h(0) = root of (model, tokenizer, adapter, salt)        h(i) = xxh3_64(ids of block i, seed h(i - 1))

so equal hashes mean equal beginnings under equal circumstances, on every node of a cluster, and
what follows a block needs nothing but its hash. Ids say nothing of a picture, so a block in which pictures begin is
seeded with h(i - 1) and their identities instead; what comes after it follows from it. Hashes are kept to 60 bits: CPython then needs 32
bytes for one instead of 48, and among a million of them two are equal by chance once in two million
clusters. A client that shapes prompts to collide only misleads the routing of its own requests:
engines compare by hashes of their own.
"""

import sys
from array import array
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

from xxhash import xxh3_64_intdigest

from smg_node.core.generation.request import TokenIds

_AS_WE_HASH: Final = sys.byteorder == "little"
BITS: Final = 60
MASK: Final = (1 << BITS) - 1
BLOCK_TOKENS: Final = 64
_ROOTS_MAX: Final = 4096
"""Of adapters and salts of one model; a salt may be a client's own word."""

Root = Callable[[str, str], int]
"""The root of an adapter and a salt of one model."""


def seed_of(label: str) -> int:
    """Return the seed of a cluster from its label: all nodes agree without a message."""
    return xxh3_64_intdigest(label.encode(), 0x5EED) & MASK


def root_of(
    model: str, tokenizer_digest: str, *, adapter: str = "", salt: str = "", seed: int
) -> int:
    """Return the hash that stands before the first block of a prompt."""
    packed = bytearray()
    for part in (model, tokenizer_digest, adapter, salt):
        raw = part.encode("utf-8", "surrogatepass")
        # Lengths keep ("ab", "c") apart from ("a", "bc").
        packed += len(raw).to_bytes(4, "little") + raw
    return xxh3_64_intdigest(bytes(packed), seed) & MASK


def chain(
    root: int, ids: TokenIds, block: int = BLOCK_TOKENS, upto: int | None = None
) -> list[int]:
    """Return the hash of every whole block of `ids`, of at most `upto` blocks."""
    count = len(ids) // block
    if upto is not None and upto < count:
        count = upto
    if count <= 0:
        return []
    if count == 1:
        return [first_of(root, ids, block)]
    width = 4 * block
    above, digest, mask, whole = root, xxh3_64_intdigest, MASK, raw_ids(ids)
    blocks = Struct(f"{width}s").iter_unpack(whole[: count * width])
    return [above := digest(one, above) & mask for (one,) in blocks]


def chain_with_media(
    root: int,
    ids: TokenIds,
    media: Sequence[tuple[str, int]],
    block: int = BLOCK_TOKENS,
    upto: int | None = None,
) -> list[int]:
    """Return the same as `chain` where pictures begin at places of `ids`: their identities and offsets, in order."""
    count = len(ids) // block
    if upto is not None and upto < count:
        count = upto
    found: list[int] = []
    above = root
    for at, pictures in _by_block(media, block, count):
        found += chain(above, ids[len(found) * block : at * block], block)
        above = media_seed(found[-1] if found else root, pictures)
        found.append(link(above, bytes(raw_ids(ids[at * block : (at + 1) * block]))))
        above = found[-1]
    found += chain(above, ids[len(found) * block : count * block], block)
    return found


def _by_block(
    media: Sequence[tuple[str, int]], block: int, count: int
) -> list[tuple[int, list[tuple[str, int]]]]:
    """Return the numbers of blocks in which pictures begin, each with these pictures, counted from its start."""
    found: dict[int, list[tuple[str, int]]] = {}
    for name, offset in media:
        if 0 <= offset < count * block:
            found.setdefault(offset // block, []).append((name, offset % block))
    return sorted(found.items())


def media_seed(above: int, pictures: Sequence[tuple[str, int]]) -> int:
    """Return what a block is hashed with in which these pictures begin, behind the block `above`."""
    packed = bytearray()
    for name, offset in sorted(pictures, key=_by_offset):
        raw = name.encode("utf-8", "surrogatepass")
        packed += len(raw).to_bytes(4, "little") + raw + offset.to_bytes(4, "little")
    return xxh3_64_intdigest(bytes(packed), above) & MASK


def _by_offset(picture: tuple[str, int]) -> tuple[int, str]:
    return picture[1], picture[0]


def first_of(root: int, ids: TokenIds, block: int) -> int:
    """Return the hash of the first block of `ids`, which has one."""
    one = ids[:block]
    return xxh3_64_intdigest(one if _AS_WE_HASH else raw_ids(one), root) & MASK


def link(above: int, raw: bytes) -> int:
    """Return the hash of one block of little-endian uint32 ids that follows the block `above`."""
    return xxh3_64_intdigest(raw, above) & MASK


def raw_ids(ids: TokenIds) -> memoryview:
    """Return ids as little-endian uint32, without a copy where the machine is little-endian."""
    if sys.byteorder == "little":
        return memoryview(ids).cast("B")
    swapped = ids[:]
    swapped.byteswap()
    return memoryview(swapped).cast("B")


def text_ids(text: str) -> TokenIds:
    """Return stand-ins for ids where tokens are not counted: four bytes of the text each, about one
    token.
    """
    raw = text.encode("utf-8", "surrogatepass")
    ids = array("I", raw[: len(raw) // 4 * 4])
    if sys.byteorder != "little":
        ids.byteswap()
    return ids


class Roots:
    """The roots of one model, by adapter and salt; the oldest is forgotten above a bound."""

    def __init__(self, model: str, tokenizer_digest: str, *, seed: int) -> None:
        self._model = model
        self.tokenizer_digest: Final = tokenizer_digest
        self._seed = seed
        self._known: dict[tuple[str, str], int] = {}
        self.bare: Final = root_of(model, tokenizer_digest, seed=seed)
        """The root without an adapter and a salt, as nearly all have it."""

    def __len__(self) -> int:
        return len(self._known)

    def __call__(self, adapter: str = "", salt: str = "") -> int:
        """Return the root of an adapter and a salt."""
        key = adapter, salt
        found = self._known.get(key)
        if found is None:
            found = root_of(
                self._model, self.tokenizer_digest, adapter=adapter, salt=salt, seed=self._seed
            )
            if len(self._known) >= _ROOTS_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return found
