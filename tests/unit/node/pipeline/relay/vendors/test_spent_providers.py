"""A provider whose own limit has nothing left is passed over for this request, and its breaker hears nothing of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.core.generation.events import Delta, End, Fail
from smg_node.core.generation.request import ChatPrompt, Turn
from smg_node.fleet.load.load_options import REQUEST_S
from support.engines.relay_bench import streamed, worker
from support.rights.fake_rights import FakeShare, LimitWorld, door_of, limit
from support.routes.own_bench import own_bench

HI: Final = (ChatPrompt((Turn("user", "hi"),)),)
PROVIDERS: Final[Mapping[str, Any]] = {
    name: {
        "kind": "openai",
        # Nothing listens there, and nothing is to be sent.
        "base": "http://127.0.0.1:9",
        "keys": ["env:SMG_TEST_VENDOR_KEY"],
        "models": ["gpt-4.1-mini"],
    }
    for name in ("p", "q")
}


class World:
    """Two providers, one call of each left to make, or none."""

    def __init__(self, left: int = 0) -> None:
        self.limits = LimitWorld()
        self.shares = [self._add(name, left) for name in ("p", "q")]
        self.tenant = self.limits.add(limit(), 100)

    def _add(self, provider: str, left: int) -> FakeShare:
        match = limit(scope=f"provider={provider}", window_ms=1_000)
        share = self.limits.add(match, left)
        self.limits.rules.providers[provider] = [self.limits.rules.matches.pop()]
        return share

    @property
    def door(self) -> Admission:
        return door_of(self.limits)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMG_TEST_VENDOR_KEY", "sk-nobody")


@pytest.mark.parametrize("choose", ["weighted", "affinity"])
async def test_the_next_target_answers(tmp_path: Path, choose: str) -> None:
    targets = ["p/gpt-4.1-mini", {"to": "engines/m", "on": ["rate"]}]
    routes = {"public": {"targets": targets, "choose": choose}}
    said = {"index": 0, "delta": {"content": "hey"}, "finish_reason": "stop"}
    event = b"data: " + msgspec.json.encode({"choices": [said]}) + b"\n\n"
    server = worker(lambda _call: streamed(event, b"data: [DONE]\n\n"))
    async with own_bench(
        tmp_path, routes, servers={"w": server}, providers=PROVIDERS, admission=World().door
    ) as b:
        events = await b.events("public", prompts=HI)
        assert "".join(one.text for one in events if isinstance(one, Delta)) == "hey"
        assert isinstance(events[-1], End)
        assert [one.kind for one in b.outcomes] == ["ok"]
        assert b.idle()


@pytest.mark.parametrize("choose", ["weighted", "affinity"])
async def test_where_all_are_spent_the_client_is_told_by_whose_limit(
    tmp_path: Path, choose: str
) -> None:
    world = World()
    targets = ["p/gpt-4.1-mini", "q/gpt-4.1-mini"]
    routes = {"public": {"targets": targets, "choose": choose}}
    async with own_bench(tmp_path, routes, providers=PROVIDERS, admission=world.door) as b:
        [failed] = await b.events("public", prompts=HI)
        assert isinstance(failed, Fail)
        assert isinstance(failed.error, LimitedError)
        assert failed.error.provider in ("p", "q")
        assert b.idle()
        for target in b.fleet.workers():
            assert not target.breaker.troubled
            assert target.load.request_s == REQUEST_S
