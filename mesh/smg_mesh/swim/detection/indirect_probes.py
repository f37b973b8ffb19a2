"""Indirect probes: pings that this node makes as a relay for others (SWIM's PING-REQ).

A relay pings the target and passes its ACK on. If it hears nothing in most of its own timeout it says
so with a NACK: then the asker knows that at least the relay still hears it. An ACK that comes after
that is passed on all the same.
"""

from typing import Final, NamedTuple

from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.messages import Ack, Address, Claim, Nack, Ping, PingRequest
from smg_mesh.swim.wire import sender_tag

RELAYED_MAX: Final = 1024
_NACK_SHARE: Final = 0.8
"""Of the relay's own timeout: early enough to be there before the asker's verdict."""
_KEPT_INTERVALS: Final = 8
"""An unwell asker waits that many intervals for its verdict."""


class Relayed(NamedTuple):
    """A probe under way for another member."""

    asker: Address
    nonce: int
    target: bytes
    started_ms: int


class Relays:
    """Probes under way for others, at most 1024; the oldest goes."""

    def __init__(self, voice: PacketSender) -> None:
        self._voice = voice
        self._relayed: dict[int, Relayed] = {}
        self._tokens: dict[int, int] = {}
        """Token of the NACK's timer → nonce of our ping."""

    def relay(
        self,
        asker: Address,
        request: PingRequest,
        claim: Claim | None,
        wait_ms: int,
        *,
        now_ms: int,
    ) -> None:
        """Ping the target, with `claim` if we doubt it too; `wait_ms` is our own timeout for it."""
        self._drop_old(now_ms=now_ms)
        nonce = self._voice.nonce()
        target = sender_tag(request.target)
        self._relayed[nonce] = Relayed(asker, request.nonce, target, now_ms)
        self._voice.note("relayed")
        self._voice.send(request.address, Ping(nonce, request.target, request.target_boot, claim))
        token = self._voice.timer("nack", now_ms + round(_NACK_SHARE * wait_ms))
        self._tokens[token] = nonce

    def ack(self, nonce: int, sender: bytes) -> bool:
        """Pass the target's ACK on; False if it is none for a relayed probe."""
        relayed = self._relayed.get(nonce)
        if relayed is None or relayed.target != sender:
            return False
        del self._relayed[nonce]
        self._voice.send(relayed.asker, Ack(relayed.nonce))
        return True

    def silence(self, token: int) -> None:
        """Say NACK, if the target has not answered."""
        nonce = self._tokens.pop(token, None)
        relayed = None if nonce is None else self._relayed.get(nonce)
        if relayed is not None:
            self._voice.send(relayed.asker, Nack(relayed.nonce))

    def _drop_old(self, *, now_ms: int) -> None:
        kept_ms = _KEPT_INTERVALS * self._voice.options.probe_interval_ms
        while self._relayed:
            nonce, oldest = next(iter(self._relayed.items()))
            if len(self._relayed) < RELAYED_MAX and now_ms - oldest.started_ms <= kept_ms:
                break
            del self._relayed[nonce]
        while len(self._tokens) >= RELAYED_MAX:
            del self._tokens[next(iter(self._tokens))]

    def __len__(self) -> int:
        return len(self._relayed)
