"""Discovery service: tasks that watch, write and report, by sources that are scripted."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from smg_node.config.worker_url import WorkerUrl, parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.discovery.known import Known
from smg_node.discovery.service import DiscoveryService, Plan
from smg_node.discovery.sighting import Sighting, View
from smg_node.discovery.source import Show, SourceKind


def now_ms() -> int:
    return int(time.monotonic() * 1000)


def seen(*hosts: str, instance: str = "u1") -> dict[str, Sighting]:
    found = [Sighting(parse_worker_url(f"{host}:1"), instance=instance) for host in hosts]
    return {one.endpoint: one for one in found}


class Script:
    """A source that shows what tests say."""

    def __init__(self, kind: SourceKind = "kubernetes", name: str = "chat") -> None:
        self.kind: SourceKind = kind
        self.name = name
        self.runs = 0
        self.running = False
        self.failures = 0
        self.view: View | None = None
        self._news = asyncio.Event()

    def say(self, view: View) -> None:
        self.view = view
        self._news.set()

    async def run(self, show: Show) -> None:
        self.runs += 1
        self.running = True
        try:
            if self.failures:
                self.failures -= 1
                raise ValueError("a source that is not as it should be")
            if self.view is not None and self.view.whole_ms:
                # Whoever begins anew asks anew.
                self.view = replace(self.view, whole_ms=now_ms())
            while True:
                if self.view is not None:
                    show(self.view)
                self._news.clear()
                await self._news.wait()
        finally:
            self.running = False


class Registry:
    """What is registered, in memory."""

    def __init__(self) -> None:
        self.held = True
        self.entries: dict[str, Known] = {}
        self.batches: list[list[str]] = [[]]
        self.refuses: set[str] = set()
        self.files: list[list[str]] = []
        self.up: set[str] = set()

    def catch_up(self) -> Iterator[float]:
        yield from ()

    def known(self, kind: str) -> Mapping[str, Known]:
        return self.entries

    def dropped(self, kind: str) -> Mapping[str, Any]:
        return {}

    def room(self) -> int:
        return 10_000

    def calls_up(self, worker_id: str) -> bool:
        return worker_id in self.up

    def release(self, kind: str, endpoint: str) -> None:
        self.entries[endpoint] = replace(self.entries[endpoint], released=True)

    def inherit(self, kind: str, name: str, endpoint: str) -> None:
        self.entries[endpoint] = replace(self.entries[endpoint], owner=name)

    def put(self, kind: str, name: str, sighting: Sighting, *, keep: bool = False) -> None:
        if sighting.endpoint in self.refuses:
            raise SmgError(ErrorKind.OVERLOADED, "the document is full")
        self.entries[sighting.endpoint] = Known(
            sighting.endpoint,
            sighting.url,
            sighting.state,
            sighting.instance,
            name,
            now_ms(),
            own=True,
            keep=keep,
        )

    def drop(self, kind: str, endpoint: str) -> None:
        del self.entries[endpoint]

    def list_file(self, urls: Sequence[WorkerUrl]) -> Mapping[str, str]:
        self.files.append([url.endpoint for url in urls])
        return {}


class Reports:
    """What this node and others say."""

    def __init__(self) -> None:
        self.said: dict[str, Mapping[str, object]] = {}
        self.others: dict[str, Any] = {}

    def publish(self, kind: str, name: str, fields: Mapping[str, object]) -> None:
        self.said[f"{kind}/{name}"] = fields

    def withdraw(self, kind: str, name: str) -> None:
        self.said.pop(f"{kind}/{name}", None)

    def of(self, kind: str, name: str) -> Mapping[str, Any]:
        return self.others

    def contested(self, kind: str, name: str) -> bool:
        return False

    def ranked(self, kind: str, name: str, nodes: Sequence[str]) -> Sequence[str]:
        return sorted(nodes)


class World:
    """One node's service with its surroundings."""

    def __init__(self, *sources: Script) -> None:
        self.registry, self.reports = Registry(), Reports()
        self.leaving = False
        self.writes: dict[tuple[str, str], int] = {}
        self.service = DiscoveryService(
            [Plan(source, source) for source in sources],
            me="m",
            registry=self.registry,  # type: ignore[arg-type]  # it fits as far as it is used
            reports=self.reports,
            empty_confirm_s=30.0,
            monotonic_s=time.monotonic,
            is_leaving=lambda: self.leaving,
            notes=self,
        )

    def wrote(self, source: str, reason: str, count: int) -> None:
        self.writes[source, reason] = self.writes.get((source, reason), 0) + count

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self.service.wake()
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running(*sources: Script) -> AsyncIterator[World]:
    world = World(*sources)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.service.run())
        try:
            yield world
        finally:
            task.cancel()
    assert world.reports.said == {}


