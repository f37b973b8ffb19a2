"""Where the hashes of an index lie, in one of two forms: a dict, or one flat buffer.

A *value* is a small number that is never 0; its lowest bit says whether somebody looked for the hash since the
hand came by. The *hand* goes round over all places for ever, a few at a time, and asks for each what shall become
of it: that is how what is void is swept, and what nobody looks for makes room (the clock algorithm, Corbató 1968).

`DictTable` is the faster one. `FlatTable` lies in a buffer of a fixed size that anybody may provide, shared memory
for one, and a reader needs nothing but the buffer: 12 bytes a place, open addressing, linear probing.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final, Protocol, TypeAlias

Judge: TypeAlias = Callable[[int, int], int]
"""What becomes of (hash, value): the value it has from now on, 0 to drop it."""

PLACE_BYTES: Final = 12
_NOBODY: Final = repeat(0)


class Table(Protocol):
    """Hashes and their values. Whoever uses it keeps it within its bound."""

    def __len__(self) -> int:
        """Return how many hashes it has."""
        ...

    def get(self, one: int, /) -> int:
        """Return the value of a hash, 0 if it is not there."""
        ...

    def look(self, hashes: Sequence[int]) -> list[int]:
        """Return the value of each hash."""
        ...

    def add(self, hashes: Sequence[int], value: int) -> None:
        """Give hashes that are not there, each named once, a value."""
        ...

    def put(self, hashes: Sequence[int], value: int) -> None:
        """Give hashes that are there another value."""
        ...

    def turn(self, places: int, judge: Judge) -> bool:
        """Let the hand go over that many places at most; return whether it came to the end, where it stops."""
        ...

    def ahead(self, places: int) -> set[int]:
        """Return the values, each once, that the hand comes by on the next so many places."""
        ...

    def skip(self, places: int) -> bool:
        """Let the hand go on as `turn` does where everything stays as it is."""
        ...

    def items(self) -> Iterable[tuple[int, int]]:
        """Return all hashes with their values; nothing may change while they are read."""
        ...


class DictTable:
    """Hashes in a dict, with a list of them for the hand."""

    def __init__(self) -> None:
        self._values: dict[int, int] = {}
        self._ring: list[int] = []
        self._hand = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, one: int, /) -> int:
        """See `Table`."""
        return self._values.get(one, 0)

    def look(self, hashes: Sequence[int]) -> list[int]:
        """See `Table`."""
        return [*map(self._values.get, hashes, _NOBODY)]

    def add(self, hashes: Sequence[int], value: int) -> None:
        """See `Table`."""
        self._ring.extend(hashes)
        self._values.update(zip(hashes, repeat(value)))

    def put(self, hashes: Sequence[int], value: int) -> None:
        """See `Table`."""
        self._values.update(zip(hashes, repeat(value)))

    def turn(self, places: int, judge: Judge) -> bool:
        """See `Table`."""
        ring, values, hand = self._ring, self._values, self._hand
        for _ in range(places):
            if hand >= len(ring):
                break
            one = ring[hand]
            value = values[one]
            after = judge(one, value)
            if not after:
                del values[one]
                last = ring.pop()
                if hand < len(ring):
                    ring[hand] = last
                continue
            if after != value:
                values[one] = after
            hand += 1
        ended = hand >= len(ring)
        self._hand = 0 if ended else hand
        return ended

    def ahead(self, places: int) -> set[int]:
        """See `Table`."""
        hand = self._hand
        return set(map(self._values.__getitem__, self._ring[hand : hand + places]))

    def skip(self, places: int) -> bool:
        """See `Table`."""
        hand = self._hand + places
        ended = hand >= len(self._ring)
        self._hand = 0 if ended else hand
        return ended

    def items(self) -> Iterable[tuple[int, int]]:
        """See `Table`."""
        return self._values.items()


class FlatTable:
    """Hashes in one buffer: first all hashes, eight bytes each, then all values, four bytes each."""

    def __init__(self, places: int, buffer: memoryview | None = None) -> None:
        assert places & (places - 1) == 0, "a mask finds the place"
        self._mask: Final = places - 1
        self._keys: memoryview | array[int]
        self._values: memoryview | array[int]
        if buffer is None:
            self._keys, self._values = array("Q", bytes(8 * places)), array("I", bytes(4 * places))
        else:
            self._keys = buffer[: 8 * places].cast("Q")
            self._values = buffer[8 * places : PLACE_BYTES * places].cast("I")
        self._hand = 0
        self._count = sum(1 for value in self._values if value)

    def __len__(self) -> int:
        return self._count

    def get(self, one: int, /) -> int:
        """See `Table`."""
        return self.look((one,))[0]

    def look(self, hashes: Sequence[int]) -> list[int]:
        """See `Table`."""
        keys, values, mask = self._keys, self._values, self._mask
        found: list[int] = []
        say = found.append
        for one in hashes:
            at = one & mask
            value = values[at]
            while value and keys[at] != one:
                at = (at + 1) & mask
                value = values[at]
            say(value)
        return found

    def add(self, hashes: Sequence[int], value: int) -> None:
        """See `Table`."""
        assert self._count + len(hashes) <= self._mask, "probing ends at an empty place"
        keys, values, mask = self._keys, self._values, self._mask
        for one in hashes:
            at = one & mask
            while values[at]:
                at = (at + 1) & mask
            # A reader in between sees no value, and then the right one.
            keys[at] = one
            values[at] = value
        self._count += len(hashes)

    def put(self, hashes: Sequence[int], value: int) -> None:
        """See `Table`."""
        keys, values, mask = self._keys, self._values, self._mask
        for one in hashes:
            at = one & mask
            while keys[at] != one or not values[at]:
                at = (at + 1) & mask
            values[at] = value

    def release(self) -> None:
        """Let go of the buffer; the table is of no use after that."""
        for part in (self._keys, self._values):
            if isinstance(part, memoryview):
                part.release()

    def turn(self, places: int, judge: Judge) -> bool:
        """See `Table`."""
        keys, values, mask, hand = self._keys, self._values, self._mask, self._hand
        for _ in range(places):
            if hand > mask:
                break
            value = values[hand]
            after = value and judge(keys[hand], value)
            if after == value:
                hand += 1
            elif after:
                values[hand] = after
                hand += 1
            else:
                # What comes in its place is looked at next.
                self._drop(hand)
        ended = hand > mask
        self._hand = 0 if ended else hand
        return ended

    def ahead(self, places: int) -> set[int]:
        """See `Table`."""
        hand = self._hand
        return {*self._values[hand : hand + places]} - {0}

    def skip(self, places: int) -> bool:
        """See `Table`."""
        hand = self._hand + places
        ended = hand > self._mask
        self._hand = 0 if ended else hand
        return ended

    def _drop(self, hole: int) -> None:
        """Take a hash out, and move those up that were put behind it for want of room. Knuth, 6.4, R."""
        keys, values, mask = self._keys, self._values, self._mask
        self._count -= 1
        at = (hole + 1) & mask
        while values[at]:
            home = keys[at] & mask
            if ((at - home) & mask) >= ((at - hole) & mask):
                keys[hole] = keys[at]
                values[hole] = values[at]
                hole = at
            at = (at + 1) & mask
        values[hole] = 0

    def items(self) -> Iterator[tuple[int, int]]:
        """See `Table`."""
        pairs = zip(self._keys, self._values, strict=True)
        return ((one, value) for one, value in pairs if value)
