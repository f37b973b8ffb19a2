import asyncio
import random
import socket
import threading
from collections.abc import Sequence

import pytest

from smg_mesh.io.discovery import resolver as resolve
from smg_mesh.io.discovery.dns_srv import DnsError, Srv
from smg_mesh.io.discovery.host_address import parse_place
from smg_mesh.io.discovery.resolver import (
    LOOKUPS_MAX,
    Resolved,
    ResolveError,
    Resolver,
    system_hosts,
)
from smg_mesh.swim.messages import Address


class Names:
    """What the name servers say; None hangs until `release`."""

    def __init__(self, **hosts: Sequence[str] | None) -> None:
        self.hosts = hosts
        self.services: Sequence[Srv] = ()
        self.release = threading.Event()
        self.asked: list[str] = []

    def look_up(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        found = self.hosts.get(host, ())
        if found is None:
            assert self.release.wait(30)
            found = self.hosts[host] or ()
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    def serve(self, name: str, query_id: int) -> Sequence[Srv]:
        if not self.services:
            raise DnsError(f"{name}: no such name")
        return self.services

    def resolver(self) -> Resolver:
        return Resolver(random.Random(1), hosts=self.look_up, services=self.serve)


async def find(resolver: Resolver, text: str, timeout_s: float = 20) -> Resolved:
    return await resolver.resolve(parse_place(text, default_port=7946), timeout_s=timeout_s)


async def test_an_address_is_never_looked_up() -> None:
    names = Names()
    found = await find(names.resolver(), "[fd00::1]:8")
    assert found == Resolved((Address("fd00::1", 8),))
    assert names.asked == []


async def test_all_addresses_of_a_name_are_found_once_each() -> None:
    names = Names(seed=["10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.1", "::ffff:10.0.0.3"])
    found = await find(names.resolver(), "seed:9")
    hosts = ["10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.3"]
    assert found.addresses == tuple(Address(host, 9) for host in hosts)


async def test_a_service_has_the_ports_of_its_records() -> None:
    names = Names(a=["10.0.0.1", "10.0.0.9"], b=["10.0.0.2"])
    names.services = [Srv(1, 1, 1001, "a"), Srv(1, 1, 1002, "b"), Srv(2, 1, 1003, "lost")]
    found = await find(names.resolver(), "_smg._tcp.example.org")
    wanted = [("10.0.0.1", 1001), ("10.0.0.9", 1001), ("10.0.0.2", 1002)]
    assert found.addresses == tuple(Address(*one) for one in wanted)


async def test_a_service_whose_targets_are_all_unknown_says_so() -> None:
    names = Names()
    names.services = [Srv(1, 1, 1001, "a")]
    with pytest.raises(ResolveError, match="Name or service not known"):
        await find(names.resolver(), "_smg._tcp.example.org")


async def test_an_unknown_name_is_an_error_with_the_systems_reason() -> None:
    with pytest.raises(ResolveError, match="seed: Name or service not known"):
        await find(Names().resolver(), "seed")
    with pytest.raises(ResolveError, match="no such name"):
        await find(Names().resolver(), "_smg._tcp.example.org")


async def test_the_last_good_answer_is_used_when_names_are_broken() -> None:
    names = Names(seed=["10.0.0.1"])
    resolver = names.resolver()
    await find(resolver, "seed")
    names.hosts = {}
    found = await find(resolver, "seed")
    assert found == Resolved((Address("10.0.0.1", 7946),), stale="Name or service not known")


async def test_a_name_that_hangs_has_one_thread_and_its_late_answer_counts() -> None:
    names = Names(slow=None, seed=["10.0.0.2"])
    resolver = names.resolver()
    for _ in range(3 * LOOKUPS_MAX):
        with pytest.raises(ResolveError, match="slow: the name servers do not answer"):
            await find(resolver, "slow", timeout_s=0.001)
    assert names.asked == ["slow"]
    assert (await find(resolver, "seed")).addresses == (Address("10.0.0.2", 7946),)
    waiting = find(resolver, "slow")
    names.hosts = {"slow": ["10.0.0.1"]}
    asyncio.get_running_loop().call_later(0.01, names.release.set)
    assert (await waiting).addresses == (Address("10.0.0.1", 7946),)


async def test_names_that_all_hang_are_refused_beyond_a_limit() -> None:
    hanging: dict[str, None] = {f"slow{number}": None for number in range(LOOKUPS_MAX)}
    names = Names(**hanging, seed=["10.0.0.1"])
    resolver = names.resolver()
    try:
        for name in hanging:
            with pytest.raises(ResolveError):
                await find(resolver, name, timeout_s=0.001)
        with pytest.raises(ResolveError, match="hang already"):
            await find(resolver, "seed")
    finally:
        names.release.set()


async def test_a_late_failure_is_nobodys_unheard_error() -> None:
    names = Names(slow=None)
    resolver = names.resolver()
    with pytest.raises(ResolveError):
        await find(resolver, "slow", timeout_s=0.001)
    names.hosts = {}
    names.hosts["slow"] = ()
    names.release.set()
    while resolver._asking:  # noqa: ASYNC110 - a test looks from outside
        await asyncio.sleep(0.001)


async def test_the_system_knows_this_machine() -> None:
    found = await find(Resolver(random.Random(1)), "localhost:5")
    assert {"127.0.0.1", "::1"} & {address.host for address in found.addresses}
    assert system_hosts("127.0.0.1") == ["127.0.0.1"]


async def test_services_are_asked_of_the_systems_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def look_up(name: str, servers: object, **more: object) -> Sequence[Srv]:
        asked.extend([name, servers])
        return [Srv(1, 1, 77, "127.0.0.1")]

    monkeypatch.setattr(resolve, "look_up", look_up)
    monkeypatch.setattr(resolve, "name_servers", lambda: "the servers")
    found = await find(Resolver(random.Random(1)), "_smg._tcp.example.org")
    assert found.addresses == (Address("127.0.0.1", 77),)
    assert asked == ["_smg._tcp.example.org", "the servers"]
