"""The source on virtual time: when it asks again, and what it shows meanwhile."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from random import Random

import pytest

from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import SmgError
from smg_node.discovery.dns import resolver
from smg_node.discovery.dns.answers import Answer, RecordKind, UnansweredError
from smg_node.discovery.dns.options import DnsOptions
from smg_node.discovery.dns.source import DnsSource
from smg_node.discovery.sighting import View

OPTIONS = DnsOptions("h.example", 50051)


class World:
    """A clock, and a server that answers what `says` returns for a second of it."""

    def __init__(self, says: Callable[[float], Answer | str], *, until_s: float) -> None:
        self.now_s = 100.0
        self.until_s = until_s
        self.slept: list[float] = []
        self.views: list[View] = []
        self._says = says

    async def ask(self, name: str, kind: RecordKind) -> Answer:
        answer = self._says(self.now_s)
        if isinstance(answer, str):
            raise UnansweredError(answer)
        return answer

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds
        if self.now_s >= self.until_s:
            raise asyncio.CancelledError

    async def run(self, *, down: Sequence[str] = (), known: Sequence[str] = ()) -> list[View]:
        source = DnsSource(
            "metal",
            OPTIONS,
            monotonic_s=lambda: self.now_s,
            rng=Random(1),
            sleep=self.sleep,
            down=lambda endpoint: endpoint in down,
            known=lambda: {one: parse_worker_url(one) for one in known},
            lookup=self,
        )
        assert (source.kind, source.name) == ("dns", "metal")
        with pytest.raises(asyncio.CancelledError):
            await source.run(self.views.append)
        return self.views


def a(*addresses: str, ttl_s: int = 5) -> Answer:
    return Answer(ttl_s, addresses=addresses)


async def test_it_asks_again_when_the_time_of_an_answer_is_up() -> None:
    ttls = {100: 3, 105: 30, 135: 600, 195: 5}
    world = World(lambda now_s: a("10.0.0.1", ttl_s=ttls[int(now_s)]), until_s=200)
    views = await world.run()
    assert world.slept == [5, 30, 60, 5]
    assert [one.whole_ms for one in views] == [100_000, 105_000, 135_000, 195_000]


async def test_a_server_that_is_away_for_five_minutes_costs_no_worker() -> None:
    world = World(lambda now_s: "timed out" if 110 <= now_s < 410 else a("10.0.0.1"), until_s=450)
    views = await world.run()
    assert all(list(one.sightings) == ["10.0.0.1:50051"] for one in views)
    away = [one for one in views if one.trouble]
    assert {one.failing_since_ms for one in away} == {110_000}
    assert {one.whole_ms for one in away} == {105_000}
    tries = world.slept[2 : 2 + len(away)]
    for wait_s, due_s in zip(tries, [1, 2, 4, 8, 16, *[30] * 20], strict=False):
        assert due_s * 0.8 <= wait_s <= min(30, due_s * 1.2)
    assert (views[-1].trouble, views[-1].failing_since_ms) == ("", 0)


async def test_a_name_that_is_gone_for_ten_seconds_is_shown_so_and_comes_back_whole() -> None:
    world = World(
        lambda now_s: Answer(5, exists=False) if 110 <= now_s < 120 else a("10.0.0.1"), until_s=130
    )
    views = await world.run()
    assert [len(one.sightings) for one in views] == [1, 1, 0, 0, 1, 1]


async def test_what_probers_call_down_goes_and_what_is_registered_stays() -> None:
    world = World(lambda now_s: a("10.0.0.1"), until_s=111)
    views = await world.run(
        down=["10.0.0.3:50051"], known=["10.0.0.2:50051", "10.0.0.3:50051", "10.0.0.1:50051"]
    )
    assert all(sorted(one.sightings) == ["10.0.0.1:50051", "10.0.0.2:50051"] for one in views)


async def test_a_node_without_the_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(lambda now_s: "", until_s=100.5)
    monkeypatch.setattr(resolver, "has_library", lambda: False)
    source = DnsSource(
        "metal", OPTIONS, monotonic_s=lambda: 100.0, rng=Random(1), sleep=world.sleep
    )
    with pytest.raises(asyncio.CancelledError):
        await source.run(world.views.append)
    assert [one.trouble for one in world.views] == [
        "this node was installed without DNS (pip install 'smg-node[dns]')"
    ]


def test_a_spec_that_is_none_is_refused_before_it_runs() -> None:
    with pytest.raises(SmgError, match="the parameter 'pool' is unknown"):
        DnsSource(
            "metal", DnsOptions("h.example", 1, spec="pool=x"), monotonic_s=float, rng=Random(1)
        )


async def test_nothing_is_imported_before_it_runs() -> None:
    program = (
        "import sys, random; import smg_node.discovery.dns.source as s;"
        " from smg_node.discovery.dns.options import DnsOptions;"
        " s.DnsSource('a', DnsOptions('h', 1), monotonic_s=float, rng=random.Random());"
        " sys.exit('dns' in sys.modules)"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await process.wait() == 0
