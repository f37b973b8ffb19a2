"""Follower notices: tell the node that makes an answer that a client follows it at this one.

An answer of the foreground is cancelled when its client has been away for a while. A client whose
connection broke comes back by any node, and is not away: as long as it follows there, that node says
so to the maker. A lost notice costs nothing, since the next one comes before the while is over.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from smg_node.core.errors import SmgError
from smg_node.history.peers.peer_interface import Peers

TOPIC: Final = "history.followed"
ASK_S: Final = 0.5
"""So long a follower waits for the maker to take a notice: it has events to show meanwhile."""
NOTICES_PER_GRACE: Final = 4
NOTICE_MOST_S: Final = 1.0
_QUESTION_BYTES_MAX: Final = 1_024
_GONE: Final = ("dead", "left")


class FollowedRun(Protocol):
    """A response that this process makes."""

    def followed_elsewhere(self) -> None:
        """Count its client as there at this moment."""
        ...


class _Followed(msgspec.Struct):
    tenant: str
    response_id: str


_followed: Final = msgspec.msgpack.Decoder(_Followed).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class FollowerNotices:
    """Notices of this node. `find` looks up this process's runs by tenant and id."""

    def __init__(
        self,
        peers: Peers,
        find: Callable[[str, str], FollowedRun | None],
        *,
        now_s: Callable[[], float],
    ) -> None:
        self._peers: Final = peers
        self._find: Final = find
        self._now_s: Final = now_s
        peers.answer(TOPIC, self._asked)

    def of(self, node: str, tenant: str, response_id: str, *, grace_s: float) -> "FollowerNotice":
        """Return what tells `node` of one follower, whose client may be away for `grace_s`.

        Without a grace nothing of the foreground can be followed, and nobody is told.
        """
        payload = _encode(_Followed(tenant, response_id))
        node = node if grace_s > 0 else ""
        return FollowerNotice(
            self._peers, node, payload, every_s=interval_s(grace_s), now_s=self._now_s
        )

    async def _asked(self, payload: bytes, _caller: str) -> bytes:
        """Take a notice of another node; answer whether there is such a run here."""
        if len(payload) > _QUESTION_BYTES_MAX:
            return b"no"
        try:
            told = _followed(payload)
        except msgspec.DecodeError:
            return b"no"
        run = self._find(told.tenant, told.response_id)
        if run is None:
            return b"no"
        run.followed_elsewhere()
        return b"yes"


class FollowerNotice:
    """One follower, of an answer that another node makes."""

    def __init__(
        self,
        peers: Peers,
        node: str,
        payload: bytes,
        *,
        every_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self._peers: Final = peers
        self._node: Final = node
        self._payload: Final = payload
        self._every_s: Final = every_s
        self._now_s: Final = now_s
        self._due_s = float("-inf")

    async def tell(self) -> None:
        """Tell the maker, if it is time to and the maker is there."""
        if not self._node or self._now_s() < self._due_s:
            return
        self._due_s = self._now_s() + self._every_s
        if self._peers.known().get(self._node, "") in _GONE:
            return
        with suppress(SmgError):
            await self._peers.ask(self._node, TOPIC, self._payload, deadline_s=ASK_S)


def interval_s(grace_s: float) -> float:
    """Return how often a maker is told: several times in the time that its client may be away."""
    return min(grace_s / NOTICES_PER_GRACE, NOTICE_MOST_S)
