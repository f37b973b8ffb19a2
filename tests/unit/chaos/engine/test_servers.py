"""Both servers speak gRPC to a real client, over the same core."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smg_chaos.engine.plans import SERVERS, ServerKind, Wanted
from smg_chaos.engine.servers import frames
from support.engines.engine_client import Asker, asking, in_background, listen
from support.engines.simulated_engine import FLAVOURS, PROMPT, Served, served
from support.tools.example_counts import example_count

FAST = {"step_s": 0.001, "prefill_tokens_per_s": 0.0}


@contextmanager
def serving(
    server: ServerKind,
    contract: str = "vllm",
    servicer: str = "python",
    *,
    script: str = "fixed",
    faults: tuple[str, ...] = (),
    workers: int = 1,
    vocabulary: int | None = None,
    **engine: Any,
) -> Iterator[tuple[Served, Asker]]:
    wanted = Wanted(
        settings={"contract": contract, "servicer": servicer, **FAST, **engine},
        vocabulary=vocabulary,
        server=server,
        script=script,
        faults=faults,
        workers=workers,
    )
    with served(wanted) as running, asking(running.address, contract, PROMPT) as asker:
        yield running, asker


def wait_until_idle(running: Served) -> None:
    give_up_s = time.monotonic() + 10
    while not running.engines[0].idle:
        assert time.monotonic() < give_up_s, "a slot is not free"
        time.sleep(0.005)
    assert running.engines[0].table.used == 0


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> ServerKind:
    kind: ServerKind = request.param
    return kind


@pytest.mark.parametrize(("contract", "servicer"), FLAVOURS)
def test_a_client_gets_what_the_core_says(server: ServerKind, contract: str, servicer: str) -> None:
    with serving(server, contract, servicer, coalesce=1) as (running, asker):
        streamed, whole = asker.generate(max_tokens=9), asker.generate(max_tokens=9, stream=None)
        head = running.engines[0].script.answer(PROMPT, 0, 0).head[:9]
        assert (tuple(streamed.ids), tuple(whole.ids)) == (head, head)
        assert streamed.kinds == ["chunk"] * 9 + ["complete"]
        assert whole.kinds == ["complete"]
        assert asker.health("").messages == [{"raw": "0801"}]
        assert asker.health("nope").code == "NOT_FOUND"
        assert asker.call("GetModelInfo").code == "OK"
        assert asker.call("GetTokenizer").code == "OK"
        assert asker.call("Nonsense").code == "UNIMPLEMENTED"


def test_an_error_travels_with_its_status_and_its_message(server: ServerKind) -> None:
    with serving(server, faults=("error:status=DATA_LOSS,after=2",)) as (_, asker):
        heard = asker.generate()
        assert (heard.code, heard.details, heard.kinds) == (
            "DATA_LOSS",
            "fault error",
            ["chunk"] * 2,
        )
        refused = asker.generate(ids=[])
        assert refused.code == "INVALID_ARGUMENT"
        assert "empty" in refused.details


def test_bytes_that_are_no_request_are_an_error(server: ServerKind) -> None:
    with serving(server) as (_, asker):
        assert listen(asker.open(b"\xff\xff\xff")).code == "INTERNAL"
        assert asker.generate(max_tokens=1).code == "OK"


def test_a_client_that_cancels_frees_the_slot(server: ServerKind) -> None:
    with serving(server, script="endless") as (running, asker):
        call = asker.open(asker.request(max_tokens=1900))
        assert len(listen(call, stop_after=5).messages) == 5
        assert running.engines[0].scheduler.running == 1
        call.cancel()
        wait_until_idle(running)
        assert running.engines[0].tally.cancelled == 1


def test_a_client_whose_deadline_passes_frees_the_slot(server: ServerKind) -> None:
    with serving(server, faults=("hang",)) as (running, asker):
        assert asker.generate(wait_s=0.2).code == "DEADLINE_EXCEEDED"
        wait_until_idle(running)


def test_a_client_that_vanishes_frees_every_slot(server: ServerKind) -> None:
    with serving(server, script="endless") as (running, _):
        with asking(running.address, "vllm", PROMPT) as other:
            # A call that nobody holds any more cancels itself.
            calls = [other.open(other.request(request_id=name, max_tokens=1900)) for name in "abc"]
            for call in calls:
                listen(call, stop_after=2)
            assert running.engines[0].scheduler.running == 3
        wait_until_idle(running)


def test_many_streams_run_at_once_and_each_gets_its_own(server: ServerKind) -> None:
    with serving(server, script="echo", slots=64, step_s=0.002) as (running, asker):
        calls = [
            asker.open(asker.request(ids=[40 + at] * 25, request_id=str(at))) for at in range(40)
        ]
        heard = [listen(call) for call in calls]
        assert [set(one.ids[:25]) for one in heard] == [{40 + at} for at in range(40)]
        assert {len(one.ids) for one in heard} == {26}
        wait_until_idle(running)


def test_a_slow_reader_gets_everything(server: ServerKind) -> None:
    # Far more than any window: the server must stop, wait, and go on where it was.
    with serving(server, script="endless", step_s=0.0) as (running, asker):
        call = asker.open(asker.request(logprobs=20, max_tokens=1900))
        listen(call, stop_after=1)
        time.sleep(0.3)
        heard = listen(call)
        assert len(heard.ids) >= 1800
        assert heard.complete["finish_reason"] == "length"
        wait_until_idle(running)


def test_a_large_prompt_and_a_large_answer_cross_many_frames(server: ServerKind) -> None:
    with serving(
        server, "mlx", script="echo", step_s=0.0, context=200_000, blocks=8000, vocabulary=2**31
    ) as (_, asker):
        ids = [(at * 7919) % 2**30 for at in range(100_000)]
        heard = asker.generate(ids=ids, stream=None, max_tokens=100_001)
        assert heard.ids[:-1] == ids


def test_a_kv_subscription_streams_and_ends_with_its_subscriber(server: ServerKind) -> None:
    with serving(server) as (_, asker):
        heard: list[bytes] = []
        subscribed = threading.Event()
        call = asker.subscribe()

        def read() -> None:
            subscribed.set()
            with suppress(grpc.RpcError):
                heard.extend(call)

        with in_background(read):
            subscribed.wait(5)
            give_up_s = time.monotonic() + 10
            at = 0
            while not heard:
                assert time.monotonic() < give_up_s
                at += 1
                asker.generate(ids=[40 + at] * 40, max_tokens=1)
            call.cancel()


def test_many_workers_share_a_process_and_not_a_fate(server: ServerKind) -> None:
    faults = ("die:worker=2,request=1",)
    with serving(server, workers=3, faults=faults) as (running, first):
        assert len(set(running.ports)) == 3
        with asking(f"127.0.0.1:{running.ports[1]}", "vllm", PROMPT) as second:
            assert second.generate().code == "UNAVAILABLE"
        with asking(f"127.0.0.1:{running.ports[2]}", "vllm", PROMPT) as third:
            assert third.generate(max_tokens=1).code == "OK"
        assert first.generate(max_tokens=1).code == "OK"
        assert [engine.died for engine in running.engines] == [None, 1, None]
        give_up_s = time.monotonic() + 10
        while time.monotonic() < give_up_s:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", running.ports[1])):
                    return
            time.sleep(0.01)
        pytest.fail("the dead worker's port is still open")


def test_a_taken_port_is_an_error_and_not_shared(server: ServerKind) -> None:
    with (
        serving(server) as (running, _),
        pytest.raises((OSError, RuntimeError)),
        served(Wanted(server=server, port=running.ports[0])),
    ):
        pytest.fail("two engines on one port")


# ── What only the lean server can do ────────────────────────────────────────


def test_the_lean_server_resets_a_stream_and_leaves_the_others_alone() -> None:
    with serving("h2", faults=("reset:after=90,request=1",), script="endless") as (running, asker):
        hit = asker.open(asker.request(request_id="a", max_tokens=300))
        heard = listen(hit, stop_after=1)
        other = asker.open(asker.request(request_id="b", max_tokens=300))
        listen(hit, heard=heard)
        assert heard.code in ("INTERNAL", "UNKNOWN")
        # A client that sees a reset forgets what it has not handed out yet.
        script = running.engines[0].script.answer(PROMPT, 0, 0)
        assert tuple(heard.ids) == script.slice(0, len(heard.ids))
        assert 0 < len(heard.ids) <= 90
        assert running.engines[0].tally.faults == {"reset": 1}
        assert len(listen(other).ids) == 300
        wait_until_idle(running)


def test_the_lean_server_closes_a_connection_with_everything_on_it() -> None:
    with serving("h2", faults=("close:after=3,request=2",), script="endless") as (running, asker):
        other = asker.open(asker.request(request_id="a", max_tokens=1900))
        begun = listen(other, stop_after=1)
        hit = asker.open(asker.request(request_id="b", max_tokens=1900))
        assert (listen(hit).code, listen(other, heard=begun).code) == ("UNAVAILABLE",) * 2
        wait_until_idle(running)
        with asking(running.address, "vllm", PROMPT) as again:
            assert again.generate(max_tokens=1).code == "OK"


# ── Garbage ─────────────────────────────────────────────────────────────────

FRAME = st.builds(
    frames.frame,
    st.integers(0, 11),
    st.integers(0, 255),
    st.integers(0, 9),
    st.binary(max_size=60)
    | st.just(bytes.fromhex("828684410f7777772e6578616d706c652e636f6d"))
    | st.just(frames.prefixed(b"")),
)
GARBAGE = st.binary(max_size=200) | st.lists(FRAME, max_size=12).map(b"".join)


@pytest.fixture(scope="module")
def lean() -> Iterator[tuple[Served, Asker]]:
    with serving("h2") as running:
        yield running


@given(GARBAGE, st.booleans(), st.integers(1, 40))
@settings(
    max_examples=example_count(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_bytes_leave_the_lean_server_well(
    lean: tuple[Served, Asker], garbage: bytes, polite: bool, cut: int
) -> None:
    running, _ = lean
    with socket.create_connection(("127.0.0.1", running.ports[0]), timeout=5) as raw:
        sent = (frames.PREFACE if polite else b"") + garbage
        try:
            for at in range(0, len(sent), cut):
                raw.sendall(sent[at : at + cut])
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(65536):
                pass
        except OSError:
            pass  # it closed the connection: its right
    assert running.engines[0].died is None


def test_the_lean_server_serves_on_after_garbage(lean: tuple[Served, Asker]) -> None:
    running, asker = lean
    assert asker.generate(max_tokens=3).code == "OK"
    wait_until_idle(running)


def test_nothing_is_raised_into_the_loop_by_garbage() -> None:
    from smg_chaos.engine.host import Host
    from smg_chaos.engine.plan_builder import make_plan
    from smg_node.system_clock import SystemClock

    async def run() -> list[dict[str, Any]]:
        raised: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, about: raised.append(about))
        host = Host(make_plan(Wanted(server="h2")), SystemClock(), lambda _: None)
        (port,) = await host.start()
        for number in range(12):
            for flags in (0, 0xFF):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(frames.PREFACE + frames.frame(number, flags, 1, b"\xff" * 9))
                writer.write_eof()
                await reader.read()
                writer.close()
                await writer.wait_closed()
        await host.stop()
        return raised

    assert asyncio.run(run()) == []
