"""The fleet of providers says when its definitions have become targets, whatever was wrong with them."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from smg_node.cluster.providers.provider_fleet import ProviderFleet
from smg_node.core.ids import WorkerId
from smg_node.fleet.workers.worker_spec import DeclaredWorker
from smg_node.providers.provider_book import ProviderBook

OWN = json.dumps(
    {"providers": {"a": {"kind": "anthropic", "keys": ["sk-a"], "models": ["claude-sonnet-5"]}}}
)


class Documents:
    """Shared definitions: none; reading them fails as often as `failures` says."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.heard: list[Callable[[Sequence[str]], None]] = []

    def all(self) -> Mapping[str, Any]:
        if self.failures:
            self.failures -= 1
            raise ValueError("cannot be read")
        return {}

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        self.heard.append(heard)


class Rates:
    """Nobody else knows anything of limits."""

    def publish(self, rows: Mapping[str, Any]) -> None:
        assert not rows

    def others(self) -> Mapping[str, Any]:
        return {}

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        return


class Digests:
    def digest(self, *_parts: str) -> bytes:
        return b""


class State:
    def __init__(self, documents: Documents) -> None:
        self.providers: Any = documents
        self.rates: Any = Rates()
        self.carried: Any = Digests()

    def open_secret(self, sealed: bytes) -> str | None:
        return None

    def living(self) -> Sequence[str]:
        return ("a",)


class Fleet:
    def __init__(self) -> None:
        self.workers: dict[WorkerId, DeclaredWorker | None] = {}

    def apply(self, changes: dict[WorkerId, DeclaredWorker | None]) -> None:
        self.workers.update(changes)


class Book:
    """Accounts that call nobody."""

    def accounts(self) -> Mapping[str, Any]:
        return {}

    def update(self, _providers: Mapping[str, Any]) -> None:
        return

    async def close(self) -> None:
        return


def book_of(_spawn: Callable[[Coroutine[Any, Any, None], str], Any]) -> ProviderBook:
    made: Any = Book()
    return made  # type: ignore[no-any-return]  # as much of one as is asked for


@pytest.mark.parametrize(("own", "failures", "count"), [(OWN, 0, 1), ("", 0, 0), (OWN, 1, 0)])
async def test_it_says_when_its_targets_are_known(own: str, failures: int, count: int) -> None:
    documents, fleet = Documents(failures), Fleet()
    providers = ProviderFleet(own, State(documents), book_of, lambda: 0)
    assert not providers.applied
    assert not providers.targets
    async with asyncio.TaskGroup() as group:
        running = group.create_task(providers.run(fleet))
        await until(lambda: providers.applied)
        assert len(providers.targets) == count
        assert set(providers.targets) == fleet.workers.keys()
        documents.heard[0](())
        await until(lambda: len(providers.targets) == (1 if own else 0))
        running.cancel()


async def until(true: Callable[[], bool]) -> None:
    """Return once it holds, which takes a few turns of the loop and no time."""
    for _ in range(100):
        if true():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never holds")
