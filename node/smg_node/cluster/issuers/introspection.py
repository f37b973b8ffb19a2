"""Introspection calls of one process: asks issuers about opaque tokens (RFC 7662), few at a time, each token once.

Who looks a token up gets what is known of it, or an error with a future that is done when something is. A token that looks like a
signed one never goes to an issuer: it is not opaque, and whoever made it might be somebody else.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeAlias

from smg_node.access.identity import KeysWantedError
from smg_node.access.tokens.introspection_memory import (
    Introspected,
    IntrospectionMemory,
    away,
    read_introspection,
)
from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.issuer_documents import DocumentError
from smg_node.cluster.issuers.key_ports import IssuerError

CALLS_MAX: Final = 8
"""In flight at a time, of one process."""
WAITING_MAX: Final = 64
"""Tokens that wait for one of these calls; more are turned away."""
TOKEN_CHARS_MAX: Final = 8_192

Ask: TypeAlias = Callable[[Issuer, str], Awaitable[bytes]]
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], bool]
"""Starts a task that ends with the process; False where it does not run yet, or any more."""

_log = logging.getLogger("smg_node.cluster")


class Introspections:
    """Answers about opaque tokens; `secret` is drawn anew for each process, `spawn` starts a task that ends with it."""

    def __init__(self, secret: bytes, now_ms: Callable[[], int], spawn: Spawn, ask: Ask) -> None:
        self._memory: Final = IntrospectionMemory(secret)
        self._now_ms: Final = now_ms
        self._spawn: Final = spawn
        self._ask: Final = ask
        self._waiting: dict[bytes, asyncio.Future[None]] = {}
        self._free: Final = asyncio.Semaphore(CALLS_MAX)
        self._said: dict[str, str] = {}
        self._cleared = 0
        self.calls = 0
        self.failures = 0

    def look_up(self, issuer: Issuer, token: str) -> Introspected | None:
        """Return what is known of a token, None where too many wait already; KeysWantedError while it is asked about."""
        if not token or len(token) > TOKEN_CHARS_MAX or not token.isascii() or _is_signed(token):
            return Introspected(None, self._now_ms())
        place = self._memory.place(issuer.alias, token)
        known = self._memory.get(place, self._now_ms())
        if known is not None:
            return known
        waiting = self._waiting.get(place)
        if waiting is not None:
            raise KeysWantedError(issuer.alias, waiting)
        if len(self._waiting) >= WAITING_MAX:
            return None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._spawn(self._call(issuer, token, place, done)):
            return None
        self._waiting[place] = done
        raise KeysWantedError(issuer.alias, done)

    def last_error(self, alias: str) -> str:
        """Return why the last call to an issuer had no answer, "" if it had."""
        return self._said.get(alias, "")

    def clear(self) -> None:
        """Forget all answers, those on their way too: an issuer is another than before."""
        self._memory.clear()
        self._cleared += 1

    async def _call(
        self, issuer: Issuer, token: str, place: bytes, done: "asyncio.Future[None]"
    ) -> None:
        cleared = self._cleared
        try:
            async with self._free:
                self.calls += 1
                body = await self._ask(issuer, token)
            answer = read_introspection(body, self._now_ms())
            if cleared == self._cleared:
                self._memory.put(place, answer)
            self._said.pop(issuer.alias, None)
        except (IssuerError, DocumentError) as error:
            self.failures += 1
            self._note(issuer, str(error))
            self._memory.put(place, away(self._now_ms()))
        finally:
            self._waiting.pop(place, None)
            if not done.done():
                done.set_result(None)

    def _note(self, issuer: Issuer, why: str) -> None:
        if self._said.get(issuer.alias) != why:
            fields = {"fields": {"event": "issuer_unreachable", "issuer": issuer.alias}}
            _log.warning(
                "issuer %s does not answer about tokens: %s", issuer.alias, why, extra=fields
            )
        self._said[issuer.alias] = why


def _is_signed(token: str) -> bool:
    return token.startswith("ey") and token.count(".") >= 2