async def test_what_a_source_shows_is_registered_and_reported() -> None:
    source = Script()
    source.say(View(seen("a", "b"), whole_ms=now_ms()))
    async with running(source) as world:
        await world.until(lambda: set(world.registry.entries) == {"a:1", "b:1"})
        await world.until(lambda: world.reports.said["kubernetes/chat"]["standing"] == "ok")
        source.say(View(seen("b"), whole_ms=now_ms()))
        await world.until(lambda: set(world.registry.entries) == {"b:1"})
        await world.until(lambda: world.writes.get(("kubernetes/chat", "drop")) == 1)
        assert world.writes["kubernetes/chat", "add"] == 2
        (state,) = world.service.states()
        assert (state.sightings, state.writing, state.standing) == (1, True, "ok")
        assert state.age_s >= 0
    assert not source.running


async def test_who_is_not_the_writer_watches_at_most_and_takes_over_after_a_list() -> None:
    source = Script()
    source.say(View(seen("a"), whole_ms=now_ms()))
    async with running(source) as world:
        world.reports.others = {"a": SimpleNamespace(standing="ok", since_ms=1)}
        await world.until(lambda: source.running)
        await asyncio.sleep(0.3)
        world.registry.entries.clear()
        began = source.runs
        world.reports.others = {}
        await world.until(lambda: source.runs > began)
        await world.until(lambda: set(world.registry.entries) == {"a:1"})


async def test_the_third_node_does_not_watch() -> None:
    source = Script()
    async with running(source) as world:
        fine = SimpleNamespace(standing="ok", since_ms=1)
        world.reports.others = {"a": fine, "b": fine}
        await world.until(lambda: not source.running)
        await world.until(lambda: bool(world.reports.said))
        await world.until(lambda: world.reports.said["kubernetes/chat"]["standing"] == "waiting")


async def test_one_that_is_set_aside_lets_others_watch_and_still_reports() -> None:
    source = Script()
    async with running(source) as world:
        await world.until(lambda: source.running)
        world.leaving = True
        await world.until(lambda: not source.running)
        await world.until(lambda: world.reports.said["kubernetes/chat"]["standing"] == "aside")
        world.leaving = False
        await world.until(lambda: source.running)


