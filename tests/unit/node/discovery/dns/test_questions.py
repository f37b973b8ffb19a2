"""Rounds of questions, against name servers that are a table: `KIND NAME` to an answer or why there is none."""

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import SmgError
from smg_node.discovery.dns.answers import (
    Addresses,
    Answer,
    RecordKind,
    SrvRecord,
    UnansweredError,
)
from smg_node.discovery.dns.names import Round, clamp_ttl
from smg_node.discovery.dns.options import DnsOptions
from smg_node.discovery.dns.questions import ask_round

SERVICE = "_grpc._tcp.vllm.example"


class Table:
    """Name servers. A question that is not in the table is one for a name that is not there."""

    def __init__(self, answers: Mapping[str, Answer | str]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.most_at_once = 0
        self._now = 0

    async def ask(self, name: str, kind: RecordKind) -> Answer:
        self.asked.append(f"{kind} {name}")
        self._now += 1
        self.most_at_once = max(self._now, self.most_at_once)
        await asyncio.sleep(0)
        self._now -= 1
        answer = self.answers.get(f"{kind} {name}", Answer(30, exists=False))
        if isinstance(answer, str):
            raise UnansweredError(answer)
        return answer


def a(*addresses: str, ttl_s: int = 20) -> Answer:
    return Answer(ttl_s, addresses=addresses)


def srv(*records: tuple[int, int, int, str], ttl_s: int = 20, **additional: Addresses) -> Answer:
    services = tuple(SrvRecord(*one) for one in records)
    return Answer(ttl_s, services=services, additional=additional)


def listed(found: Round) -> list[str]:
    return [str(one.sighting.url) for one in found.seen.values()]


def why(found: Round) -> list[str]:
    return [f"{one.origin}: {one.why}" for one in found.unusable]


async def test_addresses_of_one_family_become_workers() -> None:
    table = Table({"A h.example": a("10.0.0.2", "10.0.0.1", "10.0.0.2")})
    options = DnsOptions("h.example", 50051, scheme="grpc", role="decode", spec="&priority=60")
    found = await ask_round(table, options)
    assert listed(found) == [
        "grpc://10.0.0.1:50051?role=decode&priority=60",
        "grpc://10.0.0.2:50051?role=decode&priority=60",
    ]
    assert [one.sighting.origin for one in found.seen.values()] == ["host h.example"] * 2
    assert (found.wait_s, table.asked) == (20.0, ["A h.example"])


async def test_ipv6_addresses_count_where_there_are_no_others() -> None:
    table = Table({"A h.example": a(ttl_s=7), "AAAA h.example": a("fd00::1")})
    found = await ask_round(table, DnsOptions("h.example", 50051))
    assert (listed(found), found.wait_s) == (["[fd00::1]:50051"], 7.0)


async def test_a_name_that_is_not_there_is_an_answer() -> None:
    table = Table({})
    found = await ask_round(table, DnsOptions("h.example", 50051))
    assert (listed(found), found.wait_s, table.asked) == ([], 30.0, ["A h.example"])


async def test_no_answer_is_none() -> None:
    table = Table({"A h.example": "timed out"})
    with pytest.raises(UnansweredError, match="timed out"):
        await ask_round(table, DnsOptions("h.example", 50051))


async def test_only_the_lowest_priority_counts() -> None:
    table = Table(
        {
            f"SRV {SERVICE}": srv((20, 0, 1, "c"), (10, 0, 3, "b"), (10, 0, 2, "a")),
            "A a": a("10.0.0.1"),
            "A b": a("10.0.0.2"),
        }
    )
    found = await ask_round(table, DnsOptions(SERVICE))
    assert listed(found) == ["10.0.0.1:2", "10.0.0.2:3"]
    assert why(found) == [f"{SERVICE}: 1 records of less urgent priorities are not used"]
    assert table.asked == [f"SRV {SERVICE}", "A a", "A b"]


@pytest.mark.parametrize(
    ("weights", "labels"),
    [
        ((0, 0), ["", ""]),
        ((7, 7), ["", ""]),  # what is the same for all says nothing
        ((1, 3), ["1", "3"]),
        ((0, 3), ["0.05", "3"]),
        ((100, 200), ["1", "2"]),
        ((65535, 1), ["0.65535", "0.05"]),
    ],
)
async def test_weights_become_labels_where_they_differ(
    weights: tuple[int, int], labels: list[str]
) -> None:
    records = [(0, weight, port, "a") for port, weight in enumerate(weights, 1)]
    table = Table({f"SRV {SERVICE}": srv(*records), "A a": a("10.0.0.1")})
    found = await ask_round(table, DnsOptions(SERVICE))
    urls = [one.sighting.url for one in found.seen.values()]
    assert [url.labels.get("weight", "") for url in urls] == labels
    assert all(parse_worker_url(str(url)) == url for url in urls)
    table = Table(table.answers)
    found = await ask_round(table, DnsOptions(SERVICE, spec="label.weight=9"))
    assert {one.sighting.url.labels["weight"] for one in found.seen.values()} == {"9"}


async def test_what_came_along_is_not_asked_for() -> None:
    answer = srv((0, 0, 1, "a"), (0, 0, 2, "b"), a=Addresses(("10.0.0.1", "10.0.0.1"), 9))
    table = Table({f"SRV {SERVICE}": answer, "A b": a("10.0.0.2")})
    found = await ask_round(table, DnsOptions(SERVICE))
    assert (listed(found), found.wait_s) == (["10.0.0.1:1", "10.0.0.2:2"], 9.0)
    assert table.asked == [f"SRV {SERVICE}", "A b"]


async def test_a_target_without_address_drops_itself_only() -> None:
    table = Table({f"SRV {SERVICE}": srv((0, 0, 1, "a"), (0, 0, 2, "b")), "A b": a("10.0.0.2")})
    found = await ask_round(table, DnsOptions(SERVICE))
    assert (listed(found), why(found)) == (["10.0.0.2:2"], ["target a:1: it has no address"])
    assert not found.unanswered


async def test_a_target_that_nobody_answers_for_is_named_and_asked_again_soon() -> None:
    answer = srv((0, 0, 1, "a"), (0, 0, 2, "b"))
    table = Table({f"SRV {SERVICE}": answer, "A a": "SERVFAIL", "A b": a("10.0.0.2")})
    found = await ask_round(table, DnsOptions(SERVICE))
    assert (listed(found), why(found)) == (["10.0.0.2:2"], ["target a: a: SERVFAIL"])
    assert (sorted(found.unanswered), found.wait_s) == (["a"], 5.0)
    table = Table({**table.answers, "A b": "REFUSED"})
    with pytest.raises(UnansweredError, match="SERVFAIL"):
        await ask_round(table, DnsOptions(SERVICE))


async def test_sixteen_targets_are_asked_for_at_once() -> None:
    answer = srv(*((0, 0, 1, f"t{one}") for one in range(200)))
    table = Table({f"SRV {SERVICE}": answer, **{f"A t{n}": a(f"10.0.1.{n}") for n in range(200)}})
    found = await ask_round(table, DnsOptions(SERVICE))
    assert (len(found.seen), table.most_at_once) == (200, 16)
    assert why(found) == ["target t0:1: 10.0.0.0 is no address that can be called"] or not why(
        found
    )


async def test_a_service_that_is_decidedly_not_there_is_an_answer() -> None:
    table = Table({f"SRV {SERVICE}": srv((0, 0, 0, ""))})
    found = await ask_round(table, DnsOptions(SERVICE))
    assert (listed(found), why(found), table.asked) == ([], [], [f"SRV {SERVICE}"])


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "224.0.0.1", "fe80::1", "nothing"])
async def test_addresses_that_are_none_of_an_engine_are_named(address: str) -> None:
    table = Table({"A h.example": a(address, "10.0.0.1")})
    found = await ask_round(table, DnsOptions("h.example", 50051))
    assert listed(found) == ["10.0.0.1:50051"]
    assert why(found)[0].startswith(f"host h.example: {address} ")


