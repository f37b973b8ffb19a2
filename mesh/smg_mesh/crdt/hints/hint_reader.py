"""Hint reader: follows the hints that peers publish, as far as they
arrive, by count and XOR digest.

For every publisher and subject a count and an XOR say what is held, as of which number. Where the publisher's
digest is another one, everything about that subject is fetched, two at a time over all publishers, and
again later and later where that does not help. Changes that come while a subject is fetched are laid over
what was fetched. A gap in the numbers asks for the digests at once. What is only mentioned is passed on, and no
account is kept of it.

Nothing here is ever waited for, and wrong hints cost a cache miss: a message that makes no sense is refused,
one that comes too late is ignored, and what is unknown is missing until the next digest.
"""

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from operator import itemgetter, xor
from typing import Final

from smg_mesh.crdt.hints.hint_messages import (
    ADD,
    CLEAR,
    MENTION,
    UNHEARD,
    AskDigests,
    AskPart,
    Deltas,
    Digest,
    Digests,
    HintError,
    Part,
    Word,
    decode_word,
    encode_word,
    read_deltas,
    read_hashes,
)
from smg_mesh.crdt.hints.hint_store import HintStore

FETCHES_MAX: Final = 2
FETCH_MS: Final = 5_000
"""A part that has not come by then is not waited for."""
SILENT_MS: Final = 10_000
"""Of a publisher that does not answer nothing is fetched for so long: others have their turn."""
AGAIN_MS: Final = 1_000
AGAIN_MS_MAX: Final = 300_000
"""A subject that still differs is fetched again after one second, two, four, up to five minutes."""
ASK_APART_MS: Final = 1_000
SUBJECTS_MAX: Final = 65_536
"""Of one publisher; more are ignored."""
LATER_MAX: Final = 8_192
"""Changes kept while a subject is fetched; if there are more, the next digest will tell."""


@dataclass(slots=True)
class _Subject:
    """What is held of one subject of one publisher, and as of which number."""

    count: int = 0
    xor: int = 0
    since: int = 0
    """Changes before that number are in it, also such as arrive only now."""
    again_ms: int = 0
    tries: int = 0
    fetch: "_Fetch | None" = None


@dataclass(slots=True)
class _Fetch:
    """Everything about one subject, on its way."""

    asked_ms: int
    upto: int = 0
    xor: int = 0
    hashes: "array[int]" = field(default_factory=lambda: array("Q"))
    parts: int = 0
    later: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=LATER_MAX))
    """Changes since it began: number, hash, what happened."""


@dataclass(slots=True)
class _Owner:
    """One publisher in one life."""

    stream: int
    next: int = 0
    """The number of the next change; 0: nothing is known yet."""
    asked_ms: int | None = None
    doubtful: bool = False
    told: bool = False
    """It has said all its digests once, to what is wanted now."""
    silent_until_ms: int = 0
    subjects: dict[str, _Subject] = field(default_factory=dict)
    differing: dict[str, None] = field(default_factory=dict)


