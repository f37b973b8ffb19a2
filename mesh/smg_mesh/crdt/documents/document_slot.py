"""Document slot: one entry as it lies in a document: its root, its name, and
its bytes read and hashed once.

The root says which node may write it, and the name which node it is from: a plain key for what the
owner of the root wrote itself, `KEY NUL ORIGIN` for a copy of what another node wrote. Copies are
made of the entries of nodes that are gone; they keep origin, time and boot, so that who wins does
not change with who holds it, and a copy that two nodes make is one write and no conflict.
"""

from hashlib import blake2b
from typing import Final

from smg_mesh.crdt.entry import Entry, EntryError, Held, decode_entry

COPY_MARK: Final = "\0"
WEIGHT_MIN: Final = 176
"""An entry counts for at least so many bytes: to read one in costs 3 µs however small it is, and a full
document is to be read in within 5 ms."""
_OVERHEAD: Final = 12  # bytes around name and value in an encoded document
_MARK_BYTES: Final = 16


def name_of_copy(key: str, origin: str) -> str:
    """Return the name under which another node's entry is kept."""
    return f"{key}{COPY_MARK}{origin}"


class Slot:
    """An entry and its place. `entry` is None if its bytes are none, and then nothing else counts."""

    __slots__ = (
        "_held",
        "entry",
        "key",
        "mark",
        "name",
        "old",
        "origin",
        "root",
        "text_bytes",
        "value",
        "weight",
    )

    def __init__(self, root: str, prefix: bytes, name: str, value: bytes) -> None:
        self.root = root
        self.name = name
        self.value = value
        """The bytes as they travel."""
        self.text_bytes = text_bytes = len(name) + len(value) + _OVERHEAD
        """What it takes in an encoded document, about."""
        self.weight = text_bytes if text_bytes > WEIGHT_MIN else WEIGHT_MIN
        """What it counts for in the size of a document, in bytes."""
        encoded = name.encode()
        text = b"%b%d:%b%b" % (prefix, len(encoded), encoded, value)
        self.mark = int.from_bytes(blake2b(text, digest_size=_MARK_BYTES).digest())
        """What it adds to the digest of its document."""
        self.old = False
        """It lies in a document of an earlier epoch, or in none any more."""
        self._held: Held | None = None
        if COPY_MARK in name:
            self.key, _, self.origin = name.partition(COPY_MARK)
        else:
            self.key, self.origin = name, root
        self.entry: Entry | None
        try:
            self.entry = decode_entry(value)
        except EntryError:
            self.entry = None

    @classmethod
    def at(cls, root: str, name: str, value: bytes) -> "Slot":
        """Return the slot of that entry in that root."""
        return cls(root, prefix_of(root), name, value)

    @property
    def plain(self) -> bool:
        """Whether its writer's own root holds it."""
        return self.name is self.key or self.name == self.key

    @property
    def said(self) -> Entry:
        """The entry of a slot that is readable."""
        assert self.entry is not None
        return self.entry

    @property
    def order(self) -> tuple[int, str]:
        """What decides between two writes of one key: the larger wins."""
        return (self.said.hlc, self.origin)

    @property
    def rank(self) -> tuple[int, int, bool, bool, str, bytes]:
        """A total order over all that one node wrote to one key: the largest is the one that counts."""
        entry = self.said
        return (entry.boot, entry.hlc, not self.old, self.plain, self.root, self.value)

    @property
    def held(self) -> Held:
        """The entry as views show it."""
        if self._held is None:
            self._held = Held(self.key, self.origin, self.said)
        return self._held


def weight_of(name: str, value: bytes) -> int:
    """Return what an entry counts for in the size of a document, in bytes."""
    return max(WEIGHT_MIN, len(name) + len(value) + _OVERHEAD)


def prefix_of(root: str) -> bytes:
    """Return how the hashed text of every entry in this root begins."""
    encoded = root.encode()
    return b"%d:%b" % (len(encoded), encoded)
