"""Hint sessions: conversations of one node with its peers about hints:
which to call, when, and with what.

Each node calls each peer, one call at a time, when it has something to say to it: changes within its budget,
digests, questions. The answer of a call carries what the peer has to say to that: parts, and questions of its
own. So a call that succeeds has arrived, a slow peer slows down its own hints only, and a fetch is a call a part.

    letter ──▶ call ──▶ heard   at the peer, which answers with what follows from it
    answered ◀── answer ◀──┘    what follows from that is the next letter, at once

A call that fails is lost with all that was in it. The next one comes a quarter of a second later,
then half a second, up to half a minute, and begins with digests. A node that is no member is told
nothing and not listened to. Pure: times are arguments, and the caller makes the calls.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from smg_mesh.crdt.hints.hint_messages import AskDigests, AskPart, HintError, decode_word
from smg_mesh.crdt.hints.hint_publisher import HintStream
from smg_mesh.crdt.hints.hint_reader import HintReader
from smg_mesh.crdt.hints.hint_store import HintStore

MESSAGES_MAX: Final = 64
"""In one letter; what is more comes in the next one."""
LETTER_BYTES_MAX: Final = 524_288
"""A second of changes, a page of digests, and the parts that two questions ask for."""
APART_MS: Final = 100
CALLS_PER_S_MAX: Final = 100
"""To all peers together: a call costs 0.3 ms of both ends. Among many peers each is called less often."""
AGAIN_MS: Final = 250
AGAIN_MS_MAX: Final = 30_000
REST_MAX_MS: Final = 900_000
"""Without anything to wait for."""
WAITING_MAX: Final = 64
"""Messages to one peer that wait for the next call; the newest are kept."""

_Message = Annotated[bytes, Meta(max_length=LETTER_BYTES_MAX)]
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(
    Annotated[list[_Message], Meta(max_length=MESSAGES_MAX)],
)


@dataclass(slots=True)
class _Peer:
    """One living member."""

    boot: int
    heard_ms: int | None = None
    next_ms: int = 0
    failures: int = 0
    calling: bool = False
    waiting: list[bytes] = field(default_factory=list)


class HintSessions:
    """Hints that this node publishes and follows. `store` and `contents` belong to the index."""

    def __init__(
        self,
        store: HintStore,
        *,
        contents: Callable[[str], Iterable[int]],
        wanted: Callable[[str, str], bool],
        joined: Callable[[Mapping[str, int]], object] | None = None,
        bytes_per_s: int = 65_536,
        digest_interval_ms: int = 5_000,
    ) -> None:
        self._joined: Final = joined
        self.stream: Final = HintStream(
            contents=contents, bytes_per_s=bytes_per_s, digest_interval_ms=digest_interval_ms
        )
        self.reader: Final = HintReader(store, wanted=wanted)
        self.refused = 0
        """Letters of strangers, and messages that made no sense."""
        self.sent_bytes = 0
        self._peers: dict[str, _Peer] = {}
        self._begun = False

    def begin(self, boot: int) -> None:
        """Begin this node's life: larger than that of any before."""
        self._begun = True
        self.stream.begin(boot)

    # ── Who is there ─────────────────────────────────────────────────────────

    def set_peers(self, living: Mapping[str, int]) -> None:
        """Learn which others live, and in which life; what the rest said is dropped.

        `joined` hears of those that came, before a word is said to them.
        """
        for name, peer in list(self._peers.items()):
            if living.get(name) != peer.boot:
                del self._peers[name]
                self.stream.forget(name)
                self.reader.forget_owner(name)
        came = {name: boot for name, boot in living.items() if name not in self._peers}
        for name, boot in came.items():
            self._peers[name] = _Peer(boot)
            self.stream.meet(name)
        if came and self._joined is not None:
            self._joined(came)

    def peers(self) -> Sequence[str]:
        """Return the others that live."""
        return list(self._peers)

    def silent_ms(self, now_ms: int) -> Mapping[str, int]:
        """Return for how long nothing was heard of each peer that was heard at all."""
        peers = self._peers.items()
        return {name: now_ms - one.heard_ms for name, one in peers if one.heard_ms is not None}

    def is_deaf(self, peer: str) -> bool:
        """Return whether calls to a member fail."""
        known = self._peers.get(peer)
        return known is not None and known.failures > 0

    # ── This node calls ──────────────────────────────────────────────────────

    def due(self, now_ms: int, *, calls_max: int) -> Sequence[tuple[str, bytes]]:
        """Return which peers to call now and with what, so many at most.
        Each is to be told how it went.
        """
        if not self._begun:
            return ()
        for owner, message in self.reader.due(now_ms):
            self._wait(owner, message)
        found: list[tuple[str, bytes]] = []
        for name, peer in list(self._peers.items()):
            if len(found) >= calls_max:
                break
            if peer.calling or now_ms < peer.next_ms:
                continue
            letter = self._letter(peer, self.stream.due(name, now_ms))
            if letter is None:
                continue
            # Who was called goes to the end: where there are more than may be called, all have their turn.
            self._peers[name] = self._peers.pop(name)
            peer.calling = True
            found.append((name, letter))
        return found

    def rests_until_ms(self, now_ms: int) -> int | None:
        """Return when `due` will have something to say if nothing happens before, `REST_MAX_MS` from now at the latest.

        None: already, or at any time. It costs a look at every peer, as `due` does.
        """
        rests_ms = now_ms + REST_MAX_MS
        if not self._begun:
            return rests_ms
        if not self.reader.at_rest:
            return None
        for name, peer in self._peers.items():
            if peer.calling:
                continue
            due_ms = None if peer.waiting else self.stream.rests_until_ms(name)
            if due_ms is None:
                return None
            rests_ms = min(rests_ms, max(due_ms, peer.next_ms))
        return rests_ms if rests_ms > now_ms else None

    def answered(self, name: str, answer: bytes, now_ms: int) -> bytes | None:
        """Take a peer's answer; return with what to call it again at once, None if the call is over."""
        peer = self._peers.get(name)
        if peer is None or not peer.calling:
            return None
        peer.failures = 0
        peer.heard_ms = now_ms
        peer.next_ms = now_ms + self._apart_ms()
        for message in self._heard(name, answer, now_ms):
            self._wait(name, message)
        letter = self._letter(peer, ())
        peer.calling = letter is not None
        return letter

    def failed(self, name: str, now_ms: int) -> None:
        """Learn that a call came to nothing."""
        peer = self._peers.get(name)
        if peer is None or not peer.calling:
            return
        peer.calling = False
        peer.waiting.clear()
        peer.next_ms = now_ms + min(AGAIN_MS << min(peer.failures, 16), AGAIN_MS_MAX)
        peer.failures += 1
        self.stream.lost(name, now_ms)
        self.reader.lost(name, now_ms)

    # ── A peer calls ─────────────────────────────────────────────────────────

    def hear(self, name: str, letter: bytes, now_ms: int) -> bytes:
        """Take what a peer says, and return what to answer; HintError for a stranger, it may try later."""
        peer = self._peers.get(name)
        if peer is None or not self._begun:
            self.refused += 1
            raise HintError(f"{name} is no living member here yet")
        peer.heard_ms = now_ms
        answers = self._heard(name, letter, now_ms)
        fitting = _fitting(answers)
        for message in answers[len(fitting) :]:
            self._wait(name, message)
        return self._written(fitting)

    # ── Letters ──────────────────────────────────────────────────────────────

    def _heard(self, name: str, letter: bytes, now_ms: int) -> list[bytes]:
        """Return what follows from a letter; what makes no sense is counted."""
        try:
            messages = _decoder.decode(letter)
        except (msgspec.DecodeError, ValueError, RecursionError):
            self.refused += 1
            return []
        answers: list[bytes] = []
        for message in messages:
            try:
                answers += self._taken(name, message, now_ms)
            except HintError:
                self.refused += 1
        return answers

    def _taken(self, name: str, message: bytes, now_ms: int) -> Sequence[bytes]:
        word = decode_word(message)
        if isinstance(word, AskDigests | AskPart):
            return self.stream.take(name, word, now_ms=now_ms)
        return self.reader.take(name, word, now_ms=now_ms)

    def _wait(self, name: str, message: bytes) -> None:
        peer = self._peers.get(name)
        if peer is not None:
            peer.waiting.append(message)
            del peer.waiting[:-WAITING_MAX]

    def _letter(self, peer: _Peer, more: Sequence[bytes]) -> bytes | None:
        """Return what to say to a peer now; None if there is nothing."""
        messages = [*peer.waiting, *more]
        if not messages:
            return None
        fitting = _fitting(messages)
        peer.waiting = messages[len(fitting) :]
        return self._written(fitting)

    def _written(self, messages: Sequence[bytes]) -> bytes:
        letter = _encoder.encode(messages)
        self.sent_bytes += len(letter)
        return letter

    def _apart_ms(self) -> int:
        return max(APART_MS, 1_000 * len(self._peers) // CALLS_PER_S_MAX)


def _fitting(messages: Sequence[bytes]) -> Sequence[bytes]:
    """Return the first messages, as many as go into one letter; one at least."""
    size = 0
    for count, message in enumerate(islice(messages, MESSAGES_MAX)):
        size += len(message)
        if count and size > LETTER_BYTES_MAX:
            return messages[:count]
    return messages[:MESSAGES_MAX]
