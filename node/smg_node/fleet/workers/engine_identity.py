"""Engine identity: what tells one engine from another, and two rows of one engine from rows of two.

Workers are registered by address, and an engine may have several: names, an address of its machine,
a forwarded port. Each row would get a full share of the requests. So a worker that is ready claims
whatever its engine can be told by, and of two that claim the same the one with the smaller id has
the engine, on every node; the other one says so, and takes over when the first is down.

What an engine is told by: the address its name stands for, unless that is one of several; and what
its process alone has, where its contract says something of that kind.
"""

import asyncio
import hashlib
import socket
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import TypeAlias

from smg_node.config.address import join_host_port
from smg_node.config.worker_url import WorkerUrl
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ids import WorkerId
from smg_node.engines.engine import ModelCard
from smg_node.fleet.workers.worker import Worker

Resolve: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Returns the IP addresses that a host name stands for; OSError if it stands for none."""
RESOLVE_S = 2.0
"""How long a name may take: its engine has been reached by it a moment ago."""


async def resolved(host: str, port: int) -> Iterable[str]:
    """Return the IP addresses that this machine finds for a host name; see `Resolve`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return sorted({str(item[4][0]) for item in found})


async def unresolved(host: str, port: int) -> Iterable[str]:
    """Return no addresses: names are not looked up."""
    return ()


class EngineClaims:
    """Claims of ready workers on their engines; changed only by their lifecycles."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._claims: dict[str, dict[WorkerId, Worker]] = {}
        self._held: dict[WorkerId, frozenset[str]] = {}

    async def check_free(self, worker: Worker, card: ModelCard) -> None:
        """Raise a CONFLICT if a claim for this worker would be refused, before more is done for it."""
        self._check(worker, await self._keys_of(worker.url, card))

    async def claim(self, worker: Worker, card: ModelCard) -> None:
        """Claim the engine of a worker that is about to be ready. CONFLICT if another one has it.

        One that has it with less right is woken, to find that out.
        """
        keys = await self._keys_of(worker.url, card)
        self.release(worker)
        self._check(worker, keys)
        self._held[worker.id] = keys
        for key in sorted(keys):
            claimants = self._claims.setdefault(key, {})
            for other in claimants.values():
                other.wake.set()
            claimants[worker.id] = worker

    def check(self, worker: Worker) -> None:
        """Raise a CONFLICT if another worker claims the engine of this one, with more right."""
        self._check(worker, self._held.get(worker.id, frozenset()))

    def release(self, worker: Worker) -> None:
        """Give up a worker's claims, if it has any."""
        for key in self._held.pop(worker.id, ()):
            claimants = self._claims[key]
            del claimants[worker.id]
            if not claimants:
                del self._claims[key]

    def _check(self, worker: Worker, keys: frozenset[str]) -> None:
        ids = [one for key in keys for one in self._claims.get(key, ())]
        first = min(ids, default=worker.id)
        if first < worker.id:
            other = next(self._claims[key][first] for key in keys if first in self._claims[key])
            raise SmgError(
                ErrorKind.CONFLICT,
                f"it is the same engine as worker {other.url.endpoint} ({first}), which gets its"
                " requests; remove one of the two",
            )

    async def _keys_of(self, url: WorkerUrl, card: ModelCard) -> frozenset[str]:
        keys = {f"at {join_host_port(one, url.port)}" for one in await self._addresses(url)}
        if card.instance:
            keys.add(f"{card.contract.value} {card.instance}")
        return frozenset(keys)

    async def _addresses(self, url: WorkerUrl) -> Iterable[str]:
        """Return the addresses of an engine; none if its name stands for several machines."""
        if not url.port:
            # A model at a vendor: many are one address.
            return ()
        host = url.host.partition("%")[0]
        try:
            return (str(ip_address(host)),)
        except ValueError:
            pass
        try:
            async with asyncio.timeout(RESOLVE_S):
                found = [
                    ip_address(one.partition("%")[0]) for one in await self._resolve(host, url.port)
                ]
        except (OSError, ValueError, TimeoutError):
            return ()
        versions = [one.version for one in found]
        return map(str, found) if len(set(versions)) == len(versions) else ()


def mark_of(card: ModelCard) -> str:
    """Return a short digest of the answering engine: equal on all nodes that asked the same one."""
    return hashlib.blake2b(repr(lasting(card)).encode(), digest_size=6).hexdigest()


def lasting(card: ModelCard) -> tuple[object, ...]:
    """Return what an engine cannot change without having been started anew."""
    told: tuple[object, ...] = (
        card.model,
        card.model_path,
        card.vocabulary,
        card.context,
        card.prompt_max,
        card.eos_ids,
        card.role,
        card.pairing,
        card.ranks,
    )
    # Nodes of an earlier release, which know nothing of pictures, say the same of all other engines.
    return told if card.media is None or not card.media.told else (*told, card.media.told)
