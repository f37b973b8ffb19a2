"""Which transport the bench's engine is called over."""

import pytest

from smg_node.engines.grpc.known_transports import transports
from support.engines import engine_bench


@pytest.fixture(params=list(transports()))
def each_transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the test run over every transport there is."""
    monkeypatch.setattr(engine_bench, "TRANSPORT", request.param)
    return str(request.param)
