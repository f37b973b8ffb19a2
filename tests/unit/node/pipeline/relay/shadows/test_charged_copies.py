"""A copy is charged to its provider's limits as any call is, to no client's, and leaves no state behind."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import End
from smg_node.core.ports import Clock
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.pipeline.relay.relay_context import Asks, RelayParts, Translation
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.relay_run import RelayRun
from smg_node.pipeline.relay.shadows.shadow_records import AnswerFigures, ShadowRecord
from smg_node.pipeline.relay.shadows.shadow_runs import CopyCall, ShadowRuns
from smg_node.pipeline.relay.shadows.shadow_tap import Shadowed
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine, card, says
from support.engines.relay_bench import told, worker
from support.engines.relay_bench import whole as whole_of
from support.rights.fake_rights import LimitWorld, door_of, limit, whole
from support.routes.own_bench import own_bench

FIGURES: Final = AnswerFigures(1, 0, 1, 5, 2, None)
PROVIDERS: Final[Mapping[str, Any]] = {
    "p": {
        "kind": "openai",
        # Nothing listens there.
        "base": "http://127.0.0.1:9",
        "keys": ["env:SMG_TEST_VENDOR_KEY"],
        "models": ["gpt-4.1-mini"],
    }
}
ROUTE: Final = {
    "targets": ["engines/m"],
    "shadow": {"to": "p/gpt-4.1-mini", "share": 1.0, "budget": "9/day"},
}


def engine() -> FakeEngine:
    found = FakeEngine(says("hello"), model="m")
    found.model_card = card("m")
    return found


class Cache:
    """A state cache that takes down what it is asked."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    async def keep(self, tenant: str, key: str, row: bytes) -> None:
        self.kept.append(key)

    async def find(self, tenant: str, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {"k": b"row"}


class World:
    """Limits of a provider and of tenants, with five requests left of each."""

    def __init__(self, left: int = 5) -> None:
        limits = LimitWorld()
        self.provider = limits.add(limit(scope="provider=p"), left)
        limits.rules.providers["p"] = [limits.rules.matches.pop()]
        self.tenant = limits.add(limit(), 5)
        self.door = door_of(limits)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMG_TEST_VENDOR_KEY", "sk-nobody")


@pytest.mark.parametrize("left", [5, 0])
async def test_a_copy_is_charged_to_its_provider_alone_and_keeps_no_state(
    tmp_path: Path, left: int
) -> None:
    world, cache = World(left), Cache()
    whole_answer = {
        "choices": [{"index": 0, "message": {"content": "hey"}, "finish_reason": "stop"}]
    }
    server = worker(lambda _call: told(whole_answer))
    body = {"model": "public", "messages": [{"role": "user", "content": "hi"}]}
    asked = relayable(APIS["chat"], msgspec.json.encode(body), body)
    reading = ChatDialect(ReaderOptions()).read(dict(body))
    presenter = ChatDialect(ReaderOptions()).presenter(reading)
    asks = Asks("chat", False, translate=lambda: Translation(reading.request, presenter))
    seen: list[RelayParts] = []
    async with own_bench(
        tmp_path,
        {"public": ROUTE},
        servers={"w": server},
        providers=PROVIDERS,
        admission=world.door,
    ) as b:

        async def compared(one: Shadowed, clock: Clock) -> ShadowRecord:
            call = CopyCall(one, reading.request, clock)
            seen.append(call.parts)
            with pytest.raises(SmgError):
                await call.answer()
            return ShadowRecord(0, "", "", "", FIGURES, None)

        parts = replace(b.relays.parts, state_cache=cache)
        async with asyncio.TaskGroup() as group:
            runs = ShadowRuns(
                lambda work, _name: group.create_task(work), SystemClock(), lambda: 1, compared
            )
            parts.post.shadows = runs
            run = RelayRun(parts, asked, {}, b.context(), "", asks)
            await whole_of(run)
        assert runs.book.of("public").outcomes == {"failed": 1}
    # One that finds nothing left is not sent.
    assert whole(world.provider) == ((4, 1) if left else (0, 0))
    assert whole(world.tenant) == (4, 1)
    [copied] = seen
    assert copied.state_cache is not None
    await copied.state_cache.keep("t", "k", b"row")
    assert cache.kept == []
    assert await copied.state_cache.find("t", ["k"]) == {"k": b"row"}


async def test_what_own_engines_tell_past_the_bytes_is_not_copied(tmp_path: Path) -> None:
    world = World()
    async with own_bench(
        tmp_path, {"public": ROUTE}, {"e": engine()}, providers=PROVIDERS, admission=world.door
    ) as b:
        async with asyncio.TaskGroup() as group:
            runs = ShadowRuns(lambda work, _name: group.create_task(work), SystemClock(), lambda: 1)
            b.relays.parts.post.shadows = runs
            events = await b.events("public")
            await b.answer("public")
        assert isinstance(events[-1], End)
        assert runs.book.of("public").outcomes == {}
    assert whole(world.provider) == (5, 0)
