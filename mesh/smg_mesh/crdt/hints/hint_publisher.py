"""Hint publisher: tells peers which hints came and went, within a
budget of bytes a second for each.

Hints are cheap to lose: a wrong one costs a cache miss. So each change of this node's own hints gets a number
and is offered to every peer once. A peer gets at most a budget of bytes a second; what would wait longer
than a second is dropped, the oldest first, and the peer sees a gap in the numbers. Every few seconds, and
when it asks, a peer gets the digest of each subject; where that differs it fetches all of that subject, a
part at a time, at its own pace. At most two peers are served so at once. While nothing changes, a peer gets
its digests every quarter of an hour, in large clusters more seldom.

    change ──▶ ring of changes ──▶ per peer: Deltas within the budget ─▶ HintReader
                                            Digests each 5 s          ─▶ differs? AskPart, Part, AskPart …

The publisher keeps no hints: the index that has them calls `add` and `remove` for what really
changed, and names them all again when a peer asks (`contents`). It has no clock, and sends nothing
by itself. A *quiet* one keeps count, and says that it has nothing: where all know the same at first
hand, no peer needs to be told.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from smg_mesh.crdt.hints.hint_messages import (
    ADD,
    CLEAR,
    DELTA_BYTES,
    EMPTY,
    HASH_BYTES,
    MENTION,
    MESSAGE_BYTES_MAX,
    PART_HASHES,
    PARTS_MAX,
    REMOVE,
    SUBJECT_CHARS_MAX,
    SUBJECTS_MAX,
    UNHEARD,
    AskDigests,
    AskPart,
    Busy,
    Deltas,
    Digest,
    Digests,
    HintError,
    Part,
    Word,
    decode_word,
    encode_word,
    pack_delta,
    pack_hashes,
)

HEAD_BYTES: Final = 64
"""Of a message beside changes and names, at most."""
PAGE_BYTES: Final = 16_384
"""Of one page of digests, at most; it is smaller where the budget is."""
PAGE_BYTES_MIN: Final = 1024
DIGEST_BYTES: Final = 24
"""Of one digest beside the name, at most."""
DIGESTS_APART_MS: Final = 250
"""A peer that asks gets digests that often at most."""
DIGESTS_IDLE_MS: Final = 900_000
"""Between two rounds of digests where nothing has changed since the first of them: at rest every call is a new
connection, of 4 KB and 3 ms."""
DIGESTS_IDLE_PER_PEER_MS: Final = 30_000
"""The same among more than 30 peers, for each: so that a node at rest calls and is called twice a minute, however many
there are."""
SERVED_MAX: Final = 2
SERVED_MS: Final = 10_000
"""A peer that asks for no further part in that time is served no longer."""


@dataclass(slots=True)
class _Served:
    """All of one subject as of a number, on its way to a peer."""

    upto: int
    packed: bytes
    asked_ms: int

    def part(self, number: int) -> bytes | None:
        """Return that part; the first one of nothing is empty."""
        start = number * PART_HASHES * HASH_BYTES
        if number and start >= len(self.packed):
            return None
        return self.packed[start : start + PART_HASHES * HASH_BYTES]

    def is_last(self, number: int) -> bool:
        """Return whether no part comes after that one."""
        return (number + 1) * PART_HASHES * HASH_BYTES >= len(self.packed)


@dataclass(slots=True)
class _Peer:
    """How far one peer has been told."""

    next: int
    room_bytes: float
    seen_ms: int
    digests_due_ms: int
    after: str = ""
    """Digests up to that name are told, the rest of this round is not."""
    version: int = -1
    """What the digests of the last round that began were of."""
    idle: bool = False
    """Its digests are told, and nothing has changed since."""


class HintStream:
    """Stream of this node's own hints. `contents(subject)` names its hashes.

    `stream` is larger in every life; 0, until `begin`, is that of a node that is told nothing yet.
    """

    def __init__(
        self,
        stream: int = 0,
        *,
        contents: Callable[[str], Iterable[int]],
        bytes_per_s: int = 65_536,
        digest_interval_ms: int = 5_000,
    ) -> None:
        self._stream = stream
        self._contents: Final = contents
        self._bytes_per_s: Final = bytes_per_s
        self._digest_interval_ms: Final = digest_interval_ms
        self._recent: Final[deque[tuple[int, str, int]]] = deque(maxlen=bytes_per_s // DELTA_BYTES)
        self._next = 1
        self._digests: dict[str, list[int]] = {}
        self._sorted: list[str] | None = None
        self._version = 0
        """Of all digests; another one whenever one of them changes."""
        self._quiet = False
        self._peers: dict[str, _Peer] = {}
        self._met: dict[str, int] = {}
        """Peers that nothing was due for yet, and the number as of which they are told."""
        self._served: dict[str, dict[str, _Served]] = {}
        """By peer and subject."""
        self.dropped = 0
        """Changes that some peer was never told, counted for each such peer."""
        self.told = 0
        """Changes that were told, counted for each peer."""

    def begin(self, stream: int) -> None:
        """Go on as that life: all peers are told anew."""
        self._stream = stream
        self._peers.clear()
        self._met.clear()
        self._served.clear()

    # ── What changes ─────────────────────────────────────────────────────────

    def keep_quiet(self, *, quiet: bool) -> None:
        """Tell peers nothing but what is mentioned, until told otherwise; what they hold of it they drop."""
        if quiet != self._quiet:
            self._quiet = quiet
            self._sorted = None
            self._version += 1
            for known in self._peers.values():
                known.digests_due_ms, known.after = 0, ""

    def mention(self, subject: str, hashes: Iterable[int]) -> None:
        """Say that a subject may have these, of which no account is kept."""
        assert 0 < len(subject) <= SUBJECT_CHARS_MAX
        for block_hash in hashes:
            self._recent.append((block_hash, subject, MENTION))
            self._next += 1

    def add(self, subject: str, block_hash: int) -> None:
        """Say that a subject has a hash that it had not."""
        digest = self._digests.get(subject)
        if digest is None:
            assert 0 < len(subject) <= SUBJECT_CHARS_MAX
            digest = self._digests[subject] = [0, 0]
            self._sorted = None
        digest[0] += 1
        digest[1] ^= block_hash
        self._note(block_hash, subject, ADD)

    def remove(self, subject: str, block_hash: int) -> None:
        """Say that a subject lost a hash that it had."""
        digest = self._digests[subject]
        digest[0] -= 1
        digest[1] ^= block_hash
        if digest[0] == 0:
            del self._digests[subject]
            self._sorted = None
        self._note(block_hash, subject, REMOVE)

    def clear(self, subject: str, *, perhaps: bool = False) -> None:
        """Say that a subject has nothing any more, or is gone; or that it has it `perhaps`: it is not heard here."""
        if self._digests.pop(subject, None) is not None:
            self._sorted = None
            self._note(UNHEARD if perhaps else EMPTY, subject, CLEAR)

    def _note(self, block_hash: int, subject: str, what: int) -> None:
        self._version += 1
        if self._quiet:
            return
        self._recent.append((block_hash, subject, what))
        self._next += 1

    # ── What peers are told ──────────────────────────────────────────────────

    def meet(self, peer: str) -> None:
        """Learn of a peer: it is told what changes from now on, however late the first look for what is due to it."""
        if peer not in self._peers:
            self._met.setdefault(peer, self._next)

    def due(self, peer: str, now_ms: int) -> Sequence[bytes]:
        """Return what to send to a peer now, in order. Call it for each peer, ten times a second or so."""
        known = self._known(peer, now_ms)
        spent_ms = max(0, now_ms - known.seen_ms)
        full = float(self._bytes_per_s)
        known.room_bytes = min(full, known.room_bytes + full * spent_ms / 1000)
        known.seen_ms = now_ms
        if known.idle and known.version != self._version:
            known.idle = False
            known.digests_due_ms = min(known.digests_due_ms, now_ms + self._digest_interval_ms)
        late_ms = now_ms - known.digests_due_ms
        # A peer that never catches up is told the digests instead: they say what it needs.
        hopeless = late_ms >= self._digest_interval_ms
        self._skip_to(known, self._next if hopeless else self._next - len(self._recent))
        messages = list(self._deltas(known))
        if late_ms >= 0 and known.next == self._next and known.room_bytes >= PAGE_BYTES_MIN:
            messages.append(self._page(known, now_ms))
        return messages

    def rests_until_ms(self, peer: str) -> int | None:
        """Return when a peer's next digests are due; None if it has something to be told before."""
        known = self._peers.get(peer)
        if known is None or known.next < self._next:
            return None
        if known.idle and known.version != self._version:
            return None
        return known.digests_due_ms

    def hear(self, peer: str, message: bytes, *, now_ms: int) -> Sequence[bytes]:
        """Answer what a peer asks; HintError for bytes that ask nothing."""
        return self.take(peer, decode_word(message), now_ms=now_ms)

    def take(self, peer: str, word: Word, *, now_ms: int) -> Sequence[bytes]:
        """Answer what a peer asks; HintError for a word that asks nothing."""
        if not isinstance(word, AskDigests | AskPart):
            raise HintError("a publisher is asked, and told nothing")
        if word.stream != self._stream:
            return ()
        known = self._known(peer, now_ms)
        if isinstance(word, AskDigests):
            self._hurry(known, now_ms)
            return ()
        return [encode_word(self._answer(peer, word, now_ms))]

    def lost(self, peer: str, now_ms: int) -> None:
        """Learn that something that was due may not have arrived: the peer gets digests soon."""
        known = self._peers.get(peer)
        if known is not None:
            self._hurry(known, now_ms)

    def _hurry(self, known: _Peer, now_ms: int) -> None:
        known.digests_due_ms = min(known.digests_due_ms, now_ms + DIGESTS_APART_MS)
        known.after, known.version, known.idle = "", -1, False

    def forget(self, peer: str) -> None:
        """Forget a peer that is gone."""
        self._peers.pop(peer, None)
        self._met.pop(peer, None)
        self._served.pop(peer, None)

    def _known(self, peer: str, now_ms: int) -> _Peer:
        known = self._peers.get(peer)
        if known is None:
            first, room_bytes = self._met.pop(peer, self._next), float(self._bytes_per_s)
            known = self._peers[peer] = _Peer(first, room_bytes, now_ms, now_ms)
        return known

    def _skip_to(self, known: _Peer, number: int) -> None:
        if known.next < number:
            self.dropped += number - known.next
            known.next = number

    def _deltas(self, known: _Peer) -> Iterator[bytes]:
        """Yield the changes that a peer has not been told, in order, while there is room."""
        while known.next < self._next:
            first = known.next
            start = len(self._recent) - (self._next - first)
            places: dict[str, int] = {}
            packed = bytearray()
            room = min(int(known.room_bytes), MESSAGE_BYTES_MAX) - HEAD_BYTES
            for block_hash, subject, what in islice(self._recent, start, None):
                place = places.get(subject)
                cost = DELTA_BYTES + (0 if place is not None else len(subject.encode()) + 3)
                if cost > room or (place is None and len(places) == SUBJECTS_MAX):
                    break
                room -= cost
                place = places.setdefault(subject, len(places))
                packed += pack_delta(block_hash, place, what)
            if not packed:
                return
            known.next += len(packed) // DELTA_BYTES
            self.told += len(packed) // DELTA_BYTES
            message = encode_word(Deltas(self._stream, first, tuple(places), bytes(packed)))
            known.room_bytes -= len(message)
            yield message

    def _page(self, known: _Peer, now_ms: int) -> bytes:
        """Return the next page of digests, and note when the one after it is due."""
        if self._sorted is None:
            self._sorted = [] if self._quiet else sorted(self._digests)
        if not known.after:
            known.idle, known.version = known.version == self._version, self._version
        digests: list[Digest] = []
        room = min(int(known.room_bytes), PAGE_BYTES) - HEAD_BYTES
        place = bisect_right(self._sorted, known.after)
        for subject in islice(self._sorted, place, None):
            room -= len(subject.encode()) + DIGEST_BYTES
            if room < 0:
                break
            digests.append(Digest(subject, *self._digests[subject]))
        last = place + len(digests) == len(self._sorted)
        page = Digests(self._stream, self._next, known.after, tuple(digests), last)
        interval_ms = self._idle_ms() if known.idle else self._digest_interval_ms
        known.digests_due_ms = now_ms + (interval_ms if last else 0)
        known.after = "" if last else digests[-1].subject
        message = encode_word(page)
        known.room_bytes -= len(message)
        return message

    def _idle_ms(self) -> int:
        return max(DIGESTS_IDLE_MS, DIGESTS_IDLE_PER_PEER_MS * len(self._peers))

    # ── Everything about one subject ─────────────────────────────────────────

    def _answer(self, peer: str, word: AskPart, now_ms: int) -> Part | Busy:
        """Return the part that is asked for, or that this must be asked later or from the beginning."""
        served = self._served.setdefault(peer, {})
        if word.part == 0:
            self._let_go(now_ms)
            if word.subject not in served and not self._may_serve(peer):
                return Busy(self._stream, word.subject)
            served[word.subject] = _Served(self._next, self._packed(word.subject), now_ms)
        found = served.get(word.subject)
        part = None if found is None else found.part(word.part)
        if found is None or part is None or (word.part and word.upto != found.upto):
            return Busy(self._stream, word.subject)
        found.asked_ms = now_ms
        last = found.is_last(word.part)
        if last:
            del served[word.subject]
        return Part(self._stream, word.subject, word.part, found.upto, last, part)

    def _packed(self, subject: str) -> bytes:
        if self._quiet:
            return b""
        return pack_hashes(islice(self._contents(subject), PART_HASHES * PARTS_MAX))

    def _may_serve(self, peer: str) -> bool:
        busy = [name for name, served in self._served.items() if served and name != peer]
        return len(busy) < SERVED_MAX and len(self._served[peer]) < SERVED_MAX

    def _let_go(self, now_ms: int) -> None:
        """Serve no longer who asks for no further part."""
        for served in self._served.values():
            for subject in [one for one in served if now_ms - served[one].asked_ms > SERVED_MS]:
                del served[subject]
