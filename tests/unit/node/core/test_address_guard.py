"""Which addresses are connected with for URLs that clients name."""

import pytest

from smg_node.core.address_guard import AddressGuard

PRIVATE = [
    "127.0.0.1", "127.255.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0",
    "fd00:ec2::254", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "64:ff9b:1::a00:1", "2001:db8::1", "", "nonsense", "1.2.3", "::7f00:1", "::ffff:0:7f00:1", "fec0::1",
    "64:ff9b:1:a00:0:100:808:808", "3fff::1", "5f00::1",
]  # fmt: skip
PUBLIC = ["93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", PRIVATE)
def test_only_public_addresses_are_allowed(address: str) -> None:
    assert not AddressGuard(()).allows("https://tools.example.com/mcp", address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed_for_any_host(address: str) -> None:
    assert AddressGuard(()).allows("https://tools.example.com/mcp", address)


def test_what_is_listed_may_be_private() -> None:
    guard = AddressGuard(["tools.corp", "*.lab.corp:8443", "10.9.0.0/16", "fd12::/16"])
    assert guard.allows("http://Tools.Corp./", "10.0.0.1")
    assert guard.allows("https://a.lab.corp:8443/", "192.168.0.1")
    assert not guard.allows("https://lab.corp:8443/", "192.168.0.1")
    assert not guard.allows("https://evil-lab.corp:8443/", "192.168.0.1")
    assert guard.allows("https://anything.example/", "10.9.1.1")
    assert guard.allows("https://anything.example/", "fd12::5")
    assert not guard.allows("https://anything.example/", "10.8.1.1")


def test_a_host_that_is_listed_with_a_port_may_be_private_at_that_port_only() -> None:
    guard = AddressGuard(["tools.corp:8443"])
    assert guard.allows("https://tools.corp:8443/mcp", "10.0.0.1")
    assert not guard.allows("https://tools.corp/mcp", "10.0.0.1")
    assert not guard.allows("http://tools.corp:22/", "10.0.0.1")
    assert guard.allows("https://tools.corp/mcp", "93.184.216.34")


@pytest.mark.parametrize(
    ("url", "is_listed"),
    [
        ("https://tools.corp/mcp", True),
        ("https://TOOLS.corp:9999/mcp", True),
        ("https://tools.corp.evil.example/mcp", False),
        ("https://a.lab.corp:8443/mcp", True),
        ("https://a.lab.corp/mcp", False),
        ("https://.lab.corp:8443/", False),
        ("http://10.9.3.4/mcp", True),
        ("http://10.8.3.4/mcp", False),
        ("http://[fd12::1]:80/", True),
    ],
)
def test_a_url_is_listed_by_host_port_or_network(url: str, is_listed: bool) -> None:
    guard = AddressGuard(["tools.corp", "*.lab.corp:8443", "10.9.0.0/16", "fd12::/16"])
    assert guard.lists(url) == is_listed
