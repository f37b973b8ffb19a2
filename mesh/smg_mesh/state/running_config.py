"""Running configuration: what each node says it runs, so that an operator
sees whether all run the same.

    register r/"" = msgpack {name: text}

It is said when it changes, and again after 10 s, 40 s, 160 s, … up to `LAST_MS`, or up to 20 s for each living node:
a lost rumor heals soon, and what never changes is next to no gossip however many nodes there are. Who was away gets
it with its first exchange. A node that had to refute its death begins anew, because others dropped what it said.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from smg_mesh.crdt.registers.register_codec import (
    REGISTER_BYTES_MAX,
    TTL_MS_MAX,
    RegisterError,
)
from smg_mesh.sync.bound_views import BoundRegisters

REPEAT_MS: Final = 10_000
"""Until the first repeat."""
BACK_OFF: Final = 4
LAST_MS: Final = 300_000
LAST_PER_NODE_MS: Final = 20_000
"""So that all nodes together say one in 20 s: a rumor keeps each of 100 nodes sending for most of a second."""
TTL_REPEATS: Final = 4
"""What was said is good for that many of the longest intervals."""
LOOK_MS: Final = 30_000
"""How soon a refutation is noticed."""

_KIND: Final = "r"
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")
_decoder: Final = msgspec.msgpack.Decoder(dict[str, str])


class Running:
    """Facts of this node about what it runs, and those of the others.

    `living` are the nodes' names, and `refuted` a number that grows when this node had to refute what was said of
    it.
    """

    def __init__(
        self,
        registers: BoundRegisters,
        me: str,
        living: Callable[[], Sequence[str]] = lambda: (),
        refuted: Callable[[], int] = lambda: 0,
    ) -> None:
        self._registers: Final = registers
        self._me: Final = me
        self._living: Final = living
        self._refuted: Final = refuted
        self._refutations = 0
        self._repeat_ms = REPEAT_MS
        self._facts: dict[str, str] = {}
        self._content = b""
        self._due_ms = 0

    def publish(self, **facts: str) -> int | None:
        """Say these facts from now on, beside those said before; an empty text takes one back.

        Returns when to call `refresh`. RegisterError if all of it does not fit into one register.
        """
        wanted = {name: text for name, text in {**self._facts, **facts}.items() if text}
        content = _encoder.encode(wanted)
        if len(content) > REGISTER_BYTES_MAX:
            raise RegisterError(f"{len(content)} bytes of facts are too many")
        self._facts = wanted
        if content != self._content:
            self._content = content
            self._begin(self._registers.now_ms())
        return self.refresh()

    def _begin(self, due_ms: int) -> None:
        """Say it then, and soon again."""
        self._due_ms, self._repeat_ms = due_ms, REPEAT_MS

    def refresh(self) -> int | None:
        """Say it again if it would lapse; return when to call again, None with nothing to say."""
        if not self._content:
            return None
        now_ms = self._registers.now_ms()
        if (refutations := self._refuted()) != self._refutations:
            self._refutations = refutations
            self._begin(min(self._due_ms, now_ms + REPEAT_MS))
        if now_ms >= self._due_ms:
            last_ms = min(
                max(LAST_MS, LAST_PER_NODE_MS * len(self._living())), TTL_MS_MAX // TTL_REPEATS
            )
            self._registers.set(_KIND, "", self._content, ttl_ms=TTL_REPEATS * last_ms)
            self._due_ms = now_ms + min(self._repeat_ms, last_ms)
            self._repeat_ms = min(BACK_OFF * self._repeat_ms, last_ms)
        look_ms = min(self._due_ms, now_ms + LOOK_MS)
        self._registers.wake(look_ms)
        return look_ms

    def all(self) -> Mapping[str, Mapping[str, str]]:
        """Return what each living node says, by node; this one's own too."""
        found = {
            register.owner: _facts(register.content) for register in self._registers.items(_KIND)
        }
        if self._facts:
            found[self._me] = dict(self._facts)
        return {node: found[node] for node in sorted(found)}


def _facts(content: bytes) -> Mapping[str, str]:
    """Return what a register says; nothing if it makes no sense."""
    try:
        return _decoder.decode(content)
    except (ValueError, RecursionError):
        return {}
