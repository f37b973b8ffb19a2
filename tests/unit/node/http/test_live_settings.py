"""What the surface takes over from the cluster's settings while it serves."""

import json
from dataclasses import replace
from typing import Any

from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.completions.dialect import CompletionsDialect
from smg_node.dialects.dialect import Dialect
from smg_node.dialects.options import ReaderOptions
from smg_node.http.http_settings import http_options
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.middleware.drain_phases import Drain, Phase
from support.http.http_node import Node, chat, node, silence
from support.http.raw_http import ask, connect
from support.tools.configuration import load


def retune(served: Node, reading: ReaderOptions | None = None, **changes: Any) -> None:
    reading = reading or ReaderOptions()
    dialects: dict[str, Dialect] = {
        "chat": ChatDialect(reading),
        "completions": CompletionsDialect(reading),
    }
    served.parts.retune(replace(served.parts.options, **changes), reading, dialects)


async def test_sizes_of_bodies_and_their_nesting_follow() -> None:
    async with node() as served:
        port = served.port
        before = await ask(port, "POST", "/v1/chat/completions", chat())
        retune(served, body_max_bytes=20)
        large = await ask(port, "POST", "/v1/chat/completions", chat())
        retune(served, body_max_bytes=1_000_000, nesting_max=2)
        deep = await ask(port, "POST", "/v1/chat/completions", chat())
        retune(served, body_max_bytes=1_000_000, nesting_max=128)
        after = await ask(port, "POST", "/v1/chat/completions", chat())
    assert [one.status for one in (before, large, deep, after)] == [200, 413, 400, 200]


async def test_limits_of_the_readers_follow() -> None:
    async with node() as served:
        port = served.port
        retune(served, ReaderOptions(n_max=1, choices_max=1))
        many = await ask(port, "POST", "/v1/chat/completions", chat(n=2))
        tokens = {"model": "m", "prompt": ["a", "b"]}
        listed = await ask(port, "POST", "/v1/tokenize", tokens)
        retune(served, ReaderOptions(n_max=2))
        again = await ask(port, "POST", "/v1/chat/completions", chat(n=2))
    assert (many.status, many.error()["param"]) == (400, "n")
    assert listed.status == 400
    assert again.status == 200


async def test_routing_headers_follow() -> None:
    async with node() as served:
        retune(served, expose_routing_headers=False, key_headers=("x-session",))
        headers = {"x-session": "abc", "content-type": "application/json"}
        answer = await ask(served.port, "POST", "/v1/chat/completions", chat(), headers=headers)
        assert served.generations.runs[-1].request.routing_key == "abc"
        assert served.generations.runs[-1].context.client == "127.0.0.1"
    assert "x-smg-node" not in answer.headers


async def test_the_number_of_connections_follows() -> None:
    async with node() as served, connect(served.port):
        retune(served, connections_max=1)
        refused = await ask(served.port, "GET", "/liveness")
        retune(served, connections_max=10)
        welcome = await ask(served.port, "GET", "/liveness")
    assert (refused.status, welcome.status) == (429, 200)


async def test_an_open_stream_is_kept_alive_by_the_new_time() -> None:
    quiet = node(silence, commit_after_s=3600, keepalive_s=3600)
    async with quiet as served, connect(served.port) as client:
        body = json.dumps(chat(stream=True)).encode()
        await client.send("POST", "/v1/chat/completions", body)
        await served.generations.started.wait()
        retune(served, commit_after_s=0.02, keepalive_s=0.02)
        head = await client.head()
        comment = await client.chunk()
    assert head[0] == 200
    assert comment.startswith(b":")


def test_a_drain_that_has_not_begun_takes_the_new_times() -> None:
    drain = Drain(settle_s=5, grace_s=50)
    drain.retune(settle_s=1, grace_s=2)
    drain.begin(0)
    assert drain.wait_s(0) == 1
    drain.advance(1, 1)
    assert (drain.phase, drain.wait_s(1)) == (Phase.CLOSING, 2)


class Still:
    committed = True
    quiet_ticks = 0

    def ping(self) -> None:
        """Write nothing."""


async def test_how_long_a_stream_was_quiet_is_kept_when_times_change() -> None:
    pulse, stream = KeepaliveTimer(commit_after_s=8, keepalive_s=8), Still()
    pulse.add(stream)
    stream.quiet_ticks = 4
    pulse.retune(commit_after_s=4, keepalive_s=4)
    assert stream.quiet_ticks == 8
    pulse.close()


def test_who_reads_requests_is_a_setting() -> None:
    assert http_options(load([], {}).settings).server == "direct"
    chosen = load([], {"SMG_HTTP__SERVER": "aiohttp"})
    assert http_options(chosen.settings).server == "aiohttp"
