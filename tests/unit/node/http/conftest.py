import pytest

from support.http import http_node


@pytest.fixture(params=["direct", "aiohttp"])
def either_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test once with our own server, once with the framework's: they promise the same."""
    monkeypatch.setattr(http_node, "SERVER", request.param)
