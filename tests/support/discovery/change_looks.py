"""Looks at views for tests of changes: sightings, entries, and what one look comes to."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from smg_node.config.worker_url import parse_worker_url
from smg_node.discovery.changes import Changes, Looking, Memory, changes
from smg_node.discovery.known import Known
from smg_node.discovery.sighting import Endpoint, Sighting, SightingState, View

NOW: Final = 1_000_000
READY, UNREADY, LEAVING = SightingState.READY, SightingState.UNREADY, SightingState.LEAVING


def seen(host: str, state: SightingState = READY, instance: str = "u1", spec: str = "") -> Sighting:
    """Return what a source shows at a host."""
    return Sighting(parse_worker_url(f"{host}:1{spec}"), state, instance)


def view(*sightings: Sighting, whole_ms: int = NOW, gone: tuple[str, ...] = ()) -> View:
    """Return a view of these sightings; `gone` are hosts."""
    return View(
        {one.endpoint: one for one in sightings},
        whole_ms=whole_ms,
        gone=frozenset(f"{host}:1" for host in gone),
    )


def had(
    host: str,
    state: SightingState = READY,
    instance: str = "u1",
    *,
    owner: str = "chat",
    heard_ms: int = 1,
    own: bool = True,
    withheld: bool = False,
    exists: bool = True,
) -> Known:
    """Return what is known of a host."""
    url = parse_worker_url(f"{host}:1")
    told = (f"w-{host}", url, state, instance, owner, heard_ms)
    return Known(*told, withheld=withheld, exists=exists, own=own)


def known(*entries: Known) -> dict[Endpoint, Known]:
    """Return entries by endpoint."""
    return {one.endpoint: one for one in entries}


def look(
    seen_now: View,
    entries: Mapping[Endpoint, Known],
    memory: Memory | None = None,
    *,
    now_ms: int = NOW,
    up: tuple[str, ...] = (),
    **conditions: object,
) -> Changes:
    """Return what one look comes to; `up` are the hosts that probers call up."""
    looking = Looking(
        name="chat", now_ms=now_ms, shown_ms=now_ms, calls_up=lambda one: one[2:] in up
    )
    looking = replace(looking, **conditions)  # type: ignore[arg-type]  # fields of Looking
    return changes(seen_now, entries, memory or Memory(), looking)


def written(found: Changes) -> list[tuple[str, str]]:
    """Return reason and host of each write."""
    return [(one.reason.value, one.endpoint.removesuffix(":1")) for one in found.writes]
