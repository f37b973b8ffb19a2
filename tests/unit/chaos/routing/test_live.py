"""Chats before real gateways: the same for each, and judged by what the engines counted."""

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from smg_chaos.bench.children import BenchError
from smg_chaos.bench.gateways.gateways import KINDS, Wanted
from smg_chaos.routing import live
from smg_chaos.routing.model.chat_texts import Heard, Session, Turn, sessions, talk
from smg_node.system_clock import SystemClock

TURNS = (Turn("one", 8, 0.0), Turn("two", 9, 0.0), Turn("three", 10, 0.0))


def frames(text: str, *, usage: int = 1) -> bytes:
    said: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": text}}]}]
    counted = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}
    said += [{"choices": [], "usage": counted}] * usage
    content = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in said)
    content += b"data: [DONE]\n\n"
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)


async def talked(*answers: bytes, end_s: float = 1e9) -> tuple[Heard, list[dict[str, Any]]]:
    """Have a chat with a gateway that gives these answers; return what was heard and what it was asked."""
    left, served = list(answers), asyncio.Semaphore(0)
    asked: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        asked.append(json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + left.pop(0))
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        served.release()

    heard = Heard()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        connect = live._connect(port)
        now_s = asyncio.get_running_loop().time
        session = Session(0.0, "be good", TURNS)
        await talk(session, connect, "m", heard, now_s=now_s, end_s=end_s)
        for _ in asked:
            await asyncio.wait_for(served.acquire(), 20.0)
    return heard, asked


def test_the_same_seed_gives_the_same_chats() -> None:
    chats = sessions(1, 2.0, 60.0)
    assert chats == sessions(1, 2.0, 60.0)
    assert chats != sessions(2, 2.0, 60.0)
    assert len({chat.system for chat in chats}) == 12
    assert len(chats) == pytest.approx(120, rel=0.3)
    assert sum(len(chat.turns) for chat in chats) / len(chats) == pytest.approx(5, abs=1)


async def test_each_turn_says_back_what_was_answered() -> None:
    heard, asked = await talked(frames("A"), frames("B"), frames("C"))
    assert [len(one["messages"]) for one in asked] == [2, 4, 6]
    assert [one["content"] for one in asked[2]["messages"]] == [
        *("be good", "one", "A", "two", "B", "three")
    ]
    assert [one["max_tokens"] for one in asked] == [8, 9, 10]
    assert (len(heard.ttft_s), heard.prompt_tokens, heard.cached_tokens) == (3, 30, 12)
    assert heard.wrong == []


@pytest.mark.parametrize("answer", [frames(""), frames("A", usage=0), frames("A", usage=2), b"0"])
async def test_a_chat_stops_where_something_is_wrong(answer: bytes) -> None:
    heard, asked = await talked(frames("A"), answer)
    assert (len(asked), len(heard.ttft_s), len(heard.wrong)) == (2, 1, 1)


async def test_no_turn_begins_after_the_end() -> None:
    heard, asked = await talked(end_s=0.0)
    assert (asked, heard) == ([], Heard())


def test_a_row_goes_by_what_engines_counted_and_not_by_what_a_gateway_says() -> None:
    heard = Heard(ttft_s=[0.1, 0.3], prompt_tokens=10, cached_tokens=10, wrong=["what?"])
    counted = [
        {"tokens": 30, "prompt_tokens": 100, "cached_tokens": 20},
        {"tokens": 10, "prompt_tokens": 100, "cached_tokens": 60},
    ]
    row = live.row_of("ours", heard, counted)
    assert (row.hits, row.busiest, row.requests, row.wrong) == (0.4, 1.5, 2, 1)
    assert row.ttft_mean_s == pytest.approx(0.2)
    lines = live.table([row]).splitlines()
    assert lines[1].split() == [
        *("ours", "40.0", "%", "200", "ms", "100", "ms"),
        *lines[1].split()[7:],
    ]
    assert lines[1].endswith("2 (1 wrong)")
    assert live.as_json([row])[0]["hits"] == 0.4
    with pytest.raises(BenchError, match="ours answered nothing"):
        live.row_of("ours", Heard(wrong=["refused"]), counted)


def test_every_gateway_gets_every_engine() -> None:
    for kind, words in (("smg-node", ["--worker"]), ("smg", ["--worker-urls"])):
        wanted = live._before(Wanted("x", KINDS[kind], ["--policy", "p"]), 5000, 3)
        assert wanted.arguments[:2] == ["--policy", "p"]
        assert wanted.arguments[2] in words
        assert [one for one in wanted.arguments if one.endswith("5002")] == [
            "grpc://127.0.0.1:5002"
        ]


def test_engines_are_what_the_sizes_say(tmp_path: Path) -> None:
    plan = live.Live(3, [], 1.0, tmp_path, tmp_path, SystemClock())
    command = live.engine_command(plan, 5000, tmp_path / "report.json")
    flags = dict(zip(command[4::2], command[5::2], strict=True))
    assert flags["--workers"] == "3"
    assert flags["--prefill-tokens-per-s"] == "11207"
    assert (flags["--blocks"], flags["--block-size"]) == ("6237", "64")


def test_a_run_of_ports_is_free_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    first = live.free_run(4)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        assert not live._is_free(first + 1)
    monkeypatch.setattr(live, "_is_free", lambda port: False)
    with pytest.raises(BenchError, match="no 4 free ports in a row"):
        live.free_run(4)
