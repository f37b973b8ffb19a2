"""What `smg-chaos history` makes of what it sees, and what it asks of stores."""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smg_chaos.bench.children import BenchError
from smg_chaos.cli import app
from smg_chaos.history import commits
from smg_chaos.history import store_calls as calls
from smg_chaos.history.measurement import Case, Cell, Slice
from smg_chaos.history.response_clients import Callers, Heard, check_kept, request_of
from smg_chaos.history.table import aligned, told

KEPT = "0" * 48
_OPEN = 4


def wall_us() -> int:
    return time.time_ns() // 1_000


def part(answers: int, p50_ms: float, node_us: float) -> Slice:
    return Slice(answers, 2.0, p50_ms, 2 * p50_ms, node_us, 7.0)


@pytest.fixture
def cell() -> Cell:
    cell = Cell(Case("sqlite", streamed=True, clients=16))
    cell.plain = [part(10, 5.0, 900.0), part(10, 6.0, 1_000.0), part(10, 4.0, 950.0)]
    cell.stored = [part(9, 5.5, 1_300.0), part(8, 6.1, 1_500.0), part(9, 5.0, 1_250.0)]
    return cell


def test_what_storing_adds_is_told_round_by_round(cell: Cell) -> None:
    row = cell.row()
    assert row["added_node_us"] == {"median": 400.0, "least": 300.0, "most": 500.0}
    assert row["added_p50_ms"]["median"] == pytest.approx(0.5)
    assert row["added_p99_ms"]["most"] == pytest.approx(2.0)
    assert (row["plain_node_us"], row["server_us"]) == (950.0, 7.0)
    assert (row["rounds"], row["answers"]) == (3, 56)
    assert row["stored_per_s"] == 4.5


def test_the_tables_have_a_line_for_everything(cell: Cell) -> None:
    machine = {"load_average": [1, 2, 3], "cpu": "C", "cores": 2, "kernel": "K", "python": "P"}
    rate = commits.Rate(1_000, 60.0, 60_000, 1_000.0, 1.5, 9.25, 30.0, 0, 300.0)
    text = told(
        {
            "machine": {**machine, "nice": 0},
            "cells": [cell.row()],
            "calls": [
                {"store": "memory", "operation": "a turn", "calls": None, "us": 3.0},
                {"store": "redis", "operation": "a turn", "calls": 1, "us": 120.0},
            ],
            "rate": rate.row(),
        }
    )
    assert "load average 1.00, 2.00, 3.00" in text
    assert "400 (300 to 500)" in text
    assert "a turn       3 us  1 / 120 us" in text
    assert "p99 9.25 ms" in text
    nothing = told({"machine": {**machine, "nice": 0}, "cells": [], "calls": [], "rate": None})
    assert nothing.count("\n") == 1


def test_columns_stand_below_each_other() -> None:
    assert aligned([("a", "b"), ("long", "1")]) == ["a     b", "long  1"]


# ── Asking ───────────────────────────────────────────────────────────────────


def said(status: int, body: object) -> bytes:
    content = json.dumps(body, separators=(",", ":")).encode()
    head = f"HTTP/1.1 {status} Well\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


@asynccontextmanager
async def answering(answer: Callable[[bytes], bytes]) -> AsyncIterator[int]:
    """A server that answers each request for a response, whose head and body it is given."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                writer.write(answer(head + await reader.readexactly(length)))
                if b"connection: close" in head:
                    return

    open_now = asyncio.Semaphore(_OPEN)

    async def patient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with open_now:
            try:
                await serve(reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError):
                return

    server = await asyncio.start_server(patient, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for _ in range(_OPEN):  # all have gone
            await open_now.acquire()


async def heard_from(answer: Callable[[bytes], bytes]) -> Heard:
    async with answering(answer) as port:
        callers = Callers(port, 2, time.perf_counter)
        await callers.connect()
        try:
            return await callers.ask(0.05, stored=True, streamed=False)
        finally:
            callers.close()


async def test_every_answer_is_counted_and_some_are_looked_up() -> None:
    asked: set[bytes] = set()

    def answer(request: bytes) -> bytes:
        asked.add(request)
        return said(200, {"id": f"resp_{KEPT}", "status": "completed"})

    heard = await heard_from(answer)
    assert len(heard.took_s) == len(asked) > 2
    assert heard.ids == [f"resp_{KEPT}"] * 3
    assert heard.problems == []


@pytest.mark.parametrize(
    ("status", "body"), [(503, {"error": {}}), (200, {"id": "resp_1", "status": "failed"})]
)
async def test_what_is_no_answer_is_a_problem(status: int, body: object) -> None:
    heard = await heard_from(lambda _: said(status, body))
    assert heard.took_s == []
    assert 0 < len(heard.problems) <= 5
    assert f"status {status}" in heard.problems[0]


def test_a_request_says_what_is_wanted_and_never_twice_the_same() -> None:
    one = request_of(1, 1, stored=False, streamed=True)
    assert json.loads(one.partition(b"\r\n\r\n")[2])["store"] is False
    assert one != request_of(1, 2, stored=False, streamed=True)


@pytest.mark.parametrize(("status", "stored", "fine"), [(200, True, True), (200, False, False)])
async def test_what_is_kept_is_there_and_nothing_else(
    status: int, *, stored: bool, fine: bool
) -> None:
    async with answering(lambda _: said(status, {})) as port:
        looking = check_kept(port, Heard(ids=["resp_1"]), stored=stored)
        if fine:
            await looking
        else:
            with pytest.raises(BenchError, match="answers 200"):
                await looking


# ── Stores ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_every_operation_is_asked_and_its_calls_are_counted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_REPEATS", 3)
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path / 'calls.db'}"
    rows = await calls.calls(kind, url, clock_s=time.perf_counter, now_us=wall_us)
    counted = {row["operation"]: row["calls"] for row in rows}
    assert len(counted) == len(rows) == 9
    assert all(row["us"] > 0 for row in rows)
    if kind == "memory":
        assert set(counted.values()) == {None}
    else:
        assert counted["a chain of 50"] == counted["the newest 100 items"] == 1
        assert 1 < counted["a turn of a conversation"] < 10


async def test_turns_come_when_they_are_due_and_all_of_them_are_there(tmp_path: Path) -> None:
    found = await commits.rate(
        tmp_path, per_s=100.0, seconds=0.4, clock_s=time.perf_counter, now_us=wall_us
    )
    assert 30 <= found.turns <= 41
    assert found.held_back == 0
    assert 0 < found.p50_ms <= found.p99_ms <= found.worst_ms
    with closing(sqlite3.connect(tmp_path / "rate.db")) as connection:
        ((rows,),) = connection.execute("SELECT count(*) FROM responses").fetchall()
        ((links,),) = connection.execute("SELECT count(*) FROM conversation_item_links").fetchall()
    assert rows == found.turns
    assert links == 2 * (found.turns // 4)


def test_a_store_that_there_is_not_is_told(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["history", "--store", "stone", "--out", str(tmp_path)])
    assert told.exit_code == 2
    assert "no store is called 'stone'" in told.output
