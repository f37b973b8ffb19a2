"""A page of metrics that several processes write together."""

import asyncio
from collections.abc import Mapping
from functools import partial

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from smg_node.processes.reports.metric_series import read_counted
from smg_node.processes.reports.metrics_scrape import Scrape, scraped
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared import resilience as resilience_metrics
from smg_node.telemetry.metrics.meters import Meters


def meters() -> Meters:
    return Meters(CollectorRegistry(), version="1.0")


class Node:
    """A control process and data processes; those that are `deaf` never answer."""

    def __init__(self, *names: str) -> None:
        self.control = meters()
        self.data = {name: meters() for name in names}
        self.deaf: set[str] = set()
        self.scrape = Scrape(self.control, lambda: sorted(self.data), self._ask, patience_s=0.02)

    async def _ask(self, process: str, question: bytes) -> bytes:
        if process in self.deaf:
            await asyncio.sleep(9)
        return scraped(self.data[process], question)

    async def page(self) -> Mapping[tuple[str, tuple[str, ...]], float]:
        page, content_type = await self.scrape.page("")
        assert content_type.startswith("text/plain")
        return {
            (sample.name, tuple(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(page.decode())
            for sample in family.samples
        }

    def die(self, name: str) -> None:
        del self.data[name]
        self.scrape.gone(name)


async def test_counters_and_histograms_add_up() -> None:
    node = Node("1", "2")
    for one in (*node.data.values(), node.control):
        one.http("/v1/chat/completions", "POST", 200, 0.02)
    page = await node.page()
    assert page["smg_node_http_requests_total", ("POST", "/v1/chat/completions", "200")] == 3
    name = "smg_node_http_request_duration_seconds"
    assert page[f"{name}_count", ("/v1/chat/completions",)] == 3
    assert page[f"{name}_bucket", ("0.01", "/v1/chat/completions")] == 0
    assert page[f"{name}_bucket", ("0.025", "/v1/chat/completions")] == 3
    assert page[f"{name}_sum", ("/v1/chat/completions",)] == pytest.approx(0.06)


async def test_gauges_are_merged_as_they_are_declared() -> None:
    node = Node("1", "2")
    for value, one in enumerate((*node.data.values(), node.control), start=1):
        one.watch(declared.HTTP_INFLIGHT, partial(dict, {(): value}))
        one.watch(declared.WORKERS, partial(dict, {("ready",): 10 * value}))
        broken = 2 if value == 1 else 0
        one.watch(resilience_metrics.BREAKER_STATE, partial(dict, {("w1",): broken}))
    page = await node.page()
    assert page["smg_node_http_requests_inflight", ()] == 6
    assert page["smg_node_workers", ("ready",)] == 30, "what the control process says"
    assert page["smg_node_worker_breaker_state", ("w1",)] == 2
    assert page["smg_node_build_info", ("1.0",)] == 1


async def test_a_process_that_died_goes_on_to_count_and_no_longer_is() -> None:
    node = Node("1", "2")
    node.data["1"].watch(declared.HTTP_CONNECTIONS, lambda: {(): 7})
    node.data["1"].connection_refused("full")
    await node.page()
    node.die("1")
    node.data["3"] = meters()
    node.data["3"].connection_refused("full")
    page = await node.page()
    assert page["smg_node_http_connections_refused_total", ("full",)] == 2
    assert page.get(("smg_node_http_connections", ()), 0) == 0
    node.die("3")
    node.die("2")
    assert (await node.page())["smg_node_http_connections_refused_total", ("full",)] == 2


async def test_who_does_not_answer_is_there_with_what_it_said_last() -> None:
    node = Node("1", "2")
    for one in node.data.values():
        one.connection_refused("full")
    await node.page()
    node.deaf.add("1")
    for one in node.data.values():
        one.connection_refused("full")
    page = await node.page()
    assert page["smg_node_http_connections_refused_total", ("full",)] == 3


async def test_metrics_that_only_a_data_process_has_are_on_the_page() -> None:
    node = Node("1")
    node.data["1"].watch(declared.WORKERS, lambda: {("ready",): 2})
    assert (await node.page())["smg_node_workers", ("ready",)] == 2


async def test_alone_the_page_is_that_of_the_process() -> None:
    node = Node()
    node.control.connection_refused("full")
    node.control.http("/health", "GET", 200, 0.5)
    page, _ = await node.scrape.page("")
    own, _ = node.control.exposition("")
    measured = (b"process_", b"python_")
    assert [line for line in page.splitlines() if not line.startswith(measured)] == [
        line for line in own.splitlines() if not line.startswith(measured)
    ]


@pytest.mark.parametrize("garbage", [b"", b"\xc1", b"\x91\x94\x01", b"\x91\xa3abc", bytes(9)])
async def test_garbage_changes_nothing(garbage: bytes) -> None:
    with pytest.raises(ValueError, match="not what a process counts"):
        read_counted(garbage)
    node = Node("1")
    node.data["1"].connection_refused("full")
    await node.page()
    node.scrape.heard("1", garbage)
    node.deaf.add("1")
    assert (await node.page())["smg_node_http_connections_refused_total", ("full",)] == 1


async def test_some_metrics_are_told_of_without_the_others() -> None:
    node = Node("1", "2")
    for one in (*node.data.values(), node.control):
        one.http("/x", "POST", 200, 0.02)
        one.watch(declared.HTTP_INFLIGHT, partial(dict, {(): 2}))
    names = {declared.HTTP_REQUESTS.name, declared.HTTP_INFLIGHT.name}
    told = {
        sample.name: sample.value
        for family in await node.scrape.families(names)
        for sample in family.samples
    }
    assert told == {declared.HTTP_REQUESTS.name: 3, declared.HTTP_INFLIGHT.name: 6}


async def test_a_look_at_some_metrics_does_not_forget_the_others() -> None:
    node = Node("1")
    node.data["1"].http("/x", "POST", 200, 0.02)
    node.data["1"].watch(declared.HTTP_INFLIGHT, lambda: {(): 2})
    await node.page()
    await node.scrape.families({declared.HTTP_INFLIGHT.name})
    node.die("1")
    page = await node.page()
    assert page["smg_node_http_requests_total", ("POST", "/x", "200")] == 1


def test_a_question_that_is_none_is_answered_with_nothing() -> None:
    assert read_counted(scraped(meters(), b"\xc1")) == []