async def test_port_0_is_no_port() -> None:
    table = Table({f"SRV {SERVICE}": srv((0, 0, 0, "a")), "A a": a("10.0.0.1")})
    found = await ask_round(table, DnsOptions(SERVICE))
    assert (listed(found), why(found)) == ([], ["target a:0: port 0 cannot be called"])


async def test_what_is_named_of_many_mistakes_is_bounded() -> None:
    table = Table({f"SRV {SERVICE}": srv(*((0, 0, 1, f"t{one}") for one in range(100)))})
    found = await ask_round(table, DnsOptions(SERVICE))
    assert len(found.unusable) == 16
    assert found.unusable[-1].why == "and 85 more"


def test_times_are_clamped() -> None:
    assert [clamp_ttl(one) for one in (0, 4, 5, 31, 60, 86_400)] == [5, 5, 5, 31, 60, 60]


def test_a_spec_that_is_none_is_refused() -> None:
    with pytest.raises(SmgError, match="priorty"):
        DnsOptions("h.example", 1, spec="priorty=3").worker()
    assert DnsOptions("h.example", 1, role="prefill", spec="?bootstrap_port=8998").worker().role


_ANSWER = st.one_of(
    st.just("no answer"),
    st.builds(
        lambda ttl, found: Answer(ttl, addresses=tuple(found)),
        st.integers(0, 2**31 - 1),
        st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1", "0.0.0.0", "bad", ""])),
    ),
    st.builds(
        lambda ttl, records: srv(*records, ttl_s=ttl),
        st.integers(0, 2**31 - 1),
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.integers(0, 65535),
                st.integers(0, 65535),
                st.sampled_from(["a", "b", "c", ""]),
            )
        ),
    ),
)


@given(st.dictionaries(st.sampled_from(["A a", "AAAA a", "A b", f"SRV {SERVICE}"]), _ANSWER))
def test_any_answers_give_workers_or_that_error(answers: dict[str, Answer | str]) -> None:
    for options in (DnsOptions(SERVICE), DnsOptions("a", 1, spec="label.pool=x")):
        try:
            found = asyncio.run(ask_round(Table(answers), options))
        except UnansweredError:
            continue
        assert 5 <= found.wait_s <= 60
        for endpoint, seen in found.seen.items():
            url = seen.sighting.url
            assert endpoint == url.address
            assert parse_worker_url(str(url)) == url