class HintReader:
    """The hints of all publishers. `wanted(owner, subject)` says whether that is held from there.

    It is asked whenever something comes, but for what is only mentioned.
    """

    def __init__(self, store: HintStore, *, wanted: Callable[[str, str], bool]) -> None:
        self._store: Final = store
        self._wanted: Final = wanted
        self._owners: dict[str, _Owner] = {}
        self._fetching = 0
        self.gaps = 0
        """How often changes were missed."""
        self.fetched = 0
        """How many subjects were fetched whole."""
        self.heard = 0
        """Changes that came, wanted or not."""

    # ── What comes ───────────────────────────────────────────────────────────

    def hear(self, owner: str, message: bytes, *, now_ms: int) -> Sequence[bytes]:
        """Take a message of a publisher, and return what to ask it; HintError for what tells nothing."""
        return self.take(owner, decode_word(message), now_ms=now_ms)

    def take(self, owner: str, word: Word, *, now_ms: int) -> Sequence[bytes]:
        """Take what a publisher says, and return what to ask it; HintError for a word that tells nothing."""
        if isinstance(word, AskDigests | AskPart):
            raise HintError("a reader is told, and asked nothing")
        changes = read_deltas(word) if isinstance(word, Deltas) else ()
        known = self._life(owner, word)
        if known is None:
            return ()
        if isinstance(word, Deltas):
            self._hear_deltas(owner, known, word.first, changes)
        elif isinstance(word, Digests):
            self._hear_digests(owner, known, word)
        elif isinstance(word, Part):
            return self._hear_part(owner, known, word, now_ms)
        else:
            self._hear_busy(known, word.subject, now_ms)
        return [encode_word(ask) for ask in self._asks(known, now_ms)]

    def due(self, now_ms: int) -> Sequence[tuple[str, bytes]]:
        """Return what to ask whom now. Call it about once a second; `hear` does it too."""
        asked: list[tuple[str, bytes]] = []
        for owner, known in self._owners.items():
            for subject in [one for one in known.differing if self._is_late(known, one, now_ms)]:
                self._end(known.subjects[subject], now_ms + SILENT_MS)
                known.silent_until_ms = now_ms + SILENT_MS
            asked += [(owner, encode_word(word)) for word in self._asks(known, now_ms)]
        return asked

    def forget_owner(self, owner: str) -> None:
        """Drop what a publisher said that is gone."""
        known = self._owners.pop(owner, None)
        if known is not None:
            for subject in list(known.subjects):
                self._drop(owner, known, subject, perhaps=True)

    def forget_subject(self, subject: str) -> None:
        """Drop all hints about a worker that was removed."""
        for owner, known in self._owners.items():
            self._drop(owner, known, subject)

    def forget(self, owner: str, subject: str) -> None:
        """Drop what one publisher said about a worker; it is taken in again when it is wanted and differs."""
        known = self._owners.get(owner)
        if known is not None:
            self._drop(owner, known, subject)

    def lost(self, owner: str, now_ms: int) -> None:
        """Learn that what was asked of a publisher, or its answer, may not have arrived: it is asked again."""
        known = self._owners.get(owner)
        if known is None:
            return
        for subject in known.differing:
            if known.subjects[subject].fetch is not None:
                self._end(known.subjects[subject], now_ms)

    def doubt(self) -> None:
        """Ask all publishers for their digests: what is wanted of them has changed. Till then none has arrived."""
        for known in self._owners.values():
            known.doubtful, known.told, known.asked_ms = True, False, None

    @property
    def at_rest(self) -> bool:
        """Whether nothing is asked, fetched, or to be asked of any publisher."""
        return not any(known.doubtful or known.differing for known in self._owners.values())

    def arrived(self, owner: str) -> bool:
        """Return whether a publisher has told its digests, and all that it had was fetched once, or tried to."""
        known = self._owners.get(owner)
        if known is None or not known.told:
            return False
        return all(known.subjects[subject].tries for subject in known.differing)

    def held(self, owner: str, subject: str) -> tuple[int, int]:
        """Return how many hashes are held, and their XOR."""
        known = self._owners.get(owner)
        found = None if known is None else known.subjects.get(subject)
        return (0, 0) if found is None else (found.count, found.xor)

    # ── Lives ────────────────────────────────────────────────────────────────

    def _life(self, owner: str, word: Word) -> _Owner | None:
        """Return the publisher in the life that speaks; None if that life is over."""
        known = self._owners.get(owner)
        if known is not None and word.stream < known.stream:
            return None
        if known is None or word.stream > known.stream:
            self.forget_owner(owner)
            known = self._owners[owner] = _Owner(word.stream)
        return known

    def _drop(self, owner: str, known: _Owner, subject: str, *, perhaps: bool = False) -> None:
        found = known.subjects.pop(subject, None)
        known.differing.pop(subject, None)
        if found is not None:
            if found.fetch is not None:
                self._fetching -= 1
            (self._store.doubt if perhaps else self._store.drop)(owner, subject)

    # ── Changes ──────────────────────────────────────────────────────────────

    def _hear_deltas(
        self, owner: str, known: _Owner, first: int, runs: Sequence[tuple[str, int, list[int]]]
    ) -> None:
        self._reach(known, first)
        number = first
        for subject, what, hashes in runs:
            behind = known.next - number
            fresh = hashes if behind <= 0 else hashes[behind:]
            number += len(hashes)
            if fresh and (what == MENTION or self._wanted(owner, subject)):
                self._change(owner, known, subject, (number - len(fresh), what, fresh))
        self.heard += number - first
        known.next = max(known.next, number)

    def _reach(self, known: _Owner, number: int) -> None:
        """Note what was missed before that number. Of the time before the first message all is unknown."""
        if number > known.next:
            self.gaps += known.next > 0
            known.doubtful = True
            known.next = number

    def _change(
        self, owner: str, known: _Owner, subject: str, run: tuple[int, int, list[int]]
    ) -> None:
        """Take in what happened to a subject, from that number on."""
        number, what, hashes = run
        if what == MENTION:
            self._store.mention(owner, subject, hashes)
            return
        found = known.subjects.get(subject)
        if found is None and what == ADD and len(known.subjects) < SUBJECTS_MAX:
            found = known.subjects[subject] = _Subject()
        if found is None:
            return
        if number < found.since:
            hashes = hashes[found.since - number :]
            number = found.since
        if not hashes:
            return
        if found.fetch is not None:
            found.fetch.later.extend((at, one, what) for at, one in enumerate(hashes, number))
        elif what == CLEAR:
            self._drop(owner, known, subject, perhaps=hashes[-1] == UNHEARD)
            return
        self._apply(owner, subject, found, what, hashes)

    def _apply(
        self, owner: str, subject: str, found: _Subject, what: int, hashes: Sequence[int]
    ) -> None:
        if what == CLEAR:
            found.count = found.xor = 0
            (self._store.doubt if hashes[-1] == UNHEARD else self._store.drop)(owner, subject)
            return
        found.xor = reduce(xor, hashes, found.xor)
        if what == ADD:
            found.count += len(hashes)
            self._store.add(owner, subject, hashes)
        else:
            found.count = max(0, found.count - len(hashes))
            self._store.remove(owner, subject, hashes)

    # ── Digests ──────────────────────────────────────────────────────────────

    def _hear_digests(self, owner: str, known: _Owner, word: Digests) -> None:
        if word.upto < known.next:
            return
        self._reach(known, word.upto)
        said = {digest.subject: digest for digest in word.digests}
        end = word.digests[-1].subject if word.digests else word.after
        for subject in sorted(known.subjects):
            in_page = word.after < subject and (word.last or subject <= end)
            if in_page and subject not in said and known.subjects[subject].since <= word.upto:
                self._drop(owner, known, subject)
        for digest in word.digests:
            self._compare(owner, known, digest, word.upto)
        if word.last:
            known.doubtful, known.told = False, True

    def _compare(self, owner: str, known: _Owner, digest: Digest, upto: int) -> None:
        subject = digest.subject
        if not self._wanted(owner, subject):
            self._drop(owner, known, subject)
            return
        found = known.subjects.get(subject)
        if found is None:
            if len(known.subjects) >= SUBJECTS_MAX:
                return
            found = known.subjects[subject] = _Subject()
        if found.fetch is not None or found.since > upto:
            return
        if (digest.count, digest.xor) == (found.count, found.xor):
            found.tries = found.again_ms = 0
            known.differing.pop(subject, None)
        else:
            known.differing[subject] = None

    # ── Fetching ─────────────────────────────────────────────────────────────

    def _asks(self, known: _Owner, now_ms: int) -> Iterator[Word]:
        may_ask = known.asked_ms is None or now_ms - known.asked_ms >= ASK_APART_MS
        if known.doubtful and may_ask:
            known.asked_ms = now_ms
            yield AskDigests(known.stream)
        for subject in list(known.differing):
            if self._fetching == FETCHES_MAX or now_ms < known.silent_until_ms:
                return
            found = known.subjects[subject]
            if found.fetch is None and now_ms >= found.again_ms:
                found.fetch = _Fetch(now_ms)
                self._fetching += 1
                yield AskPart(known.stream, subject, 0)

    def _is_late(self, known: _Owner, subject: str, now_ms: int) -> bool:
        fetch = known.subjects[subject].fetch
        return fetch is not None and now_ms - fetch.asked_ms >= FETCH_MS

    def _end(self, found: _Subject, again_ms: int) -> None:
        found.fetch = None
        found.again_ms = again_ms
        self._fetching -= 1

    def _hear_busy(self, known: _Owner, subject: str, now_ms: int) -> None:
        found = known.subjects.get(subject)
        if found is not None and found.fetch is not None:
            self._end(found, now_ms + AGAIN_MS)

    def _hear_part(self, owner: str, known: _Owner, word: Part, now_ms: int) -> Sequence[bytes]:
        found = known.subjects.get(word.subject)
        fetch = None if found is None else found.fetch
        if found is None or fetch is None or word.part != fetch.parts:
            return ()
        if word.part and word.upto != fetch.upto:
            return ()
        fetch.upto, fetch.asked_ms = word.upto, now_ms
        fetch.parts += 1
        hashes = read_hashes(word.packed)
        fetch.xor = reduce(xor, hashes, fetch.xor)
        fetch.hashes.extend(hashes)
        if not word.last:
            ask = AskPart(known.stream, word.subject, fetch.parts, fetch.upto)
            return [encode_word(ask)]
        self._finish(owner, known, word.subject, now_ms)
        return [encode_word(ask) for ask in self._asks(known, now_ms)]

    def _finish(self, owner: str, known: _Owner, subject: str, now_ms: int) -> None:
        """Hold what was fetched, with the later changes on top; whether it is right, a digest tells."""
        found = known.subjects[subject]
        fetch = found.fetch
        assert fetch is not None
        self._end(found, now_ms + min(AGAIN_MS << min(found.tries, 16), AGAIN_MS_MAX))
        found.tries += 1
        del known.differing[subject]
        found.count, found.since = len(fetch.hashes), fetch.upto
        found.xor = fetch.xor
        self._store.replace(owner, subject, fetch.hashes)
        self.fetched += 1
        later = [change for change in fetch.later if change[0] >= fetch.upto]
        for what, run in groupby(later, key=itemgetter(2)):
            self._apply(owner, subject, found, what, [block_hash for _, block_hash, _ in run])
