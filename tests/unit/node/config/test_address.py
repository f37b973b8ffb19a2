import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.config.address import Address, parse_address, split_host_port


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:30000", Address("127.0.0.1", 30000)),
        (":0", Address("0.0.0.0", 0)),
        ("[::1]:65535", Address("::1", 65535)),
        ("[fe80::1%eth0]:1", Address("fe80::1%eth0", 1)),
        ("Node-1.Example.org:80", Address("node-1.example.org", 80)),
        ("_dns.local.:53", Address("_dns.local.", 53)),
    ],
)
def test_an_address_is_read_and_written_the_same_way(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("30000", "write :30000"),
        ("localhost", "needs a host and a port"),
        ("", "needs a host and a port"),
        ("h:65536", "0 to 65535"),
        ("h:-1", "0 to 65535"),
        ("h:٣", "0 to 65535"),
        ("h:", "0 to 65535"),
        ("::1:80", "needs brackets"),
        ("[::1]", "[address]:port"),
        ("[::1]80", "[address]:port"),
        ("[::g]:80", "not an IPv6 address"),
        ("300.1.1.1:80", "not an IPv4 address"),
        ("1.2.3:80", "not an IPv4 address"),
        ("a b:80", "not a host name"),
        ("-a:80", "not a host name"),
        ("a..b:80", "not a host name"),
        (f"{'a.' * 127}a:80", "not a host name"),
        ("http://127.0.0.1:80", "an address without http://, as in 127.0.0.1:80"),
        ("https://[::1]:80/v1", "an address without https://, as in [::1]:80"),
        ("http://", "an address without http://, as in HOST:PORT"),
    ],
)
def test_a_wrong_address_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(hint)):
        parse_address(text)


@given(st.text(max_size=60) | st.from_regex(r"\[?[0-9a-f:.]{0,20}\]?:[0-9]{0,6}", fullmatch=True))
def test_any_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        host, port = split_host_port(text)
    except ValueError:
        return
    assert 0 <= port <= 65535
    assert host == host.strip()
    address = parse_address(text)
    assert parse_address(str(address)) == address
