"""A node is killed at every stage of what it makes: those who live tell the truth about it, soon, and all the same."""

import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from smg_node.history.peers.pending_writes import GOING_S
from support.history.crashing_store import Fate
from support.http.stream_client import ask, get, hear
from support.processes.node import RunningNode
from support.processes.node_crashes import (
    FOREGROUND,
    RESUMABLE,
    STAGES,
    Case,
    Scene,
    Stock,
    all_die,
    figures,
    question,
    scene,
    stocked,
)

pytestmark = pytest.mark.integration

STAGES_ON = {
    "postgres": (
        "after the row",
        "between two appends",
        "within an append",
        "before the commit",
        "within the commit",
        "foreground, within the commit",
        "resumable, between two appends",
    ),
    "valkey": (
        "before the row",
        "before the first append",
        "within an append",
        "within the commit",
        "after the commit",
        "foreground, before the commit",
        "foreground, after the commit",
    ),
}
"""Each stage on a store at least; the program `support.processes.node_crashes` goes through all of them on either."""


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stock]:
    with stocked(tmp_path_factory.mktemp("stock")) as running:
        yield running


@pytest.fixture(scope="module", params=["postgres", "valkey"])
def stage(request: pytest.FixtureRequest, stock: Stock) -> Iterator[Scene]:
    # A lease that nobody waits for: what ends before is ended because the mesh says who is dead.
    with scene(stock, request.param, meshed=True, lease_s=600) as running:
        yield running


def test_whatever_a_node_dies_at_there_is_one_end_and_nothing_is_lost(stage: Scene) -> None:
    fates: Mapping[str, Fate] = {**STAGES, **FOREGROUND, **RESUMABLE}
    cases = all_die(stage, {name: fates[name] for name in STAGES_ON[stage.store]})
    sys.stdout.write(figures(cases))
    for name, case in cases.items():
        if name in FOREGROUND:
            check_foreground(case)
        elif name in RESUMABLE:
            assert case.check() == "failed"
        else:
            check_background(case)


def check_background(case: Case) -> None:
    assert case.died
    if case.stage == "before the row":
        assert (case.client.told, list(case.kept)) == ([], [])
        return
    possible = {
        "within the commit": {"completed", "failed"},
        "after the commit": {"completed"},
    }
    assert case.check() in possible.get(case.stage, {"failed"})


def check_foreground(case: Case) -> None:
    """Nobody was told that it is complete, so it may be there or not; but as a whole, or not at all."""
    assert case.died
    assert case.client.told
    assert not case.client.done
    there = {"foreground, before the commit": {0}, "foreground, after the commit": {1}}
    assert len(case.kept) in there.get(case.stage, {0, 1})
    statuses = [settled(node, f"/v1/responses/{case.id}") for node in case.survivors]
    assert statuses == [200 if case.kept else 404] * 2
    if case.kept:
        assert case.check() == "completed"


def settled(node: RunningNode, path: str) -> int:
    """Return the status when it can be known: for a while a node that died may have what is missing on its disk."""
    until_s = time.monotonic() + 2 * GOING_S
    while True:
        status, said = get(node, path)[:2]
        if status != 503 or time.monotonic() >= until_s:
            return status
        assert said["error"]["code"] == "store_unavailable", said
        time.sleep(0.5)


# ── Cancelled ────────────────────────────────────────────────────────────────


def begun(node: RunningNode, **more: Any) -> str:
    """Return the id of a response that a node makes in the background."""
    body = {**question("cancelled"), "background": True, "stream": False, **more}
    status, shown = ask(node, "POST", "/v1/responses", body)
    assert (status, shown["status"]) == (200, "queued"), shown
    return str(shown["id"])


def cancel(node: RunningNode, response_id: str) -> dict[str, Any]:
    status, shown = ask(node, "POST", f"/v1/responses/{response_id}/cancel")
    assert status == 200, shown
    found: dict[str, Any] = shown
    return found


