import asyncio
import gzip
import random
import subprocess
import sys
import threading

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from smg_node.telemetry.traces import request_scope as scope
from smg_node.telemetry.traces.tracer import TraceOptions, Tracer
from support.http.http_node import chat, hello, node
from support.http.raw_http import ask

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


class CountingRng(random.Random):
    """Chance that can say how often it was asked."""

    draws = 0

    def random(self) -> float:
        self.draws += 1
        return super().random()


def recording(ratio: float, seed: int = 1) -> tuple[Tracer, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    options = TraceOptions(ratio=ratio, node="node-a", version="1")
    return Tracer(options, random.Random(seed), SimpleSpanProcessor(exporter)), exporter


def parent(flags: str) -> dict[str, str]:
    return {"traceparent": f"00-{TRACE}-{SPAN}-{flags}", "tracestate": "v=1"}


def test_without_an_endpoint_nothing_is_sampled_and_nothing_is_drawn() -> None:
    rng = CountingRng(1)
    tracer = Tracer(TraceOptions(ratio=1.0), rng)
    trace = tracer.begin("POST", {})
    assert (trace.sampled, trace.trace_id, trace.headers(), rng.draws) == (False, "", {}, 0)
    assert trace.child("engine") is scope.NO_SPAN


def test_an_unsampled_request_hands_its_callers_context_on_unchanged() -> None:
    tracer = Tracer(TraceOptions(), random.Random(1))
    for flags in ("00", "01"):
        trace = tracer.begin("POST", parent(flags))
        assert trace.headers() == parent(flags)
        assert trace.trace_id == TRACE
        assert not trace.sampled


def test_opentelemetry_is_not_imported_without_an_endpoint() -> None:
    code = (
        "import sys, random; from smg_node.telemetry.traces.tracer import *;"
        "Tracer(TraceOptions(ratio=1.0), random.Random()).begin('GET', {}).end(200);"
        "print([m for m in sys.modules if m.startswith(('opentelemetry', 'requests'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "[]"


def test_the_callers_decision_counts_and_otherwise_the_ratio() -> None:
    tracer, _ = recording(ratio=0.0)
    assert tracer.begin("POST", parent("01")).sampled
    assert not tracer.begin("POST", parent("00")).sampled
    assert not tracer.begin("POST", {}).sampled
    tracer, _ = recording(ratio=1.0)
    assert not tracer.begin("POST", parent("00")).sampled
    assert tracer.begin("POST", {}).sampled


def test_the_ratio_is_kept_over_many_requests() -> None:
    tracer, exporter = recording(ratio=0.25)
    for _ in range(400):
        tracer.begin("POST", {}).end(200)
    assert 70 <= len(exporter.get_finished_spans()) <= 130


def test_a_sampled_request_is_a_server_span_with_children_in_the_callers_trace() -> None:
    tracer, exporter = recording(ratio=0.0)
    trace = tracer.begin("POST", parent("01"))
    trace.set("http.route", "/v1/chat/completions")
    with trace.child("prepare"):
        pass
    span = trace.child("engine")
    span.set("worker", "w-1")
    upstream = span.headers()
    with pytest.raises(ValueError, match="boom"), span:
        raise ValueError("boom")
    trace.end(502, "upstream_error")
    prepare, engine, server = exporter.get_finished_spans()
    assert (server.name, server.kind.name) == ("POST", "SERVER")
    assert f"{server.context.trace_id:032x}" == TRACE == trace.trace_id
    assert server.parent is not None
    assert f"{server.parent.span_id:016x}" == SPAN
    assert server.attributes is not None
    assert server.attributes["http.response.status_code"] == 502
    assert server.attributes["http.route"] == "/v1/chat/completions"
    assert server.status.status_code.name == "ERROR"
    for child in (prepare, engine):
        assert child.parent is not None
        assert child.parent.span_id == server.context.span_id
    assert engine.attributes is not None
    assert engine.attributes["worker"] == "w-1"
    assert engine.status.description == "ValueError"
    assert upstream == {
        "traceparent": f"00-{TRACE}-{engine.context.span_id:016x}-01",
        "tracestate": "v=1",
    }
    assert trace.headers()["traceparent"] == f"00-{TRACE}-{server.context.span_id:016x}-01"


def test_ids_come_from_the_nodes_own_chance() -> None:
    ids = [recording(1.0, seed=5)[0].begin("GET", {}).trace_id for _ in range(2)]
    assert ids[0] == ids[1] != recording(1.0, seed=6)[0].begin("GET", {}).trace_id


async def test_a_request_is_traced_from_the_door_to_the_engine() -> None:
    tracer, exporter = recording(ratio=0.0)

    async def working(run):  # type: ignore[no-untyped-def] # a script
        with scope.child("engine"):
            assert scope.current().request_id == run.context.request_id
            async for batch in hello(run):
                yield batch

    async with node(working, tracer) as served:
        await ask(served.port, "POST", "/v1/chat/completions", chat(True), parent("01"))
        await ask(served.port, "POST", "/v1/chat/completions", chat(True))
        traced, plain = served.generations.runs
    engine, server = exporter.get_finished_spans()
    assert (engine.name, server.name) == ("engine", "POST")
    assert server.attributes is not None
    assert server.attributes["gen_ai.request.model"] == "m"
    sent = traced.context.upstream_headers["traceparent"]
    assert sent == f"00-{TRACE}-{server.context.span_id:016x}-01"
    assert "traceparent" not in plain.context.upstream_headers


async def test_spans_arrive_at_a_collector_when_the_node_stops() -> None:
    got: list[ExportTraceServiceRequest] = []

    async def collect(request: web.BaseRequest) -> web.Response:
        assert request.path == "/v1/traces"
        body = await request.read()
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        got.append(ExportTraceServiceRequest.FromString(body))
        return web.Response(body=b"")

    collector = web.Server(collect)
    server = await asyncio.get_running_loop().create_server(collector, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    options = TraceOptions(ratio=1.0, endpoint=f"http://127.0.0.1:{port}", node="n-1", version="9")
    tracer = Tracer(options, random.Random(3))
    tracer.begin("GET", {}).end(200)
    await tracer.close(20)
    assert not tracer.begin("GET", {}).sampled
    await tracer.close(20)
    server.close()
    await collector.shutdown(1)
    (spans,) = got[0].resource_spans
    attributes = {pair.key: pair.value.string_value for pair in spans.resource.attributes}
    assert attributes["service.instance.id"] == "n-1"
    assert [span.name for span in spans.scope_spans[0].spans] == ["GET"]


async def test_a_collector_that_hangs_does_not_hold_the_node() -> None:
    go, gone = threading.Event(), threading.Event()

    class Hanging(SpanProcessor):
        def shutdown(self) -> None:
            go.wait()
            gone.set()

    tracer = Tracer(TraceOptions(1.0), random.Random(3), Hanging())
    tracer.begin("GET", {}).end(200)
    await tracer.close(0.05)
    assert not gone.is_set()
    assert tracer.begin("GET", {}).headers() == {}
    go.set()
    assert gone.wait(20)
