"""One real node in front of real engines, for all judges."""

from collections.abc import AsyncIterator, Iterator

import pytest
from openai import AsyncOpenAI, OpenAI

from support.processes.mlx_engine import MlxEngine, MlxEngines
from support.processes.node import RunningNode, running_node

# Model name to the script its engine says.
MODELS = {"tiny": "plain", "split": "split", "endless": "endless"}


@pytest.fixture(scope="session")
def engines(mlx_engines: MlxEngines) -> dict[str, MlxEngine]:
    """Model name to the engine behind it."""
    return {model: mlx_engines.saying(script) for model, script in MODELS.items()}


@pytest.fixture(scope="session")
def node(
    engines: dict[str, MlxEngine], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningNode]:
    workers = [f"grpc://{engine.address}?model={model}" for model, engine in engines.items()]
    with running_node(tmp_path_factory.mktemp("node"), workers=workers) as running:
        yield running


@pytest.fixture
def client(node: RunningNode) -> Iterator[OpenAI]:
    """The official client, which must not paper over a failure by trying again."""
    with OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=120) as client:
        yield client


@pytest.fixture
async def async_client(node: RunningNode) -> AsyncIterator[AsyncOpenAI]:
    """The same, asynchronous."""
    async with AsyncOpenAI(
        base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=120
    ) as client:
        yield client
