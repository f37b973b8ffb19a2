import pytest

from smg_node.http.middleware.authorization import cors_headers, credentials, is_loopback


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ({}, ()),
        ({"authorization": "Bearer k1"}, ("k1",)),
        ({"authorization": "bearer  k1 "}, ("k1",)),
        ({"x-api-key": "k1"}, ("k1",)),
        ({"x-goog-api-key": " k1"}, ("k1",)),
        ({"authorization": "Bearer k1", "x-api-key": "k1"}, ("k1",)),
        ({"authorization": "Bearer k1", "x-api-key": "k2"}, ("k1", "k2")),
        (
            {"x-goog-api-key": "k3", "x-api-key": "k2", "authorization": "Bearer k1"},
            ("k1", "k2", "k3"),
        ),
        ({"x-goog-api-key": "k3", "authorization": "Bearer k3", "x-api-key": "k2"}, ("k3", "k2")),
        ({"authorization": "Basic abc"}, ()),
        ({"authorization": "Bearer "}, ()),
        ({"x-api-key": ""}, ()),
        ({"x-api-key": "", "x-goog-api-key": "k3"}, ("k3",)),
    ],
)
def test_keys_may_come_under_three_names(headers: dict[str, str], keys: tuple[str, ...]) -> None:
    assert credentials(headers) == keys
    assert credentials(headers, "k4") == (*keys, "k4")
    assert credentials(headers, "k3") == (keys if "k3" in keys else (*keys, "k3"))


@pytest.mark.parametrize(
    "peer", ["", "127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "::1%lo"]
)
def test_these_peers_are_this_machine(peer: str) -> None:
    assert is_loopback(peer)


@pytest.mark.parametrize(
    "peer", ["10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "0.0.0.0", "garbage", "128.0.0.1"]
)
def test_these_peers_are_not(peer: str) -> None:
    assert not is_loopback(peer)


def test_no_origin_is_allowed_unless_configured() -> None:
    assert cors_headers({"origin": "https://a.example"}, ()) == {}
    assert cors_headers({}, ("*",)) == {}


def test_an_origin_must_match_exactly() -> None:
    allowed = ("https://a.example",)
    good = cors_headers({"origin": "https://a.example"}, allowed)
    assert good["access-control-allow-origin"] == "https://a.example"
    assert good["access-control-allow-credentials"] == "true"
    for origin in ("https://a.example.evil", "http://a.example", "https://A.example", "null"):
        assert "access-control-allow-origin" not in cors_headers({"origin": origin}, allowed)


def test_a_star_never_goes_with_credentials() -> None:
    assert cors_headers({"origin": "https://x.example"}, ("*",)) == {
        "access-control-allow-origin": "*"
    }
