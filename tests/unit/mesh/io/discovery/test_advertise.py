import random
import socket
from collections.abc import Sequence

import pytest

from smg_mesh.io.discovery import advertise
from smg_mesh.io.discovery.advertise import advertised_address, route_host
from smg_mesh.io.discovery.resolver import Resolver
from smg_mesh.io.discovery.seed_search import parse_seeds
from smg_mesh.io.errors import MeshError
from smg_mesh.swim.messages import Address


class Names:
    """Resolves after `failures` times of failing."""

    def __init__(self, *hosts: str, failures: int = 0) -> None:
        self.hosts = hosts
        self.failures = failures

    def look_up(self, host: str) -> Sequence[str]:
        self.failures -= 1
        if self.failures >= 0 or not self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.hosts


async def address(wanted: str, listen: str, *seeds: str, names: Names | None = None) -> Address:
    names = names or Names()
    resolver = Resolver(random.Random(1), hosts=names.look_up)
    return await advertised_address(wanted, listen, 77, parse_seeds(seeds), resolver)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advertise, "RETRY_S", 0)


async def test_what_the_operator_says_counts() -> None:
    assert await address("10.0.0.1", "0.0.0.0") == Address("10.0.0.1", 77)
    assert await address("10.0.0.1:5", "127.0.0.1") == Address("10.0.0.1", 5)
    assert await address("[fd00::1]:5", "::") == Address("fd00::1", 5)


async def test_a_name_is_resolved_and_tried_again() -> None:
    found = await address("node:5", "0.0.0.0", names=Names("10.0.0.7", failures=4))
    assert found == Address("10.0.0.7", 5)
    with pytest.raises(MeshError, match=r"mesh\.advertise: 'node' does not resolve"):
        await address("node", "0.0.0.0", names=Names("10.0.0.7", failures=5))


@pytest.mark.parametrize(("listen", "host"), [("0.0.0.0", "10.0.0.7"), ("::1", "fd00::7")])
async def test_a_name_of_two_families_means_the_one_that_is_listened_on(
    listen: str, host: str
) -> None:
    for hosts in (["fd00::7", "10.0.0.7"], ["10.0.0.7", "fd00::7"]):
        assert (await address("node", listen, names=Names(*hosts))).host == host


@pytest.mark.parametrize("wanted", ["0.0.0.0", "[::]:5", "_smg._tcp.example.org", "a b"])
async def test_what_no_peer_could_reach_is_refused(wanted: str) -> None:
    with pytest.raises(MeshError, match=r"mesh\.advertise"):
        await address(wanted, "0.0.0.0")


async def test_one_address_that_is_listened_on_is_told() -> None:
    assert await address("", "127.0.0.3") == Address("127.0.0.3", 77)


async def test_for_all_addresses_the_way_to_the_first_seed_decides() -> None:
    assert await address("", "0.0.0.0", "127.0.0.9:1") == Address("127.0.0.1", 77)
    names = Names("127.0.0.9", failures=1)
    assert await address("", "0.0.0.0", "lost", "seed", names=names) == Address("127.0.0.1", 77)
    assert await address("", "::", "[::1]:5") == Address("::1", 77)


async def test_without_seeds_the_way_out_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {"198.41.0.4": "10.1.1.1"}
    monkeypatch.setattr(advertise, "route_host", lambda to: ways.get(to.host))
    assert await address("", "0.0.0.0") == Address("10.1.1.1", 77)
    assert await address("", "0.0.0.0", "192.0.2.99") == Address("10.1.1.1", 77)


@pytest.mark.parametrize(("listen", "host"), [("0.0.0.0", "127.0.0.1"), ("::", "::1")])
async def test_a_machine_without_a_way_out_says_so(
    listen: str, host: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(advertise, "route_host", lambda to: None)
    assert await address("", listen) == Address(host, 77)
    assert "no route out" in caplog.text


def test_the_routing_table_knows_this_machine() -> None:
    assert route_host(Address("127.0.0.1", 9)) == "127.0.0.1"
    assert route_host(Address("::1", 9)) == "::1"
    assert route_host(Address("0.0.0.0", 0)) in (None, "127.0.0.1")
