"""Workers found by names, with knot as the name server. Its answers are real, and time is not: a source that waits for
minutes waits for nothing here.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from smg_node.discovery.dns.answers import Answer, RecordKind, UnansweredError
from smg_node.discovery.dns.options import DnsOptions
from smg_node.discovery.dns.resolver import DnsResolver
from smg_node.discovery.dns.source import DnsSource
from smg_node.discovery.sighting import View
from support.discovery.knot_server import NEGATIVE_TTL_S, Knot, running_knot

pytestmark = pytest.mark.integration
Step = Callable[[], object]

RECORDS = (
    "one 6 A 10.0.0.1",
    "one 6 A 10.0.0.2",
    "six 6 AAAA fd00::1",
    "both A 10.0.0.3",
    "both AAAA fd00::3",
    "alias 5 CNAME short",
    "short 2 CNAME one",
    "far CNAME vllm.elsewhere.",
    "text TXT nothing",
    "sub NS ns.sub",
    "ns.sub A 127.0.0.9",
    *(f"big A 10.1.{one // 250}.{one % 250 + 1}" for one in range(600)),
    *(f"_grpc._tcp.big SRV 10 5 {50_000 + one} e{one}" for one in range(400)),
    *(f"e{one} A 10.2.{one // 250}.{one % 250 + 1}" for one in range(400)),
    "_grpc._tcp.pool 20 SRV 10 100 50051 one",
    "_grpc._tcp.pool 20 SRV 10 200 50052 six",
    "_grpc._tcp.pool 20 SRV 10 100 50055 both",
    "_grpc._tcp.pool 20 SRV 10 100 50054 missing",
    "_grpc._tcp.pool 20 SRV 20 100 50053 spare",
    "_grpc._tcp.none SRV 0 0 0 .",
)


@pytest.fixture
def knot(tmp_path: Path) -> Iterator[Knot]:
    with running_knot(tmp_path / "knot", RECORDS) as server:
        yield server


class Door:
    """Door to a server that a test waits for as long as it takes, and not for long while it is dead."""

    def __init__(self, knot: Knot) -> None:
        self._knot = knot
        self._patient = DnsResolver([knot.address], timeout_s=60.0, server_timeout_s=20.0)
        self._hasty = DnsResolver([knot.address], timeout_s=0.2)

    async def ask(self, name: str, kind: RecordKind) -> Answer:
        return await (self._patient if self._knot.is_alive else self._hasty).ask(name, kind)


async def ask(knot: Knot, name: str, kind: RecordKind) -> Answer:
    return await Door(knot).ask(f"{name}.example", kind)


async def watched(
    knot: Knot, name: str, *steps: Step, port: int = 50051, spec: str = ""
) -> tuple[list[View], list[float]]:
    """Run a source; carry out a step each time that it waits. Return its views, and how long it would have waited."""
    views: list[View] = []
    waits: list[float] = []
    left = list(steps)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if not left:
            raise asyncio.CancelledError
        left.pop(0)()

    source = DnsSource(
        "metal",
        DnsOptions(f"{name}.example", 0 if name.startswith("_") else port, spec=spec),
        monotonic_s=lambda: 100.0 + sum(waits),
        rng=Random(1),
        sleep=sleep,
        lookup=Door(knot),
    )
    with pytest.raises(asyncio.CancelledError):
        await source.run(views.append)
    return views, waits


def urls(view: View) -> list[str]:
    return [str(one.url) for one in view.sightings.values()]


def wait() -> None:
    """Let the time of one answer pass."""


async def test_addresses_of_either_family_and_aliases(knot: Knot) -> None:
    found = {name: await watched(knot, name) for name in ("one", "six", "both", "alias")}
    assert {name: urls(views[-1]) for name, (views, _) in found.items()} == {
        "one": ["10.0.0.1:50051", "10.0.0.2:50051"],
        "six": ["[fd00::1]:50051"],
        "both": ["10.0.0.3:50051"],
        "alias": ["10.0.0.1:50051", "10.0.0.2:50051"],
    }
    assert {name: waits for name, (_, waits) in found.items()} == {
        "one": [6],
        "six": [6],
        "both": [5],
        "alias": [5],  # 2 seconds, of the alias in the middle, are too few
    }


async def test_times_of_answers(knot: Knot) -> None:
    assert (await ask(knot, "alias", "A")).ttl_s == 2
    assert await ask(knot, "one", "AAAA") == Answer(NEGATIVE_TTL_S)
    assert await ask(knot, "nothing", "A") == Answer(NEGATIVE_TTL_S, exists=False)
    assert await ask(knot, "text", "A") == Answer(NEGATIVE_TTL_S)


async def test_answers_that_udp_has_no_room_for(knot: Knot) -> None:
    views, _ = await watched(knot, "big")
    assert len(views[-1].sightings) == 600
    views, _ = await watched(knot, "_grpc._tcp.big")
    assert len(views[-1].sightings) == 400
    assert "10.2.1.150:50399" in views[-1].sightings


async def test_services_of_the_lowest_priority_with_weights(knot: Knot) -> None:
    views, waits = await watched(knot, "_grpc._tcp.pool", spec="label.pool=a")
    assert urls(views[-1]) == [
        "10.0.0.3:50055?label.pool=a&label.weight=1",
        "10.0.0.1:50051?label.pool=a&label.weight=1",
        "10.0.0.2:50051?label.pool=a&label.weight=1",
        "[fd00::1]:50052?label.pool=a&label.weight=2",
    ]
    assert [f"{one.origin}: {one.why}" for one in views[-1].unusable] == [
        "target missing.example:50054: it has no address",
        "_grpc._tcp.pool.example: 1 records of less urgent priorities are not used",
    ]
    assert waits == [5]


async def test_names_with_nothing_are_answers(knot: Knot) -> None:
    for name in ("nothing", "text", "_grpc._tcp.nothing"):
        views, waits = await watched(knot, name)
        assert (urls(views[-1]), views[-1].trouble, waits) == ([], "", [NEGATIVE_TTL_S])
        assert views[-1].whole_ms
    views, _ = await watched(knot, "_grpc._tcp.none")
    assert (urls(views[-1]), views[-1].trouble) == ([], "")


async def test_refusals_and_referrals_are_no_answers(knot: Knot) -> None:
    door = Door(knot)
    with pytest.raises(UnansweredError, match=r"REFUSED"):
        await door.ask("vllm.elsewhere", "A")
    with pytest.raises(UnansweredError, match=r"REFUSED"):
        await door.ask("far.example", "A")  # the alias is followed
    with pytest.raises(UnansweredError, match=r"answered that others know sub\.example"):
        await door.ask("engine.sub.example", "A")
    with pytest.raises(UnansweredError, match="label"):
        await door.ask("a..example", "A")


async def test_servers_may_be_names_and_are_tried_in_turn(knot: Knot) -> None:
    for servers in ([f"localhost:{knot.port}"], ["127.0.0.1:9", knot.address]):
        answer = await DnsResolver(servers, timeout_s=60.0, server_timeout_s=0.2).ask(
            "both.example", "A"
        )
        assert answer.addresses == ("10.0.0.3",)
    with pytest.raises(UnansweredError, match=r"the name server 'nowhere\.invalid:53' cannot be"):
        await DnsResolver(["nowhere.invalid:53"]).ask("both.example", "A")
    with pytest.raises(UnansweredError, match=r"no answer within 0\.2 s from 127\.0\.0\.1:9"):
        await DnsResolver(["127.0.0.1:9"], timeout_s=0.2).ask("both.example", "A")


async def test_changes_of_the_zone_are_seen_with_the_next_answer(knot: Knot) -> None:
    views, _ = await watched(
        knot,
        "one",
        lambda: knot.write("one 6 A 10.0.0.1", "one 6 A 10.0.0.2", "one 6 A 10.0.0.9"),
        lambda: knot.write("one 6 A 10.0.0.1"),
        *[wait] * 3,
    )
    assert [len(one.sightings) for one in views] == [2, 3, 3, 3, 3, 1]


async def test_nothing_is_lost_while_the_server_is_away_for_five_minutes(knot: Knot) -> None:
    away: list[float] = []
    views, waits = await watched(knot, "one", knot.kill, *[wait] * 14, knot.start, wait)
    assert all(len(one.sightings) == 2 for one in views)
    away = [one.failing_since_ms for one in views if one.trouble]
    assert away == [106_000] * 15
    assert sum(waits[1:15]) > 240
    assert "no answer within" in views[1].trouble
    assert (views[-1].trouble, views[-1].failing_since_ms) == ("", 0)
    assert views[-1].whole_ms > views[0].whole_ms


async def test_a_name_that_is_gone_for_ten_seconds_comes_back_whole(knot: Knot) -> None:
    views, _ = await watched(
        knot, "one", lambda: knot.write("other A 10.0.0.1"), wait, lambda: knot.write(*RECORDS)
    )
    assert [len(one.sightings) for one in views] == [2, 0, 0, 2]
    assert [one.whole_ms for one in views] == [100_000, 106_000, 113_000, 120_000]


async def test_addresses_shown_in_turn_by_halves_are_all_kept(knot: Knot) -> None:
    def half(first: int) -> Step:
        return lambda: knot.write(f"one 6 A 10.0.0.{first}", f"one 6 A 10.0.0.{first + 1}")

    knot.write("one 6 A 10.0.0.1", "one 6 A 10.0.0.2")
    views, waits = await watched(knot, "one", *[half(3), half(1)] * 10)
    assert [len(one.sightings) for one in views] == [2] + [4] * 20
    assert sum(waits) > 60
