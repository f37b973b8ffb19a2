import pytest

from support.http import http_node, raw_http
from support.http.served_tls import localhost


@pytest.fixture(params=["direct", "aiohttp", "direct over TLS"])
def either_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with our own server, with the framework's, and with our own over TLS: they promise the same."""
    monkeypatch.setattr(http_node, "SERVER", request.param.partition(" ")[0])
    if request.param.endswith("TLS"):
        options, trust = localhost()
        monkeypatch.setattr(http_node, "TLS", options)
        monkeypatch.setattr(raw_http, "TLS", trust)
