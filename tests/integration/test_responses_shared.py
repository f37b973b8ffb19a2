"""Two nodes with one store: each call of a long session goes to another node, and nobody could tell."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    contextmanager,
)
from itertools import cycle
from pathlib import Path

import openai
import pytest
from openai import OpenAI

from support.node import RunningNode, running_node
from support.postgres_server import running_postgres
from support.redis_server import running_redis
from support.simulated import Simulated, running_simulated

pytestmark = pytest.mark.integration

WHOLE = {"ignore_eos": True}
WORDS = ("one", "two", "three", "four", "five", "six")


@contextmanager
def postgres(folder: Path) -> Iterator[Sequence[str]]:
    """An empty database, whose tables the first node makes."""
    with running_postgres(folder) as server, asyncio.Runner() as runner:
        database = server.database()
        url = runner.run(_entered(database))
        try:
            yield ("--store", url, "--storage.auto-migrate", "on")
        finally:
            runner.run(_left(database))


async def _entered(database: AbstractAsyncContextManager[str]) -> str:
    return await database.__aenter__()


async def _left(database: AbstractAsyncContextManager[str]) -> None:
    await database.__aexit__(None, None, None)


@contextmanager
def redis(folder: Path) -> Iterator[Sequence[str]]:
    with running_redis(folder) as server:
        yield ("--store", server.url, "--storage.owner", server.new_prefix())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "echo", "--model", "parrot", "--itl-ms", "0.2", "--ttft-ms", "1")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags) as running:
        yield running


def client_of(node: RunningNode) -> OpenAI:
    return OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)


def session(clients: Iterator[OpenAI]) -> list[str]:
    """Talk by chain and by conversation, each call to the next client; return all that was said."""
    said = []
    last: str | None = None
    room = next(clients).conversations.create().id
    for word in WORDS:
        by_chain = next(clients).responses.create(
            model="parrot",
            input=word,
            previous_response_id=last,
            max_output_tokens=24,
            extra_body=WHOLE,
        )
        assert next(clients).responses.retrieve(by_chain.id) == by_chain
        last = by_chain.id
        in_room = next(clients).responses.create(
            model="parrot",
            input=word,
            conversation=room,
            max_output_tokens=24,
            extra_body=WHOLE,
        )
        assert in_room.output_text == by_chain.output_text
        said.append(by_chain.output_text)
    listed = next(clients).conversations.items.list(room, order="asc", limit=5)
    assert len(list(listed)) == 2 * len(WORDS)
    return said


def running_nodes(
    stack: ExitStack, folder: Path, engine: Simulated, stores: Sequence[Sequence[str]]
) -> list[RunningNode]:
    return [
        stack.enter_context(
            running_node(
                folder / f"node-{number}", workers=[f"grpc://{engine.address}"], flags=store
            )
        )
        for number, store in enumerate(stores)
    ]


@pytest.mark.parametrize("server", [postgres, redis])
def test_a_session_over_many_nodes_reads_as_one_on_a_single_node(
    server: Callable[[Path], AbstractContextManager[Sequence[str]]],
    engine: Simulated,
    tmp_path: Path,
) -> None:
    (tmp_path / "store").mkdir()
    with ExitStack() as stack:
        shared = stack.enter_context(server(tmp_path / "store"))
        alone = ("--store", "memory:")
        nodes = running_nodes(stack, tmp_path, engine, (shared, shared, alone))
        *clients, single = [stack.enter_context(client_of(node)) for node in nodes]
        assert session(cycle(clients)) == session(cycle([single]))
        made = clients[0].responses.create(model="parrot", input="bye")
        clients[1].responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            clients[0].responses.retrieve(made.id)
