"""Token keeper: one provider's token, made anew before it ends, by one flight at a time.

    current      the newest token that holds; a failing refresh leaves it there to its end
    refused      a vendor's 401: asks for one refresh, however many calls it hit
    first        waits for the first token of all, at most five seconds; nobody ever waits for a later one

The loop belongs to whoever runs `run`.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.providers.access_tokens.made_token import MadeToken

FIRST_WAIT_S: Final = 5.0
RETRY_MIN_S: Final = 1.0
RETRY_MAX_S: Final = 60.0
YOUNG_S: Final = 10.0
"""A token that is refused so soon after it was made is not refused for its age."""

_log = logging.getLogger("smg_node.providers")


class TokenMaker(Protocol):
    """Makes tokens of one provider."""

    async def make(self, now: float) -> MadeToken:
        """Return a new token; SmgError or OSError where there is none to be had."""
        ...


class TokenKeeper:
    """Keeps the token of the provider `name`. `now` tells seconds since the epoch."""

    def __init__(
        self,
        name: str,
        maker: TokenMaker,
        now: Callable[[], float],
        *,
        published: Callable[[MadeToken], None] = lambda token: None,
    ) -> None:
        self._name = name
        self._maker = maker
        self._now = now
        self._published = published
        self._token: MadeToken | None = None
        self._due: float | None = now()
        self._failures = 0
        self._failure: SmgError | OSError | None = None
        self._asked = asyncio.Event()
        self._first = asyncio.Event()

    @property
    def current(self) -> MadeToken | None:
        """The token that lets calls in now; None if there is none."""
        token = self._token
        return token if token is not None and token.holds(self._now()) else None

    @property
    def due(self) -> float | None:
        """When the next token is to be made, in seconds since the epoch; None if only on demand."""
        return self._due

    @property
    def failure(self) -> SmgError | OSError | None:
        """Why the last refresh failed; None if it did not."""
        return self._failure

    def age_s(self) -> float:
        """Return how long ago the token was made; 0 if there never was one."""
        return max(0.0, self._now() - self._token.made) if self._token is not None else 0.0

    def refused(self, token: MadeToken) -> bool:
        """Take in that the vendor does not take `token`; return whether another one may help.

        False for a token that was just made: then it is not the token, and the provider is to be turned off.
        """
        if token is not self._token:
            return True
        if self._now() - token.made < YOUNG_S:
            return False
        self._due = self._now()
        self._asked.set()
        return True

    async def first(self, wait_s: float = FIRST_WAIT_S) -> MadeToken:
        """Return the current token, waiting if there never was one; OVERLOADED `no_provider_token` if none comes."""
        if not self._first.is_set():
            try:
                async with asyncio.timeout(wait_s):
                    await self._first.wait()
            except TimeoutError:
                pass
        token = self.current
        if token is None:
            raise SmgError(
                ErrorKind.OVERLOADED,
                f"the provider {self._name} has no access token; try again",
                code="no_provider_token",
                retry_after_s=RETRY_MIN_S,
            ) from self._failure
        return token

    async def run(self) -> None:
        """Make tokens whenever one is due, until cancelled."""
        while True:
            await self._wait()
            self._asked.clear()
            if self._due is not None and self._now() >= self._due:
                await self.refresh()

    async def refresh(self) -> None:
        """Make a token; a failure is kept, and the next try comes later and later, up to a minute."""
        now = self._now()
        try:
            token = await self._maker.make(now)
        except (SmgError, OSError) as error:
            self._failures += 1
            wait_s = min(RETRY_MIN_S * 2.0 ** min(self._failures - 1, 10), RETRY_MAX_S)
            self._due = self._now() + wait_s
            self._failure = error
            _log.warning("provider %s: %s; tried again in %.0f s", self._name, error, wait_s)
            return
        self._token, self._failures, self._failure = token, 0, None
        # A token that is made with hardly any life left must not be made in a circle.
        due = token.refresh_at
        self._due = None if due is None else max(due, self._now() + RETRY_MIN_S)
        self._first.set()
        self._published(token)

    async def _wait(self) -> None:
        """Wait until a token may be due."""
        delay_s = None if self._due is None else self._due - self._now()
        if delay_s is not None and delay_s <= 0:
            return
        try:
            async with asyncio.timeout(delay_s):
                await self._asked.wait()
        except TimeoutError:
            return
