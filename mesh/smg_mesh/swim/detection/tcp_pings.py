"""TCP pings under way: matches each answer over a stream to the question it belongs to."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.effects import StreamPing
from smg_mesh.swim.messages import Address

STREAM_PINGS_MAX: Final = 32
"""In flight; half a cluster may come to its last chance at one time, and UDP has to do for the rest."""
_LOST_FACTOR: Final = 4
"""An answer that is so many deadlines late will not come."""

Question: TypeAlias = Literal["probe", "chance", "namesake"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One ping over TCP."""

    question: Question
    name: str
    nonce: int
    """Of the same question over UDP."""
    sent_ms: int
    deadline_ms: int


class StreamPings:
    """Pings over TCP under way, at most 32 at a time."""

    def __init__(self, voice: PacketSender) -> None:
        self._voice = voice
        self._asked: dict[int, Asked] = {}

    def ask(
        self,
        question: Question,
        name: str,
        boot: int,
        address: Address,
        *,
        nonce: int,
        deadline_ms: int,
        now_ms: int,
    ) -> None:
        """Ask whether that process is at that address; nothing if too many pings are under way."""
        if len(self._asked) >= STREAM_PINGS_MAX:
            self._drop_lost(now_ms=now_ms)
        if len(self._asked) >= STREAM_PINGS_MAX:
            return
        self._asked[nonce] = Asked(question, name, nonce, now_ms, deadline_ms)
        self._voice.out.append(StreamPing(name, boot, address, nonce, deadline_ms))

    def end(self, nonce: int) -> Asked | None:
        """Take the question that was answered, or was not."""
        return self._asked.pop(nonce, None)

    def _drop_lost(self, *, now_ms: int) -> None:
        for nonce, asked in list(self._asked.items()):
            if now_ms - asked.sent_ms > _LOST_FACTOR * asked.deadline_ms:
                del self._asked[nonce]

    def __len__(self) -> int:
        return len(self._asked)
