import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.io.discovery.host_address import Place, is_local, numeric_host, parse_place
from smg_mesh.swim.messages import Address


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("seed", Place("seed", "seed", 7946)),
        ("seed:1", Place("seed:1", "seed", 1)),
        (" seed.example.org. ", Place("seed.example.org.", "seed.example.org.", 7946)),
        (
            "smg-0.smg_headless.ns.svc",
            Place("smg-0.smg_headless.ns.svc", "smg-0.smg_headless.ns.svc", 7946),
        ),
        ("10.0.0.1", Place("10.0.0.1", "10.0.0.1", 7946)),
        ("10.0.0.1:65535", Place("10.0.0.1:65535", "10.0.0.1", 65535)),
        ("[fd00::1]:8000", Place("[fd00::1]:8000", "fd00::1", 8000)),
        ("[FD00:0::1]", Place("[FD00:0::1]", "fd00::1", 7946)),
        ("fd00::1", Place("fd00::1", "fd00::1", 7946)),
        ("::ffff:10.0.0.1", Place("::ffff:10.0.0.1", "10.0.0.1", 7946)),
        (
            "_smg._tcp.example.org",
            Place("_smg._tcp.example.org", "_smg._tcp.example.org", 7946, service=True),
        ),
    ],
)
def test_what_people_write_is_understood(text: str, place: Place) -> None:
    assert parse_place(text, default_port=7946) == place


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ":1", "seed:", "seed:0", "seed:65536", "seed:x", "seed:-1", "seed:１", "a:1:2",
        "[fd00::1", "[fd00::1]x", "[seed]:1", "fd00::zz", "fe80::1%eth0", "a b", "a..b", ".", "a/b",
        "http://seed:1", "10.0.0.256", "10.0.0", "_smg._tcp.example.org:1", "x" * 254, "x" * 64,
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_its_own_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no host|neither|port|IPv4|is a URL"):
        parse_place(text, default_port=7946)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("http://seed:1", "seed:1"),
        ("https://[fd00::1]:7946/v1", "[fd00::1]:7946"),
        ("grpc://", "HOST:PORT"),
    ],
)
def test_a_url_is_told_what_to_leave_out(text: str, bare: str) -> None:
    scheme = text.partition(":")[0]
    with pytest.raises(ValueError, match="is a URL") as caught:
        parse_place(text, default_port=7946)
    assert str(caught.value) == (
        f"{text!r} is a URL: write the address without {scheme}://, as in {bare}"
    )


@given(st.text(max_size=40))
def test_any_text_is_a_place_or_an_error(text: str) -> None:
    try:
        place = parse_place(text, default_port=7946)
    except ValueError:
        return
    assert 1 <= place.port <= 65_535
    assert place.numeric is None or numeric_host(place.host) == place.host


def test_an_address_survives_being_written_and_read() -> None:
    for address in (Address("10.0.0.1", 7), Address("fd00::1", 7946)):
        assert parse_place(str(address), default_port=1).numeric == address


def test_what_can_be_bound_is_ours() -> None:
    assert is_local("127.0.0.1")
    assert not is_local("198.51.100.77")
