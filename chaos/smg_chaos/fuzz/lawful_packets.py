"""Lawful packets: they decode, but carry false claims about any member, from a hostile holder of
the key.
"""

import random
from typing import Final

from smg_chaos.fuzz.small_cluster import BOOT, NAMES, address_of
from smg_mesh.config import META_BYTES_MAX, NEWS_BYTES_MAX
from smg_mesh.swim import wire
from smg_mesh.swim.messages import (
    DIGEST_BYTES,
    Accusation,
    Ack,
    Address,
    Claim,
    Gossip,
    Hello,
    Message,
    Nack,
    News,
    Packet,
    Ping,
    PingRequest,
    Rank,
)

_STRANGERS: Final = 200
_KEYS: Final = 6000
"""More news than a queue may hold."""
_U32: Final = (1 << 32) - 1
_U64: Final = (1 << 64) - 1
_NONCES: Final = (0, 1, 1 << 31, _U64)


class Liar:
    """Makes lawful packets at random; the members they are about are drawn from few names."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def packet(self) -> Packet:
        """Return any packet that fits."""
        rng = self._rng
        message = self._message()
        left = wire.BODY_BYTES_MAX - wire.message_bytes(message)
        claims, news = [], []
        for _ in range(rng.choice((0, 0, 1, 3, 12))):
            claim = self._claim()
            left -= wire.claim_bytes(claim)
            if left < 0:
                break
            claims.append(claim)
        for _ in range(rng.choice((0, 0, 0, 1, 4))):
            item = self._news()
            left -= wire.news_bytes(item)
            if left < 0:
                break
            news.append(item)
        sender = message.claim.name if isinstance(message, Hello) else self._name()
        return Packet(
            wire.sender_tag(sender),
            self._boot(),
            self._incarnation(),
            rng.randbytes(DIGEST_BYTES),
            message,
            tuple(claims),
            tuple(news),
        )

    def _message(self) -> Message:
        rng = self._rng
        nonce = rng.choice((*_NONCES, rng.getrandbits(32)))
        match rng.randrange(7):
            case 0:
                claim = self._claim() if rng.random() < 0.5 else None
                return Ping(nonce, self._name(), self._boot(), claim)
            case 1:
                return Ack(nonce)
            case 2:
                return PingRequest(nonce, self._name(), self._boot(), self._address())
            case 3:
                return Nack(nonce)
            case 4:
                return Gossip()
            case 5:
                return Accusation(self._claim())
            case _:
                return Hello(self._claim(full=True), answer=rng.random() < 0.5)

    def _claim(self, *, full: bool = False) -> Claim:
        rng = self._rng
        told = full or rng.random() < 0.5
        return Claim(
            self._name(),
            self._boot(),
            self._incarnation(),
            rng.choice(tuple(Rank)),
            self._address() if told else None,
            rng.randbytes(self._size(META_BYTES_MAX)) if told else None,
            self._name() if rng.random() < 0.5 else "",
        )

    def _news(self) -> News:
        rng = self._rng
        kind = rng.choice(("load", "sticky", "x" * 32))
        key = str(rng.randrange(_KEYS))
        seq = rng.choice((0, 1, rng.getrandbits(16), _U64))
        return News(self._name(), kind, key, seq, rng.randbytes(self._size(NEWS_BYTES_MAX)))

    def _name(self) -> str:
        if self._rng.random() < 0.5:
            return self._rng.choice(NAMES)
        return f"stranger-{self._rng.randrange(_STRANGERS)}"

    def _boot(self) -> int:
        now = BOOT + (self._rng.randrange(12) << 16)
        return self._rng.choice((now, now, now, now + 1, 0, self._rng.getrandbits(64), _U64))

    def _incarnation(self) -> int:
        rng = self._rng
        return rng.choice((0, 1, 2, rng.randrange(40), _U32 - 1, _U32))

    def _address(self) -> Address:
        rng = self._rng
        if rng.random() < 0.3:
            return address_of(rng.choice(NAMES))
        host = rng.choice(("10.9.9.9", "2001:db8::7", "127.0.0.1", "255.255.255.255"))
        return Address(host, rng.randrange(1, 65_536))

    def _size(self, most: int) -> int:
        return self._rng.choice((0, 1, 20, most))
