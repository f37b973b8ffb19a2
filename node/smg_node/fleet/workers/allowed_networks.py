"""Allowed networks: the IP networks that workers may lie in, so that the admin API cannot be used
to reach others.
"""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from smg_node.config.worker_url import WorkerUrl
from smg_node.core.errors import ErrorKind, SmgError


class Networks:
    """The allowed networks; none given means any."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = [ip_network(network) for network in networks]

    def allows(self, address: str) -> bool:
        """Whether this IP address lies in an allowed network."""
        found = ip_address(address.partition("%")[0])
        return not self._networks or any(found in network for network in self._networks)

    def check_literal(self, url: WorkerUrl) -> None:
        """Refuse (FORBIDDEN) a worker whose address is written out and lies outside; names are looked up later."""
        try:
            ip_address(url.host)
        except ValueError:
            return
        if not self.allows(url.host):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                f"{url.host} lies outside workers.allowed_networks",
                where="url",
            )

    async def check(self, url: WorkerUrl) -> None:
        """Refuse (FORBIDDEN) a worker of which some address lies outside; names are resolved first."""
        if not self._networks:
            return
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(url.host, url.port)
        except OSError as error:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED, f"the name {url.host!r} cannot be resolved: {error}"
            ) from error
        for address in sorted({str(item[4][0]) for item in found}):
            if not self.allows(address):
                raise SmgError(
                    ErrorKind.FORBIDDEN,
                    f"{url.host} is {address}, which lies outside workers.allowed_networks",
                )
