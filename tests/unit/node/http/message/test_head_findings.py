"""What was found about a head holds for the next request of its connection, and not a request longer than it is true."""

import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from smg_node.http.http_options import HttpOptions
from smg_node.http.ports.keys import KeyRequest
from smg_node.telemetry.traces.tracer import TraceOptions, Tracer
from support.http.http_node import Node, node
from support.http.raw_http import RawClient, Response, ask, connect

CHAT = "/v1/chat/completions"
PAGE = "https://page.example"
PLAIN = {"content-type": "application/json"}


def said(text: str) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()


class Kept:
    """Connections that stay open, one for each head, beside which every request comes by a new one as well."""

    def __init__(self, served: Node) -> None:
        self.served = served
        self._stack = AsyncExitStack()
        self._clients: dict[str, RawClient] = {}

    async def ask(
        self, headers: Mapping[str, str], body: bytes, path: str = CHAT
    ) -> tuple[Response, Response]:
        """Return the answer on the kept connection, and that on a new one."""
        name = json.dumps([path, *headers.items()])
        client = self._clients.get(name)
        if client is None:
            client = await self._stack.enter_async_context(connect(self.served.port))
            self._clients[name] = client
        await client.send("POST", path, body, headers)
        kept = await client.response()
        if kept.headers.get("connection") == "close":
            assert await client.at_end()
            del self._clients[name]
        return kept, await ask(self.served.port, "POST", path, body, headers)

    async def close(self) -> None:
        await self._stack.aclose()


@asynccontextmanager
async def kept_on(served: Node) -> AsyncIterator[Kept]:
    kept = Kept(served)
    try:
        yield kept
    finally:
        await kept.close()


def shape(answer: Response) -> tuple[Any, ...]:
    """Return what two answers to the same request have in common."""
    said = answer.json()
    said.pop("id", None)
    said.pop("created", None)
    words = ("vary", "access-control-allow-origin", "www-authenticate", "connection", "x-smg-node")
    return answer.status, said, {word: answer.headers.get(word) for word in words}


class Changes:
    """What may happen to a node between two requests."""

    def __init__(self, served: Node) -> None:
        self.served = served
        self.texts = dict.fromkeys(("admin", "user"), "")
        self._ids: dict[str, str] = {}

    def make(self, role: Any) -> None:
        if not self.texts[role]:
            tenant = "" if role == "admin" else "acme"
            made = self.served.parts.keys.create(KeyRequest(tenant, role))
            self.texts[role], self._ids[role] = made.text, made.view.id

    def revoke(self, role: Any) -> None:
        if role in self._ids:
            self.served.parts.keys.revoke(self._ids.pop(role), force=True)

    def retune(self, **changes: Any) -> None:
        parts = self.served.parts
        fields = {name: getattr(parts.options, name) for name in HttpOptions.__slots__}
        parts.retune(HttpOptions(**{**fields, **changes}), parts.reading, parts.dialects)

    def apply(self, change: str) -> None:
        what, _, how = change.partition(" ")
        match what:
            case "make":
                self.make(how)
            case "revoke":
                self.revoke(how)
            case "data":
                self.retune(data_access=how)
            case "pages":
                self.retune(cors_allowed_origins=(PAGE,) if how else ())
            case "names":
                self.retune(expose_routing_headers=bool(how))
            case _:
                self.served.server.set_aside(on=how == "aside")


changes = st.sampled_from(
    ["make admin", "make user", "revoke admin", "revoke user", "data auto", "data open", "data closed", "pages on", "pages",
     "names on", "names", "put aside", "put back"]
)  # fmt: skip
who = st.sampled_from(["", "admin", "user", "wrong"])


@settings(max_examples=12)
@given(
    st.lists(st.tuples(changes, who, st.booleans(), st.text(max_size=9)), min_size=4, max_size=12)
)
async def test_a_kept_connection_is_answered_as_a_new_one_whatever_changed_meanwhile(
    steps: Sequence[tuple[str, str, bool, str]],
) -> None:
    async with node() as served, kept_on(served) as kept:
        happens = Changes(served)
        for change, asker, page, text in steps:
            headers = PLAIN | ({"origin": PAGE} if page else {})
            if asker:
                key = happens.texts.get(asker) or "smg-none-wrong"
                headers = headers | {"authorization": f"Bearer {key}"}
            for _ in range(2):
                here, there = await kept.ask(headers, said(text))
                assert shape(here) == shape(there)
            happens.apply(change)
            here, there = await kept.ask(headers, said(text))
            assert shape(here) == shape(there)


async def test_every_request_has_a_name_of_its_own_unless_its_client_gives_one() -> None:
    body = said("hi")
    async with node() as served, kept_on(served) as kept:
        own = [(await kept.ask(PLAIN, body))[0].headers["x-request-id"] for _ in range(4)]
        given_one = PLAIN | {"x-request-id": "mine"}
        given = [(await kept.ask(given_one, body))[0].headers["x-request-id"] for _ in range(3)]
        ill = PLAIN | {"x-request-id": "not/one", "request-id": "r1"}
        ills = [(await kept.ask(ill, body))[0].headers["x-request-id"] for _ in range(3)]
        runs = served.generations.runs
    assert len(set(own)) == 4
    assert given == ["mine"] * 3
    assert len(set(ills)) == 3
    assert not {"r1", "not/one"} & set(ills)
    tokens = [run.context.token for run in runs]
    assert len(set(tokens)) == len(runs), "also of those whose client gave the same name"
    assert {len(token) for token in tokens} == {32}
    assert all(run.context.received_ms > 0 for run in runs)


async def test_lengths_come_and_go_and_each_body_is_its_own() -> None:
    async with node() as served, kept_on(served) as kept:
        for words in ("hi", "longer words", "hi", "x" * 5_000, "", "hi"):
            here, _ = await kept.ask(PLAIN, said(f"so: {words}."))
            assert here.status == 200
            assert f"so: {words}." in repr(served.generations.runs[-2].request)


async def test_a_refused_head_is_looked_at_again_each_time() -> None:
    async with node(claim_max="bulk") as served, kept_on(served) as kept:
        for _ in range(3):
            here, there = await kept.ask(PLAIN | {"x-smg-priority": "whatever"}, b"{}", CHAT)
            assert (here.status, there.status) == (400, 400)
            lost, _ = await kept.ask(PLAIN, b"{}", "/v1/nothing")
            assert (lost.status, lost.json()["error"]["code"]) == (404, "unknown_url")


async def test_a_trace_goes_on_with_every_request_that_names_it() -> None:
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    body = said("hi")
    async with node() as served, kept_on(served) as kept:
        for _ in range(3):
            await kept.ask(PLAIN | {"traceparent": parent}, body)
        seen = [run.context.upstream_headers for run in served.generations.runs]
        assert [one["traceparent"] for one in seen] == [parent] * 6
        assert len({one["x-request-id"] for one in seen}) == 6


async def test_every_recorded_request_has_a_span_with_its_route() -> None:
    exporter = InMemorySpanExporter()
    tracer = Tracer(TraceOptions(ratio=1.0), random.Random(1), SimpleSpanProcessor(exporter))
    async with node(tracer=tracer) as served, kept_on(served) as kept:
        for _ in range(3):
            await kept.ask(PLAIN, said("hi"))
    spans = exporter.get_finished_spans()
    assert [dict(span.attributes or {})["http.route"] for span in spans] == [CHAT] * 6
    assert len({span.context.trace_id for span in spans if span.context is not None}) == 6
