import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.access.proxies import TrustedProxies, address_in
from support.tools.example_counts import example_count

PROXIES = TrustedProxies(["10.0.0.0/8", "2001:db8::/32", "127.0.0.1/32"])


@pytest.mark.parametrize("peer", ["10.1.2.3", "2001:db8::1", "127.0.0.1", "::ffff:10.1.2.3"])
def test_these_peers_are_believed(peer: str) -> None:
    assert PROXIES.trusts(peer)
    assert PROXIES.trusts(peer), "again, from memory"


@pytest.mark.parametrize("peer", ["11.1.2.3", "2001:db9::1", "", "garbage", "127.0.0.2", "::1"])
def test_these_peers_are_not(peer: str) -> None:
    assert not PROXIES.trusts(peer)


def test_only_so_many_peers_are_remembered() -> None:
    proxies = TrustedProxies(["10.0.0.0/8"])
    for number in range(9_000):
        assert proxies.trusts(f"10.0.{number // 256}.{number % 256}")
    assert len(proxies._known) <= 4_096


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("", "10.0.0.1"),
        ("203.0.113.7", "203.0.113.7"),
        ("1.2.3.4, 203.0.113.7", "203.0.113.7"),
        ("1.2.3.4, 203.0.113.7, 10.0.0.2, 10.0.0.3", "203.0.113.7"),
        ("10.0.0.9, 10.0.0.2", "10.0.0.9"),
        ("203.0.113.7:4711", "203.0.113.7"),
        ("[2001:db9::7]:4711, 10.0.0.2", "2001:db9::7"),
        ("2001:db9::7", "2001:db9::7"),
        ("1.2.3.4, unknown, 10.0.0.2", "10.0.0.2"),
        ("1.2.3.4, _hidden", "10.0.0.1"),
        ("127.0.0.1, 203.0.113.7", "203.0.113.7"),
        ("203.0.113.7,", "10.0.0.1"),
        (",".join(["1.2.3.4", *["10.0.0.2"] * 100]), "10.0.0.2"),
    ],
)
def test_the_last_address_that_is_no_proxy_of_ours_is_the_clients(
    forwarded: str, client: str
) -> None:
    assert PROXIES.client_of("10.0.0.1", forwarded) == client


@settings(max_examples=example_count(200))
@given(st.text(max_size=60), st.ip_addresses())
def test_what_a_client_writes_before_is_never_believed(text: str, client: object) -> None:
    if not PROXIES.trusts(str(client)):
        assert PROXIES.client_of("10.0.0.1", f"{text},{client}") == address_in(str(client))


@settings(max_examples=example_count(300))
@given(st.text(st.sampled_from("0123456789.:[]%, abcf"), max_size=40))
def test_garbage_is_an_address_or_none(text: str) -> None:
    address_in(text)
    assert PROXIES.client_of("10.0.0.1", text)