def test_cancelling_that_races_with_the_end_has_one_end_for_all(stage: Scene) -> None:
    one, two = stage.survivors
    ids = [begun(one) for _ in range(14)]
    began_s = time.monotonic()

    def after(number: int) -> list[dict[str, Any]]:
        """Cancel it at a time of its own: from at once to when it is surely over; twice, from both nodes."""
        time.sleep(max(began_s + number * 0.2 - time.monotonic(), 0))
        with ThreadPoolExecutor(2) as callers:
            return list(callers.map(lambda node: cancel(node, ids[number]), (two, one)))

    with ThreadPoolExecutor(len(ids)) as callers:
        answers = list(callers.map(after, range(len(ids))))
    statuses = []
    for response_id, (first, second) in zip(ids, answers, strict=True):
        path = f"/v1/responses/{response_id}"
        shown = [get(node, path)[1] for node in (one, two)]
        streams = [hear(node, "GET", f"{path}?stream=true") for node in (one, two)]
        assert first == second == shown[0] == shown[1]
        assert streams[0].told == streams[1].told
        assert cancel(two, response_id) == first
        statuses.append(first["status"])
    assert set(statuses) == {"cancelled", "completed"}
    assert (statuses[0], statuses[-1]) == ("cancelled", "completed")


@pytest.mark.parametrize("stage", ["valkey"], indirect=True)
def test_what_nobody_can_end_any_more_is_cancelled_by_whoever_adopts_it(stage: Scene) -> None:
    # A node that hangs: it holds its lease, and nobody can tell it anything.
    hanging = stage.doomed(Fate())
    node = hanging.up()
    response_id = begun(node, max_output_tokens=2_000, ignore_eos=True)
    hanging.process.signal(hanging.HANG)
    shown = cancel(stage.survivors[1], response_id)
    assert shown["status"] in ("cancelled", "queued", "in_progress")
    hanging.process.wait_until(
        lambda: get(stage.survivors[0], f"/v1/responses/{response_id}")[1]["status"] == "cancelled",
        "relieved of what it made",
        60,
    )
    before = get(stage.survivors[0], f"/v1/responses/{response_id}")[1]
    # It wakes up, and has nothing more to say.
    hanging.process.signal(hanging.GO_ON)
    heard = hear(node, "GET", f"/v1/responses/{response_id}?stream=true")
    assert heard.done
    assert get(node, f"/v1/responses/{response_id}")[1] == before
    assert get(stage.survivors[0], f"/v1/responses/{response_id}")[1] == before


# ── Alone ────────────────────────────────────────────────────────────────────


def test_without_a_mesh_leases_say_who_is_dead(stock: Stock) -> None:
    with scene(stock, "valkey", meshed=False, lease_s=1) as alone:
        cases = all_die(
            alone, {name: STAGES[name] for name in ("after the row", "within an append")}
        )
        sys.stdout.write(figures(cases))
        for case in cases.values():
            check_background(case)


@pytest.mark.parametrize("store", ["sqlite", "valkey"])
def test_a_node_that_comes_back_ends_what_it_was_at(stock: Stock, store: str) -> None:
    # A lease that nobody waits for: what ends before is ended because it is the node's own.
    with scene(stock, store, meshed=False, lease_s=600, living=0) as alone:
        first = alone.doomed(Fate("append_events", 3, "after"), name=f"back-{store}")
        node = first.up()
        body = {**question("restarted"), "background": True}
        heard = hear(node, "POST", "/v1/responses", body)
        assert not heard.done
        assert heard.told
        again = alone.doomed(Fate(), name=f"back-{store}").up()
        response_id = Case.named(heard)
        began_s = time.monotonic()
        again.process.wait_until(
            lambda: get(again, f"/v1/responses/{response_id}")[1]["status"] == "failed",
            "at an end with what it was at",
            60,
        )
        sys.stdout.write(
            f"restarted, {store}: {time.monotonic() - began_s:.2f} s after it was up\n"
        )
        told = hear(again, "GET", f"/v1/responses/{response_id}?stream=true")
        assert told.done
        assert told.told[: len(heard.told)] == heard.told
        assert told.told[-1].type == "response.failed"
