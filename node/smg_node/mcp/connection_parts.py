"""Connection parts: what all connections of a pool share, and the verdicts on which protocol servers speak."""

from collections.abc import Callable
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final

from smg_node.engines.http.aiohttp_client import trusting
from smg_node.mcp.doors.door import Spawn
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.session.opening import Verdict
from smg_node.mcp.session.session import RequestIds
from smg_node.mcp.session.session_record import SessionRecords


def refuse_all(_url: str, _address: str) -> bool:
    """Allow no address at all."""
    return False


_VERDICTS_MAX: Final = 10_000
"""Servers and credentials; the oldest are asked again."""


class Verdicts:
    """How servers were opened, by (definition, credential), each good for a while."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[float, Verdict]] = {}

    def get(self, key: tuple[str, str], now_s: float) -> Verdict | None:
        """Return the verdict that is still good, None if there is none."""
        kept = self._kept.get(key)
        return kept[1] if kept is not None and now_s < kept[0] else None

    def put(self, key: tuple[str, str], verdict: Verdict, until_s: float) -> None:
        """Keep a verdict."""
        self._kept.pop(key, None)
        while len(self._kept) >= _VERDICTS_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (until_s, verdict)

    def drop(self, key: tuple[str, str]) -> None:
        """Forget a verdict that a server contradicts."""
        self._kept.pop(key, None)


@dataclass(frozen=True, slots=True)
class ConnectionParts:
    """What connections share. `proxy` is the URL of what calls by HTTP go through, "" for nothing; `records` is what the
    processes of all nodes know of sessions, None for nothing.

    `allowed` says of a URL, and the address that a connection for it is about to be made to, whether it may be; it is
    asked for servers that clients give.
    """

    limits: McpLimits
    ids: RequestIds
    spawn: Spawn
    verdicts: Verdicts = field(default_factory=Verdicts)
    trust: Callable[[], SSLContext] = trusting
    proxy: str = ""
    allowed: Callable[[str, str], bool] = refuse_all
    records: SessionRecords | None = None
