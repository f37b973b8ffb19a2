"""Stream client: pings, exchanges and questions to peers, each with a deadline."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from smg_mesh.io.streams.channels import Channel, Channels
from smg_mesh.io.streams.errors import AskError, StreamError, failure
from smg_mesh.io.streams.exchange_stream import Conversation
from smg_mesh.io.streams.frames import decode_frame
from smg_mesh.io.streams.loop_turns import Turns
from smg_mesh.io.streams.service import (
    ASK,
    EXCHANGE,
    EXCHANGE_S,
    PAYLOAD_BYTES_MAX,
    PING,
    TOPIC_CHARS_MAX,
)
from smg_mesh.io.tls import Credentials
from smg_mesh.swim.effects import StreamAnswer
from smg_mesh.swim.messages import Address, Claim
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Opening
from smg_proto import mesh_pb2

_OPERATORS_BUSINESS: Final = frozenset({"key", "plain", "name"})
_SILENT_S: Final = 60.0
_log: Final = logging.getLogger("smg_mesh.streams")
# The peer answered, if only to refuse: the connection is good.
_ANSWERS: Final = frozenset(
    {
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)


class StreamClient:
    """Calls peers at addresses. `name` has to be there; None: any member of the mesh.

    Make and use it inside one running loop. `count(name, detail)` hears of every failure.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        count: Callable[[str, str], None],
        monotonic_s: Callable[[], float],
    ) -> None:
        self._credentials = credentials
        self._count = count
        self._monotonic_s = monotonic_s
        self._silent_until_s = monotonic_s()
        self._channels = Channels(credentials, monotonic_s=monotonic_s)

    @property
    def open_channels(self) -> int:
        """Channels that are open."""
        return len(self._channels)

    async def ping(
        self, address: Address, name: str, boot: int, *, deadline_ms: int
    ) -> StreamAnswer:
        """Return whether the process at `address` answers that it is that life of `name`. Never raises."""
        request = mesh_pb2.PingRequest(name=name, boot=boot).SerializeToString()
        try:
            answer = await self._unary(PING, request, address, name, deadline_ms / 1000)
            if mesh_pb2.PingReply.FromString(answer).here:
                return StreamAnswer.HERE
        except DecodeError:
            self._count("stream_failed", "wire")
        except StreamError as error:  # counted
            if error.reason == "nobody":
                return StreamAnswer.NOBODY
        return StreamAnswer.SILENT

    async def exchange(
        self,
        address: Address,
        name: str | None,
        machine: Exchange,
        learned: Callable[[tuple[Claim, ...]], None],
        *,
        turns: Turns,
        deadline_ms: int,
    ) -> Opening:
        """Converse to the end; return who was there. StreamError; what was learned before stays learned.

        `deadline_ms` is for each frame, so that much state may take long over a slow link, and never
        longer than `EXCHANGE_S` in all.
        """
        async with self._call(address, name) as channel:
            # No serializers: bytes in, bytes out. (The published stubs want them all the same.)
            make: Any = channel.grpc.stream_stream
            call = make(EXCHANGE)(timeout=EXCHANGE_S)
            talk = _Call(call, machine, name, learned, turns)
            try:
                return await talk.run(deadline_ms / 1000)
            except ExchangeError as error:
                raise StreamError(error.reason, f"peer at {address} {error}") from error
            except TimeoutError as error:
                channel.retire()
                raise StreamError(
                    "deadline", f"peer at {address} did not answer in time"
                ) from error
            finally:
                _drop(call)

    async def ask(
        self, address: Address, name: str, topic: str, payload: bytes, *, deadline_s: float
    ) -> bytes:
        """Return what `name` answers to a question about `topic`; AskError."""
        assert len(topic) <= TOPIC_CHARS_MAX
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise AskError("too_large", f"a question has at most {PAYLOAD_BYTES_MAX} bytes")
        request = mesh_pb2.AskRequest(
            caller=self._credentials.name,
            target=name,
            label=self._credentials.label,
            topic=topic,
            payload=payload,
        )
        try:
            answer = await self._unary(ASK, request.SerializeToString(), address, name, deadline_s)
            reply = mesh_pb2.AskReply.FromString(answer)
        except DecodeError as error:
            raise AskError("wire", f"{name} sent what is no answer") from error
        except StreamError as error:
            code = "timeout" if error.reason == "deadline" else error.reason
            raise AskError(code, str(error)) from error
        if reply.WhichOneof("outcome") != "payload":
            raise AskError(reply.failure.code or "failed", reply.failure.message)
        return reply.payload

    async def close(self) -> None:
        """Close all channels; calls under way fail."""
        await self._channels.close()

    async def _unary(
        self, method: str, request: bytes, address: Address, name: str, deadline_s: float
    ) -> bytes:
        async with self._call(address, name) as channel:
            make: Any = channel.grpc.unary_unary
            answer: bytes = await make(method)(request, timeout=deadline_s)
            return answer

    @asynccontextmanager
    async def _call(self, address: Address, name: str | None) -> AsyncIterator[Channel]:
        """Lend a channel for one call, and say what its failure means."""
        try:
            async with self._channels.lease(address, name) as channel:
                try:
                    yield channel
                except grpc.aio.AioRpcError as error:
                    if error.code() not in _ANSWERS:
                        channel.retire()
                    raise failure(error, address, name) from error
                except asyncio.CancelledError:
                    if _task_is_cancelled():
                        raise
                    # gRPC's way to say that the channel was closed under the call.
                    raise StreamError("failed", "the streams are closed") from None
        except StreamError as error:
            self._count("stream_failed", error.reason)
            if name is not None:
                self._complain(error)
            raise

    def _complain(self, error: StreamError) -> None:
        """Say now and then that a known member is none of ours: its operator, or ours, has to do something.

        What becomes of seeds is told by the seed search.
        """
        now_s = self._monotonic_s()
        if error.reason in _OPERATORS_BUSINESS and now_s >= self._silent_until_s:
            self._silent_until_s = now_s + _SILENT_S
            _log.warning("%s", error)


