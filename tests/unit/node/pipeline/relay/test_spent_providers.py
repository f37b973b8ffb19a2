"""What a provider's own limit has nothing left for goes to the route's other targets, whatever the limit's window."""

from pathlib import Path

import pytest

from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.core.generation.events import Delta, Fail
from smg_node.core.generation.request import ChatPrompt, Turn
from smg_node.engines.http.transport import HttpCall
from support.engines.relay_bench import Told, streamed, worker
from support.rights.fake_rights import LimitWorld, door_of, limit
from support.routes.own_bench import own_bench

MINUTE_MS = 60_000
DAY_MS = 86_400_000
HI = (ChatPrompt((Turn("user", "hi"),)),)
PROVIDERS = {
    "v": {"kind": "openai_like", "base": "http://127.0.0.1:9/v1", "credentials": "none"},
}
"""Nobody listens there: a call that were sent would break."""


def spent_door(window_ms: int) -> Admission:
    """Return a door at which the calls of provider `v` have nothing left in such a window."""
    world = LimitWorld()
    world.add(limit(scope="provider=v", window_ms=window_ms), 0, 10)
    world.rules.providers["v"] = [world.rules.matches.pop()]
    return door_of(world)


def says_hello(call: HttpCall) -> Told:
    first = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'
    last = b'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    return streamed(first, last, b"data: [DONE]\n\n")


@pytest.mark.parametrize("window_ms", [MINUTE_MS, DAY_MS])
@pytest.mark.parametrize("second", ["engines/m", {"to": "engines/m", "on": ["rate"]}])
async def test_another_target_takes_the_request(
    tmp_path: Path, window_ms: int, second: object
) -> None:
    routes = {"public": {"targets": ["v/m", second], "choose": "cheapest"}}
    door, servers = spent_door(window_ms), {"w": worker(says_hello)}
    async with own_bench(
        tmp_path, routes, servers=servers, providers=PROVIDERS, admission=door
    ) as b:
        for _ in range(8):
            events = await b.events("public", prompts=HI)
            assert "".join(one.text for one in events if isinstance(one, Delta)) == "hello"
        assert {one.kind for one in b.outcomes} == {"ok"}
        assert b.idle()


@pytest.mark.parametrize("window_ms", [MINUTE_MS, DAY_MS])
async def test_without_another_one_the_client_is_told_of_the_limit(
    tmp_path: Path, window_ms: int
) -> None:
    door = spent_door(window_ms)
    async with own_bench(tmp_path, {"public": ["v/m"]}, providers=PROVIDERS, admission=door) as b:
        [failed] = await b.events("public", prompts=HI)
        assert isinstance(failed, Fail)
        assert isinstance(failed.error, LimitedError)
        assert failed.error.refused.name.startswith("provider=v#requests")
        assert [one.status for one in b.outcomes] == [429]
        [target] = b.fleet.workers()
        assert target.breaker.usable(1e9)
        assert b.idle()
