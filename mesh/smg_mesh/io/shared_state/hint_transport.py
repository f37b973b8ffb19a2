"""Hint transport: cache hints between this node and its peers, sent as
letters and lost without harm.

    hints.connect(store, contents=…, wanted=…)     # by the owner of the index; without it there are none
    hints.add(subject, hash) …                     # what really changed, of this node's own
    await hints.run()                              # a task of shared state's: calls peers when there is something

Hints are in no document, on no disk, and in no rumor. What travels is decided in
`sync.hint_sessions`; here it is sent, as questions about the topic `hints`, and a mistake about
them is kept from the rest of the mesh.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from smg_mesh.config import StateOptions
from smg_mesh.crdt.hints.hint_messages import HintError
from smg_mesh.crdt.hints.hint_store import HintStore
from smg_mesh.io.counters import Counters
from smg_mesh.sync.hint_sessions import HintSessions

TOPIC: Final = "hints"
NOTES: Final[Mapping[str, str]] = {
    "hint_call": "calls to and from peers about hints; detail: sent, failed, or served",
    "hint_fault": "hints that failed because of a mistake of ours",
}
CALLS_MAX: Final = 8
"""Under way at a time: each may hold a letter and an answer, 1 MiB at worst."""
CALL_S: Final = 5.0
TICK_S: Final = 0.1
REST_S: Final = 0.25
"""Between two looks when the last one found nothing to say, but something may be due at any time. Where nothing is,
there is no look: four wake-ups a second were half of what an idle node cost."""
_FAULTS_LOGGED_MAX: Final = 20

_log: Final = logging.getLogger("smg_mesh.hints")
T = TypeVar("T")


class NotDeliveredError(Exception):
    """A peer did not take a letter; it may take a later one."""


class LetterSender(Protocol):
    """Carrier of letters to peers."""

    async def take_hints(self, name: str, letter: bytes, *, deadline_s: float) -> bytes:
        """Return what a member answers; NotDeliveredError."""
        ...


class Hints:
    """Hints of this node, in conversation with its peers; used in the loop's thread only."""

    def __init__(
        self, options: StateOptions, *, now_ms: Callable[[], int], counters: Counters
    ) -> None:
        self._options: Final = options
        self._now_ms: Final = now_ms
        self._counters: Final = counters
        self._postman: LetterSender | None = None
        self._talk: HintSessions | None = None
        self._met: str | None = None
        self._calls = 0
        self._faults = 0
        self._stirred: Final = asyncio.Event()
        """Something happened that a peer may have to be called for."""

    # ── Whoever has the index ────────────────────────────────────────────────

    def connect(
        self,
        store: HintStore,
        *,
        contents: Callable[[str], Iterable[int]],
        wanted: Callable[[str, str], bool],
        joined: Callable[[Mapping[str, int]], object] | None = None,
    ) -> None:
        """Let `store` hear what peers say, as far as it is `wanted(peer, subject)`; before the mesh starts.

        `contents(subject)` names each of this node's own hashes once: those that were added and not
        removed. `joined` is told which peers came to live and in which life, before anything is
        said to them.
        """
        assert self._talk is None
        self._talk = HintSessions(
            store,
            contents=contents,
            wanted=wanted,
            joined=joined,
            bytes_per_s=self._options.hint_bytes_per_s,
            digest_interval_ms=self._options.hint_digest_ms,
        )

    def add(self, subject: str, block_hash: int) -> None:
        """Say that a subject has a hash that it had not."""
        if self._talk is not None:
            self._talk.stream.add(subject, block_hash)
            self._stirred.set()

    def remove(self, subject: str, block_hash: int) -> None:
        """Say that a subject lost a hash that it had."""
        if self._talk is not None:
            self._talk.stream.remove(subject, block_hash)
            self._stirred.set()

    def clear(self, subject: str, *, perhaps: bool = False) -> None:
        """Say that a subject has nothing any more; or has it `perhaps`, because this node hears it no more."""
        if self._talk is not None:
            self._talk.stream.clear(subject, perhaps=perhaps)
            self._stirred.set()

    def mention(self, subject: str, hashes: Iterable[int]) -> None:
        """Say that a subject may have these; no account is kept of it."""
        if self._talk is not None:
            self._talk.stream.mention(subject, hashes)
            self._stirred.set()

    def keep_quiet(self, *, quiet: bool) -> None:
        """Tell nothing but what is mentioned, until told otherwise."""
        if self._talk is not None:
            self._talk.stream.keep_quiet(quiet=quiet)
            self._stirred.set()

    def forget(self, subject: str) -> None:
        """Drop what all peers said of a subject; if still wanted, it comes again by digests."""
        if self._talk is not None:
            self._talk.reader.forget_subject(subject)
            self._stirred.set()

    def look_again(self) -> None:
        """Ask all peers what they have: other things are wanted than before."""
        if self._talk is not None:
            self._talk.reader.doubt()
            self._stirred.set()

    def missing(self) -> Sequence[str]:
        """Return the living peers that answer and whose hints are not all here yet, as of a first look."""
        talk = self._talk
        if talk is None:
            return ()
        peers = talk.peers()
        if not peers and self._met is not None:
            return [self._met]
        return [name for name in peers if not talk.is_deaf(name) and not talk.reader.arrived(name)]

    def silent_s(self) -> Mapping[str, float]:
        """Return for how long nothing was heard of each peer.

        One at rest calls every quarter of an hour, or after half a minute for each node where that is longer.
        """
        silent = {} if self._talk is None else self._talk.silent_ms(self._now_ms())
        return {name: ms / 1000 for name, ms in silent.items()}

    def figures(self) -> Mapping[str, int]:
        """Return how much was told, heard, dropped, fetched, missed and refused since the start."""
        talk = self._talk
        if talk is None:
            return {}
        return {
            "told": talk.stream.told,
            "dropped": talk.stream.dropped,
            "heard": talk.reader.heard,
            "fetched": talk.reader.fetched,
            "gaps": talk.reader.gaps,
            "refused": talk.refused,
            "sent_bytes": talk.sent_bytes,
        }

    # ── The mesh ─────────────────────────────────────────────────────────────

    def deliver_by(self, postman: LetterSender) -> None:
        """Let letters be taken to peers by this; before `run`."""
        self._postman = postman

    def begin(self, boot: int) -> None:
        """Begin this node's life."""
        if self._talk is not None:
            self._talk.begin(boot)
            self._stirred.set()

    def set_peers(self, living: Mapping[str, int]) -> None:
        """Learn which others live, and in which life."""
        talk = self._talk
        if talk is not None:
            self._guarded(lambda: talk.set_peers(living), None)
            self._stirred.set()

    def met(self, peer: str) -> None:
        """Learn of a peer that is about to be known as living."""
        self._met = peer

    async def answer(self, letter: bytes, caller: str) -> bytes:
        """Take a peer's letter, and return the answer; HintError for one that is not a member here yet."""
        talk = self._talk
        if talk is None:
            raise HintError("this node has no index")
        self._counters.add("hint_call", "served")
        self._stirred.set()
        return self._guarded(lambda: talk.hear(caller, letter, self._now_ms()), b"\x90")

    async def run(self) -> None:
        """Call peers until cancelled; returns at once if there can be none."""
        talk, postman = self._talk, self._postman
        if talk is None or postman is None:
            return
        async with asyncio.TaskGroup() as group:
            while True:
                calls = self._due(talk)
                for name, letter in calls:
                    self._calls += 1
                    group.create_task(self._call(talk, postman, name, letter))
                if calls:
                    await asyncio.sleep(TICK_S)
                else:
                    await self._rest(talk)

    async def _rest(self, talk: HintSessions) -> None:
        """Wait until something may be due: for what happens, or for the next digests."""
        self._stirred.clear()
        now_ms = self._now_ms()
        until_ms = self._guarded(lambda: talk.rests_until_ms(now_ms), None)
        if until_ms is None:
            await asyncio.sleep(REST_S)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout((until_ms - now_ms) / 1000):
                await self._stirred.wait()
            # Whatever comes together with it goes into the same letter.
            await asyncio.sleep(TICK_S)

    def _due(self, talk: HintSessions) -> Sequence[tuple[str, bytes]]:
        calls_max = CALLS_MAX - self._calls
        return self._guarded(lambda: talk.due(self._now_ms(), calls_max=calls_max), ())

    async def _call(
        self, talk: HintSessions, postman: LetterSender, name: str, letter: bytes
    ) -> None:
        following: bytes | None = letter
        try:
            while following is not None:
                following = await self._one(talk, postman, name, following)
        finally:
            self._calls -= 1
            self._stirred.set()

    async def _one(
        self, talk: HintSessions, postman: LetterSender, name: str, letter: bytes
    ) -> bytes | None:
        """Take one letter to a peer; return what is to be said next at once."""
        try:
            answer = await postman.take_hints(name, letter, deadline_s=CALL_S)
        except NotDeliveredError:
            self._counters.add("hint_call", "failed")
            talk.failed(name, self._now_ms())
            return None
        self._counters.add("hint_call", "sent")
        return self._guarded(lambda: talk.answered(name, answer, self._now_ms()), None)

    def _guarded(self, act: Callable[[], T], otherwise: T) -> T:
        try:
            return act()
        except HintError:
            raise
        except Exception:
            # A door: a mistake about hints must not take membership or the gateway with it.
            self._counters.add("hint_fault")
            self._faults += 1
            if self._faults <= _FAULTS_LOGGED_MAX:
                _log.exception("hints failed on one input, which is dropped")
            return otherwise
