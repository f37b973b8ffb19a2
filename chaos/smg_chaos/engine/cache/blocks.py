"""Blocks of an engine's KV memory, with or without a prefix cache, as real engines keep them.

Every block holds a fixed number of tokens and belongs to the requests that use it. A full block has
a key: the hash of its tokens and of everything before them. Released blocks keep their content
until the room is needed, oldest first, so a later prompt with the same beginning finds it. The last
token of a prompt is always computed, so a prompt of whole blocks computes its last block again:
then some engines hold two copies of one key, each of which is removed by itself, and others keep
one.
"""

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import xxhash

_ROOT: Final = 0


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a full block. `parent` is None for the first block of a prompt."""

    key: int
    parent: int | None
    tokens: tuple[int, ...]
    media: tuple[tuple[str, int], ...] = ()
    """Pictures in it: their identities, and where they begin, in tokens from its own start."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Event: blocks became full, each the parent of the next."""

    contents: tuple[Content, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """Event: one copy of each of these keys is gone."""

    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cleared:
    """Event: nothing is cached any more."""


Change: TypeAlias = Stored | Removed | Cleared


Places: TypeAlias = Sequence[tuple[str, int, int]]
"""Pictures of a prompt: identity, where its range begins, and how many ids it has."""


def chain(
    tokens: Sequence[int],
    size: int,
    *,
    parent: int | None = None,
    media: Places = (),
    start: int = 0,
) -> list[int]:
    """Return the keys of the full blocks of `tokens`, which follow the block `parent` and begin at `start`.

    All pictures that lie in a block, in part or whole, go into its key, as in vLLM.
    """
    raw = array("I", tokens).tobytes()
    width = size * 4
    key = _ROOT if parent is None else parent
    keys = []
    for at in range(0, len(raw) - width + 1, width):
        content = raw[at : at + width]
        if media:
            content += repr(pictures_in(media, start + at // 4, size)).encode()
        key = xxhash.xxh3_64_intdigest(content, key)
        keys.append(key)
    return keys


def pictures_in(media: Places, start: int, size: int) -> tuple[tuple[str, int], ...]:
    """Return the pictures of the block at `start`, each with its place from there: before it where that is below 0."""
    return tuple(
        (name, offset - start)
        for name, offset, length in media
        if offset < start + size and offset + length > start
    )


class Blocks(Protocol):
    """All KV blocks of an engine; nothing here knows a request."""

    size: int
    """Tokens in a block."""
    count: int

    @property
    def free(self) -> int:
        """How many blocks no request uses, cached ones included."""
        ...

    @property
    def used(self) -> int:
        """How many blocks belong to a request."""
        ...

    @property
    def resident(self) -> int:
        """How many blocks are used or still hold cached content."""
        ...

    def match(self, keys: Sequence[int]) -> list[int]:
        """Return the blocks of the longest cached beginning; they are not claimed yet."""
        ...

    def claim(self, found: Sequence[int], fresh: int) -> list[int] | None:
        """Return the `found` blocks and `fresh` empty ones, all claimed; None if there is no room."""
        ...

    def fill(
        self,
        blocks: Sequence[int],
        keys: Sequence[int],
        tokens: Sequence[int],
        parent: int | None,
        media: Places = (),
        start: int = 0,
    ) -> None:
        """Record that these blocks are full of `tokens`; the first one follows `parent` and begins at `start`."""
        ...

    def release(self, blocks: Sequence[int]) -> None:
        """Release blocks, the last one first, so that beginnings stay cached longest."""
        ...

    def clear(self) -> None:
        """Drop every cached block; blocks in use stay with their requests, uncached."""
        ...

    def changes(self) -> list[Change]:
        """Return the changes since the last call."""
        ...

    def live(self) -> list[Content]:
        """Return every cached block, parents before children, one entry a copy."""
        ...

    def users(self) -> list[int]:
        """Return how many requests use each block."""
        ...


class PlainBlocks:
    """Blocks without a cache: they are counted, and no prompt ever finds one."""

    def __init__(self, count: int, size: int) -> None:
        self.size = size
        self.count = count
        self._free = list(range(count))

    @property
    def free(self) -> int:
        """How many blocks no request uses."""
        return len(self._free)

    @property
    def used(self) -> int:
        """How many blocks belong to a request."""
        return self.count - len(self._free)

    @property
    def resident(self) -> int:
        """How many blocks are used: nothing is kept."""
        return self.used

    def match(self, keys: Sequence[int]) -> list[int]:
        """Return nothing."""
        return []

    def claim(self, found: Sequence[int], fresh: int) -> list[int] | None:
        """Return `fresh` blocks; None if there is no room."""
        left = len(self._free) - fresh
        if left < 0:
            return None
        claimed = self._free[left:]
        del self._free[left:]
        return claimed

    def fill(
        self,
        blocks: Sequence[int],
        keys: Sequence[int],
        tokens: Sequence[int],
        parent: int | None,
        media: Places = (),
        start: int = 0,
    ) -> None:
        """Keep nothing."""

    def release(self, blocks: Sequence[int]) -> None:
        """Release blocks."""
        self._free.extend(blocks)

    def clear(self) -> None:
        """Do nothing: nothing is kept."""

    def changes(self) -> list[Change]:
        """Return nothing."""
        return []

    def live(self) -> list[Content]:
        """Return nothing."""
        return []

    def users(self) -> list[int]:
        """Return how many requests use each block."""
        users = [1] * self.count
        for block in self._free:
            users[block] -= 1
        return users


class BlockTable:
    """Blocks with a prefix cache."""

    def __init__(self, count: int, size: int, *, copies: bool = True) -> None:
        self.size = size
        self.count = count
        self._keeps_copies = copies
        self._users = [0] * count
        self._contents: dict[int, Content] = {}
        self._copies: dict[int, list[int]] = {}
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(count))
        self._changes: list[Change] = []

    @property
    def free(self) -> int:
        """How many blocks no request uses, cached ones included."""
        return len(self._free)

    @property
    def used(self) -> int:
        """How many blocks belong to a request."""
        return self.count - len(self._free)

    @property
    def resident(self) -> int:
        """How many blocks are used or still hold cached content."""
        return self.used + sum(1 for block in self._free if block in self._contents)

    def match(self, keys: Sequence[int]) -> list[int]:
        """Return the blocks of the longest cached beginning; they are not claimed yet."""
        found = []
        for key in keys:
            copies = self._copies.get(key)
            if not copies:
                break
            found.append(copies[0])
        return found

    def claim(self, found: Sequence[int], fresh: int) -> list[int] | None:
        """Return the `found` blocks and `fresh` empty ones, all claimed; None if there is no room."""
        users = self._users
        idle = sum([not users[block] for block in found])
        if len(self._free) - idle < fresh:
            return None
        for block in found:
            if not self._users[block]:
                del self._free[block]
            self._users[block] += 1
        return [*found, *(self._empty() for _ in range(fresh))]

    def _empty(self) -> int:
        block, _ = self._free.popitem(last=False)
        content = self._contents.pop(block, None)
        if content is not None:
            copies = self._copies[content.key]
            copies.remove(block)
            if not copies:
                del self._copies[content.key]
            self._changes.append(Removed((content.key,)))
        self._users[block] = 1
        return block

    def fill(
        self,
        blocks: Sequence[int],
        keys: Sequence[int],
        tokens: Sequence[int],
        parent: int | None,
        media: Places = (),
        start: int = 0,
    ) -> None:
        """Record that these blocks are full of `tokens`; the first one follows `parent` and begins at `start`."""
        run: list[Content] = []
        for at, (block, key) in enumerate(zip(blocks, keys, strict=True)):
            assert block not in self._contents, "a block is filled once"
            if self._keeps_copies or key not in self._copies:
                here = at * self.size
                pictures = pictures_in(media, start + here, self.size) if media else ()
                content = Content(key, parent, tuple(tokens[here : here + self.size]), pictures)
                self._contents[block] = content
                self._copies.setdefault(key, []).append(block)
                run.append(content)
            elif run:
                self._changes.append(Stored(tuple(run)))
                run = []
            parent = key
        if run:
            self._changes.append(Stored(tuple(run)))

    def release(self, blocks: Sequence[int]) -> None:
        """Release blocks, the last one first, so that beginnings stay cached longest."""
        for block in reversed(blocks):
            self._users[block] -= 1
            assert self._users[block] >= 0, "a block is given back once"
            if not self._users[block]:
                self._free[block] = None

    def clear(self) -> None:
        """Drop every cached block; blocks in use stay with their requests, uncached."""
        self._contents.clear()
        self._copies.clear()
        self._changes.append(Cleared())

    def changes(self) -> list[Change]:
        """Return the changes since the last call."""
        changes, self._changes = self._changes, []
        return changes

    def live(self) -> list[Content]:
        """Return every cached block, parents before children, one entry a copy."""
        by_parent: dict[int | None, list[Content]] = {}
        for content in self._contents.values():
            by_parent.setdefault(content.parent, []).append(content)
        # A block whose parent was evicted first is still live: it starts a tree of its own.
        roots = [p for p in by_parent if p is None or p not in self._copies]
        ordered: list[Content] = []
        seen: set[int | None] = set()
        todo = list(roots)
        while todo:
            parent = todo.pop()
            if parent in seen:
                continue
            seen.add(parent)
            children = by_parent.get(parent, [])
            ordered.extend(children)
            todo.extend(child.key for child in children)
        return ordered

    def users(self) -> list[int]:
        """Return how many requests use each block."""
        return list(self._users)