async def test_an_error_of_one_source_does_not_end_the_others(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_node.discovery.source_keeper.RESTART_S", 0.01)
    broken, fine = Script(name="broken"), Script(name="fine")
    broken.failures = 2
    broken.say(View(seen("a"), whole_ms=now_ms()))
    fine.say(View(seen("b"), whole_ms=now_ms()))
    async with running(broken, fine) as world:
        await world.until(lambda: set(world.registry.entries) == {"a:1", "b:1"})
    assert broken.runs >= 3
    assert "watching kubernetes/broken failed" in caplog.text


async def test_a_source_that_fails_is_told_once_and_takes_nothing_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Script()
    shown = seen("a")
    source.say(View(shown, whole_ms=now_ms()))
    with caplog.at_level(logging.INFO):
        async with running(source) as world:
            await world.until(lambda: set(world.registry.entries) == {"a:1"})
            whole_ms = now_ms()
            for _ in range(3):
                failing = View(shown, whole_ms, trouble="403", failing_since_ms=now_ms())
                source.say(failing)
                await asyncio.sleep(0.15)
            await world.until(lambda: "does not answer" in caplog.text)
            source.say(View(shown, now_ms()))
            await world.until(lambda: "answers again" in caplog.text)
            assert set(world.registry.entries) == {"a:1"}
    assert caplog.text.count("does not answer") == 1


async def test_an_empty_source_is_an_event_and_its_workers_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Script()
    source.say(View(seen("a"), whole_ms=now_ms()))
    async with running(source) as world:
        await world.until(lambda: set(world.registry.entries) == {"a:1"})
        world.registry.up.add("a:1")
        await asyncio.sleep(0.02)
        source.say(View({}, whole_ms=now_ms()))
        await world.until(lambda: any(one.levelname == "WARNING" for one in caplog.records))
        assert set(world.registry.entries) == {"a:1"}
        await world.until(
            lambda: "kept until" in str(world.reports.said["kubernetes/chat"]["held"])
        )
    (told,) = [one for one in caplog.records if one.levelname == "WARNING"]
    assert told.fields["event"] == "discovery_empty"  # type: ignore[attr-defined]  # what `extra` adds


async def test_what_cannot_be_written_is_said_and_not_tried_at_once_again() -> None:
    source = Script()
    source.say(View(seen("a", "b"), whole_ms=now_ms()))
    async with running(source) as world:
        world.registry.refuses.add("a:1")
        await world.until(lambda: set(world.registry.entries) == {"b:1"})
        await world.until(lambda: world.service.states()[0].refused == 1)
        await world.until(lambda: "full" in str(world.reports.said["kubernetes/chat"]["held"]))


async def test_a_thousand_are_registered_in_batches_and_the_loop_goes_on() -> None:
    source = Script()
    source.say(View(seen(*(f"h{number}" for number in range(1_000))), whole_ms=now_ms()))
    async with running(source) as world:
        await world.until(lambda: len(world.registry.entries) == 1_000)
        assert world.writes.get(("kubernetes/chat", "add"), 0) in (0, 1_000)


async def test_a_file_is_listed_as_it_is_and_one_that_cannot_be_read_changes_nothing() -> None:
    source = Script("file", "file")
    async with running(source) as world:
        source.say(View({}, trouble="line 3", failing_since_ms=1))
        await asyncio.sleep(0.2)
        assert world.registry.files == []
        source.say(View(seen("b", "a"), whole_ms=now_ms()))
        await world.until(lambda: world.registry.files == [["a:1", "b:1"]])
        source.say(View(seen("b", "a"), whole_ms=now_ms() + 1))
        await asyncio.sleep(0.2)
        source.say(View({}, whole_ms=now_ms()))
        await world.until(lambda: world.registry.files == [["a:1", "b:1"], []])


async def test_nothing_is_written_before_the_clusters_state_is_here() -> None:
    source = Script()
    source.say(View(seen("a"), whole_ms=now_ms()))
    async with running(source) as world:
        world.registry.held = False
        await asyncio.sleep(0.3)
        world.registry.entries.clear()
        world.registry.held = True
        await world.until(lambda: set(world.registry.entries) == {"a:1"})


async def test_a_source_that_comes_is_watched_and_one_that_goes_is_reported_no_more() -> None:
    chat, metal = Script(), Script("dns", "metal")
    chat.say(View(seen("a"), whole_ms=now_ms()))
    metal.say(View(seen("b"), whole_ms=now_ms()))
    async with running() as world:
        world.service.follow([Plan(chat, 1)])
        await world.until(lambda: set(world.registry.entries) == {"a:1"})
        world.service.follow([Plan(chat, 1), Plan(metal, 1)])
        await world.until(lambda: set(world.registry.entries) == {"a:1", "b:1"})
        assert chat.runs == 1
        world.service.follow([Plan(metal, 1)])
        assert set(world.reports.said) == {"dns/metal"}
        await world.until(lambda: not chat.running)
        assert [one.kind for one in world.service.states()] == ["dns"]
        world.service.follow([])
        await world.until(lambda: not metal.running)
        assert world.reports.said == {}


async def test_a_source_that_changed_is_asked_anew_and_reported_all_the_time() -> None:
    before, after, last = Script(), Script(), Script()
    before.say(View(seen("a", "b"), whole_ms=now_ms()))
    after.say(View(seen("b", "c"), whole_ms=now_ms()))
    last.say(View(seen("c"), whole_ms=now_ms()))
    async with running() as world:
        world.service.follow([Plan(before, "one")])
        await world.until(lambda: set(world.registry.entries) == {"a:1", "b:1"})
        world.service.follow([Plan(after, "one")])
        assert not after.runs
        world.service.follow([Plan(after, "two")])
        assert set(world.reports.said) == {"kubernetes/chat"}
        # Changed again before that one has begun.
        world.service.follow([Plan(last, "three")])
        await world.until(lambda: set(world.registry.entries) == {"c:1"})
        assert not before.running
        assert not after.running
        world.service.confirm(0.0)
        (state,) = world.service.states()
        assert (state.writing, state.sightings) == (True, 1)
