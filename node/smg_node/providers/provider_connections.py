"""Provider connections: one client of HTTP for each place that providers are called at, shared by their targets."""

import ssl
from collections.abc import Callable
from typing import Final

from smg_node.engines.http.aiohttp_client import AiohttpTransport
from smg_node.engines.http.transport import HttpTransport
from smg_node.providers.provider_spec import ProviderSpec
from smg_node.providers.wire.provider_url import base_of

KEPT_S: Final = 55.0
"""Vendors close an idle connection after a minute or later."""


class Connections:
    """Clients by origin and proxy; `connect_s` is how long a connection may take where a provider says nothing."""

    def __init__(self, connect_s: float, trust: Callable[[], ssl.SSLContext]) -> None:
        self._connect_s = connect_s
        self._trust = trust
        self._open: dict[tuple[str, str, float], HttpTransport] = {}

    def of(self, spec: ProviderSpec) -> HttpTransport:
        """Return the client of a provider's place."""
        hosting = spec.hosting
        assert hosting is not None, "a provider of an unknown kind has no targets"
        origin, _ = base_of(hosting, spec.site)
        connect_s = spec.timeouts.connect_s or self._connect_s
        found = self._open.get((origin, spec.proxy, connect_s))
        if found is None:
            found = AiohttpTransport(
                origin, connect_s=connect_s, trust=self._trust, kept_s=KEPT_S, proxy=spec.proxy
            )
            self._open[(origin, spec.proxy, connect_s)] = found
        return found

    async def close(self) -> None:
        """Close all of them; open answers are cut."""
        opened, self._open = self._open, {}
        for one in opened.values():
            await one.close()
