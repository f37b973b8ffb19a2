"""Stream server: one port, three methods, and a limit on everything a stranger can hold open.

A process that does not finish its handshake, a peer that does not read or say anything, an answer that does
not come: each has a deadline here, whatever the caller's own. Exchanges and questions have places of their
own, so that neither keeps the pings out, which decide about life and death.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from smg_mesh.io.errors import MeshError
from smg_mesh.io.streams.errors import AskError
from smg_mesh.io.streams.exchange_stream import Conversation
from smg_mesh.io.streams.frames import MESSAGE_BYTES_MAX
from smg_mesh.io.streams.service import (
    EXCHANGE_S,
    PAYLOAD_BYTES_MAX,
    SERVICE,
    TOPIC_CHARS_MAX,
    StreamService,
)
from smg_mesh.io.tls import Credentials, dns_name
from smg_mesh.swim.messages import Address
from smg_mesh.sync.exchange.exchange_machine import ExchangeError, Opening
from smg_proto import mesh_pb2

EXCHANGES_MAX: Final = 16
"""Served at a time; each may hold one message in, one out, and one batch of pieces, 2 MiB at worst."""
QUESTIONS_MAX: Final = 32
CALLS_MAX: Final = 256
CONNECTIONS_MAX: Final = 1024
FRAME_S: Final = 10.0
"""For the peer to send a frame, or to take one."""
ANSWER_S: Final = 60.0
ABORT_S: Final = 1.0

_TASKS_S: Final = 1.0
_LAST_TURNS: Final = 3
T = TypeVar("T")

_Code: Final = grpc.StatusCode
_log: Final = logging.getLogger("smg_mesh.streams")

_OPTIONS: Final = (
    # A port that is taken is an error; by default a second process would share it silently.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    ("grpc.max_concurrent_streams", 64),
    ("grpc.max_connection_idle_ms", 120_000),
    # An end to calls that were answered and whose peer never reads the answer.
    ("grpc.max_connection_age_ms", 600_000),
    ("grpc.max_connection_age_grace_ms", 60_000),
    ("grpc.server_handshake_timeout_ms", 5_000),
    # Callers send a keepalive every 10 s while a call is open.
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)


class StreamServer:
    """Serves peers on `listen`. Make and use it inside one running loop.

    `count(name, detail)` hears of every call and of every refusal.
    """

    def __init__(
        self,
        listen: Address,
        credentials: Credentials,
        service: StreamService,
        *,
        count: Callable[[str, str], None],
        exchange_s: float = EXCHANGE_S,
        frame_s: float = FRAME_S,
    ) -> None:
        self._listen = listen
        self._credentials = credentials
        self._service = service
        self._count = count
        self._exchange_s = exchange_s
        self._frame_s = frame_s
        self._server: grpc.aio.Server | None = None
        self._exchanges = 0
        self._questions = 0
        self._calls = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def exchanges(self) -> int:
        """Exchanges being served."""
        return self._exchanges

    async def start(self) -> int:
        """Listen; return the port, which the system chose if it was 0. MeshError if it is taken."""
        server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=CALLS_MAX)
        server.add_generic_rpc_handlers((self._methods(),))
        credentials = self._credentials.server()
        try:
            if credentials is None:
                port = server.add_insecure_port(str(self._listen))
            else:
                port = server.add_secure_port(str(self._listen), credentials)
        except RuntimeError:
            port = 0
        if port == 0:
            raise MeshError(f"cannot listen on {self._listen} (TCP): {_why_not(self._listen)}")
        await server.start()
        self._server = server
        return port

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; those under way may end within `grace_s` and are cut then."""
        server, self._server = self._server, None
        if server is None:
            return
        await server.stop(grace_s)
        # gRPC is done, and its tasks for the calls that were cut are about to be: a loop that closes
        # before them makes them complain.
        with suppress(TimeoutError):
            async with asyncio.timeout(_TASKS_S):
                await self._quiet.wait()
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)

    def _methods(self) -> Any:
        unary: Any = grpc.unary_unary_rpc_method_handler
        stream: Any = grpc.stream_stream_rpc_method_handler
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Ping": unary(self._counted(self._ping)),
                "Exchange": stream(self._counted(self._exchange)),
                "Ask": unary(self._counted(self._ask)),
            },
        )

    def _counted(self, serve: Callable[[Any, Any], Awaitable[T]]) -> Callable[[Any, Any], Any]:
        async def counted(request: Any, context: Any) -> T:
            self._calls += 1
            self._quiet.clear()
            context.add_done_callback(self._ended)
            return await serve(request, context)

        return counted

    def _ended(self, _context: Any) -> None:
        self._calls -= 1
        if self._calls == 0:
            self._quiet.set()

    # ── Ping ─────────────────────────────────────────────────────────────────

    async def _ping(self, request: bytes, context: Any) -> bytes:
        self._count("stream_served", "ping")
        try:
            asked = mesh_pb2.PingRequest.FromString(request)
        except DecodeError:
            await self._abort(context, "wire", _Code.INVALID_ARGUMENT, "this is no ping")
        here = await self._service.ping(asked.name, asked.boot)
        return mesh_pb2.PingReply(here=here).SerializeToString()

    # ── Exchange ─────────────────────────────────────────────────────────────

    async def _exchange(self, _requests: object, context: Any) -> None:
        if self._exchanges >= EXCHANGES_MAX:
            await self._turn_away(context)
        self._count("stream_served", "exchange")
        self._exchanges += 1
        try:
            async with asyncio.timeout(self._exchange_s):
                await self._converse(context)
        except ExchangeError as error:
            code = _Code.PERMISSION_DENIED if error.reason == "name" else _Code.FAILED_PRECONDITION
            await self._abort(context, error.reason, code, f"the caller {error}")
        except TimeoutError:
            await self._abort(
                context, "slow", _Code.DEADLINE_EXCEEDED, "the exchange took too long"
            )
        finally:
            self._exchanges -= 1

    async def _turn_away(self, context: Any) -> None:
        # The caller is let finish its first sentence: gRPC hides our reason from who is writing.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._frame_s):
                await context.read()
        busy = f"{EXCHANGES_MAX} exchanges are served already"
        await self._abort(context, "busy", _Code.RESOURCE_EXHAUSTED, busy)

    async def _converse(self, context: Any) -> None:
        machine = self._service.exchange()
        conversation = Conversation(
            machine,
            read=partial(self._read, context),
            write=partial(self._write, context),
            greeted=partial(self._check, context),
            learned=self._service.learned,
            turns=self._service.turns,
        )
        await conversation.run()
        if machine.refused is not None:
            raise machine.refused
        self._service.ended(machine)

    async def _read(self, context: Any) -> bytes | object:
        async with asyncio.timeout(self._frame_s):
            received: bytes | object = await context.read()
            return received

    async def _write(self, context: Any, frame: bytes) -> None:
        async with asyncio.timeout(self._frame_s):
            await context.write(frame)

    def _check(self, context: Any, peer: Opening) -> None:
        if not self._proves(context, peer.name):
            raise ExchangeError("name", f"says it is {peer.name}, and its certificate does not")

    def _proves(self, context: Any, name: str) -> bool:
        """Whether the caller's certificate carries that name; without TLS its word is taken."""
        if not self._credentials.secure:
            return True
        names = context.auth_context().get("x509_subject_alternative_name", ())
        return dns_name(name).encode() in [found.lower() for found in names]

    # ── Ask ──────────────────────────────────────────────────────────────────

    async def _ask(self, request: bytes, context: Any) -> bytes:
        try:
            asked = mesh_pb2.AskRequest.FromString(request)
        except DecodeError:
            await self._abort(context, "wire", _Code.INVALID_ARGUMENT, "this is no question")
        try:
            payload = await self._answer(asked, context)
        except AskError as error:
            self._count("stream_refused", f"ask_{error.code}")
            failure = mesh_pb2.AskFailure(code=error.code, message=str(error))
            return mesh_pb2.AskReply(failure=failure).SerializeToString()
        return mesh_pb2.AskReply(payload=payload).SerializeToString()

    async def _answer(self, asked: mesh_pb2.AskRequest, context: Any) -> bytes:
        self._admit(asked, context)
        with self._place_for_question():
            self._count("stream_served", "ask")
            try:
                async with asyncio.timeout(_answer_s(context.time_remaining())):
                    payload = await self._service.answer(asked.topic, asked.payload, asked.caller)
            except TimeoutError as error:
                raise AskError("timeout", f"{asked.topic}: no answer in time") from error
            except AskError:
                raise
            except Exception as error:
                # A door: a fault of one topic is told to who asked, in words that give nothing away.
                _log.exception("a question about %s failed", asked.topic)
                raise AskError(
                    "failed", f"{asked.topic}: the answering side has a fault"
                ) from error
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise AskError("too_large", f"{asked.topic}: the answer is too large")
        return payload

    def _admit(self, asked: mesh_pb2.AskRequest, context: Any) -> None:
        mine = self._credentials
        if asked.label != mine.label:
            raise AskError("refused", f"this is the mesh {mine.label!r}")
        if asked.target != mine.name:
            raise AskError("refused", f"this is {mine.name}, not {asked.target[:64]}")
        if not self._proves(context, asked.caller):
            raise AskError("refused", f"the certificate does not carry {asked.caller[:64]}")
        if len(asked.topic) > TOPIC_CHARS_MAX or len(asked.payload) > PAYLOAD_BYTES_MAX:
            raise AskError("too_large", "the question is too large")

    @contextmanager
    def _place_for_question(self) -> Iterator[None]:
        if self._questions >= QUESTIONS_MAX:
            raise AskError("busy", f"{QUESTIONS_MAX} questions are being answered")
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1

    async def _abort(
        self, context: Any, reason: str, code: grpc.StatusCode, message: str
    ) -> NoReturn:
        self._count("stream_refused", reason)
        try:
            async with asyncio.timeout(ABORT_S):
                await context.abort(code, message)
        except TimeoutError:
            # Behind what the peer never reads even the refusal waits. A call whose task was cancelled
            # is dropped by gRPC, and the peer's end reset.
            raise asyncio.CancelledError from None
        raise AssertionError("abort raises")


def _answer_s(remaining_s: float | None) -> float:
    """Return how long an answer may take, so that the caller still hears that there is none."""
    return ANSWER_S if remaining_s is None else min(ANSWER_S, 0.9 * remaining_s)


def _why_not(listen: Address) -> str:
    """Return why that port cannot be bound: gRPC does not say."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(tuple(listen))
    except OSError as error:
        return error.strerror or str(error)
    return "another process listens there"
