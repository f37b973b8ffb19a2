"""Source run: one source on one node, turn by turn on a clock that tests move."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from smg_node.config.worker_url import parse_worker_url
from smg_node.discovery.known import Known
from smg_node.discovery.sighting import Sighting, SightingState, View
from smg_node.discovery.source_run import ORPHANED_MS, SourceRun

START_MS = 100_000


class Registry:
    """One worker, which the source `chat` found."""

    held = True

    def __init__(self) -> None:
        url = parse_worker_url("grpc://a:1")
        found = Known("w-a", url, SightingState.READY, "u1", "chat", 1)
        self.entries: dict[str, Known] = {"a:1": found}
        self.said: list[str] = []

    def catch_up(self) -> Iterator[float]:
        yield from ()

    def known(self, kind: str) -> Mapping[str, Known]:
        return self.entries

    def dropped(self, kind: str) -> Mapping[str, Any]:
        return {}

    def room(self) -> int:
        return 100

    def calls_up(self, worker_id: str) -> bool:
        return True

    def put(self, kind: str, name: str, sighting: Sighting, *, keep: bool = False) -> None:
        self.said.append(f"{name} has {sighting.endpoint}")

    def release(self, kind: str, endpoint: str) -> None:
        self.entries[endpoint] = replace(self.entries[endpoint], released=True)

    def inherit(self, kind: str, name: str, endpoint: str) -> None:
        self.entries[endpoint] = replace(self.entries[endpoint], owner=name)

    def drop(self, kind: str, endpoint: str) -> None:
        self.said.append(f"{endpoint} is gone")


class Reports:
    """What nodes report, by source."""

    def __init__(self) -> None:
        self.by_name: dict[str, Mapping[str, Any]] = {}

    def publish(self, kind: str, name: str, fields: Mapping[str, object]) -> None:
        report = SimpleNamespace(standing=fields["standing"], since_ms=fields["since_ms"])
        self.by_name[name] = {"m": report}

    def withdraw(self, kind: str, name: str) -> None:
        self.by_name.pop(name, None)

    def of(self, kind: str, name: str) -> Mapping[str, Any]:
        return self.by_name.get(name, {})

    def contested(self, kind: str, name: str) -> bool:
        return False

    def ranked(self, kind: str, name: str, nodes: Sequence[str]) -> Sequence[str]:
        return sorted(nodes)


def turned(run: SourceRun, now_ms: int) -> None:
    """Show what there is, and take a turn."""
    url = parse_worker_url("grpc://a:1")
    run.shown(View({"a:1": Sighting(url, instance="u1")}, whole_ms=now_ms), now_ms)
    for _ in run.turn(now_ms):
        pass


def test_a_source_that_is_renamed_keeps_its_workers() -> None:
    registry, reports = Registry(), Reports()
    run = SourceRun(
        *("kubernetes", "renamed"),
        me="m",
        registry=registry,  # type: ignore[arg-type]  # it fits as far as it is used
        reports=reports,
        empty_confirm_ms=30_000,
        now_ms=START_MS,
    )
    reports.by_name["chat"] = {"n": SimpleNamespace(standing="ok", since_ms=1)}
    for now_ms in range(START_MS, START_MS + 3 * ORPHANED_MS, 1_000):
        turned(run, now_ms)
    assert registry.said == []
    assert run.refused == {"a:1": "the source chat shows it as well"}

    del reports.by_name["chat"]
    silent_ms = START_MS + 3 * ORPHANED_MS
    for now_ms in range(silent_ms, silent_ms + ORPHANED_MS, 1_000):
        turned(run, now_ms)
    assert registry.said == [], "its nodes may be restarting"
    turned(run, silent_ms + ORPHANED_MS)
    assert registry.said == ["renamed has a:1"]
    assert run.refused == {}
