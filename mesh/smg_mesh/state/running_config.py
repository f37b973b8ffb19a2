"""Running configuration: what each node says it runs, so that an operator
sees whether all run the same.

register r/"" = msgpack {name: text}
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from smg_mesh.crdt.registers.register_codec import REGISTER_BYTES_MAX, RegisterError
from smg_mesh.sync.bound_views import BoundRegisters

REPEAT_MS: Final = 10_000
TTL_MS: Final = 60_000

_KIND: Final = "r"
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")
_decoder: Final = msgspec.msgpack.Decoder(dict[str, str])


class Running:
    """Facts of this node about what it runs, and those of the others."""

    def __init__(self, registers: BoundRegisters, me: str) -> None:
        self._registers: Final = registers
        self._me: Final = me
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
            self._due_ms = self._registers.now_ms()
        return self.refresh()

    def refresh(self) -> int | None:
        """Say it again if it would lapse; return when to call again, None with nothing to say."""
        if not self._content:
            return None
        now_ms = self._registers.now_ms()
        if now_ms >= self._due_ms:
            self._registers.set(_KIND, "", self._content, ttl_ms=TTL_MS)
            self._due_ms = now_ms + REPEAT_MS
        self._registers.wake(self._due_ms)
        return self._due_ms

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