class _Call:
    """One exchange, from this side."""

    def __init__(
        self,
        call: Any,
        machine: Exchange,
        name: str | None,
        learned: Callable[[tuple[Claim, ...]], None],
        turns: Turns,
    ) -> None:
        self._call = call
        self._machine = machine
        self._name = name
        self._progress: Callable[[], None] = lambda: None
        self._conversation = Conversation(
            machine,
            read=self._read,
            write=self._write,
            greeted=self._check,
            learned=lambda claims, _: learned(claims),
            turns=turns,
        )

    async def run(self, deadline_s: float) -> Opening:
        """Return who was at the other end; AioRpcError, ExchangeError, TimeoutError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(deadline_s) as limit:
            self._progress = lambda: limit.reschedule(loop.time() + deadline_s)
            peer = await self._conversation.run()
            await self._end()
            # After the end the peer hangs up, and that is read too: then it has all that was sent.
            while isinstance(received := await self._read(), bytes):
                self._machine.receive(decode_frame(received))
        if self._machine.refused is not None:
            raise self._machine.refused
        return peer

    def _check(self, peer: Opening) -> None:
        if self._name is not None and peer.name != self._name:
            raise ExchangeError("name", f"is {peer.name}, not {self._name}")

    async def _read(self) -> bytes | object:
        received: bytes | object = await self._call.read()
        self._progress()
        return received

    async def _write(self, frame: bytes) -> None:
        try:
            await self._call.write(frame)
        except asyncio.InvalidStateError:
            await self._hung_up()
        self._progress()

    async def _end(self) -> None:
        try:
            await self._call.done_writing()
        except asyncio.InvalidStateError:
            await self._hung_up()

    async def _hung_up(self) -> NoReturn:
        """The call ended while we wrote: say with what, which reading tells if it was an error."""
        await self._call.read()
        raise ExchangeError("hung_up", "hung up before the end")


def _drop(call: Any) -> None:
    """End a call, whatever has become of it.

    One that failed under a write is over for grpcio and not for the library below, which keeps it, and a
    task that waits for its status, until the deadline: what the peer said last was never read.
    """
    if not call.cancel():
        call._cython_call.cancel("dropped")  # no public way leads there


def _task_is_cancelled() -> bool:
    """Whether a CancelledError out of grpcio is our task's, not only the call's."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
