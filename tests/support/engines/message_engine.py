"""An engine that answers in messages, as a script cuts them, and a client that takes events or frames."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.events import Event
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.completions.dialect import CompletionsDialect
from smg_node.dialects.dialect import Dialect, ParsedBody, Presenter
from smg_node.dialects.options import ReaderOptions
from smg_node.engines.chunk_stream import ChunkStream
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.grpc.generate_call import RemoteCall
from smg_node.engines.grpc.stream_reader import StreamReader
from smg_node.engines.transport.stream_timeouts import Watches
from smg_node.engines.transport.transport import StatusCode, TransportError
from support.engines.engine_bench import PB
from support.engines.fake_engine import FakeEngine

Batches = Sequence[Sequence[bytes]]
APIS: dict[str, Callable[[ReaderOptions], Dialect]] = {
    "chat": ChatDialect,
    "completions": CompletionsDialect,
}


class Replay:
    """The messages of one call, batch by batch; ends well, or with UNAVAILABLE if it `breaks`."""

    def __init__(self, batches: Batches, *, breaks: bool) -> None:
        self._batches = list(batches)
        self._breaks = breaks
        self.ended = False

    async def pour(self, take: Callable[[Sequence[bytes]], bool]) -> bool:
        while self._batches:
            await asyncio.sleep(0)
            if not take(self._batches.pop(0)):
                return False
        if self._breaks:
            raise TransportError(StatusCode.UNAVAILABLE, "the connection is gone", {})
        self.ended = True
        return True

    def __aiter__(self) -> AsyncIterator[Sequence[bytes]]:
        raise AssertionError("it is poured")

    async def __anext__(self) -> Sequence[bytes]:
        raise AssertionError("it is poured")

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def cancel(self) -> None: ...


class MessageEngine(FakeEngine):
    """Answers in messages, as `script` cuts them; counts what went past chunks."""

    def __init__(self, batches: Callable[[EngineRequest], tuple[Batches, bool]]) -> None:
        super().__init__()
        self.batches = batches
        self._wire = WIRES[Contract.MLX]()

    def call(self, request: EngineRequest) -> ChunkStream:
        self.requests.append(request)
        batches, breaks = self.batches(request)
        return RemoteCall(
            self,
            request,
            Replay(batches, breaks=breaks),
            StreamReader.of(request.sampling, self._wire),
            Watches(asyncio.get_running_loop()),
            first_event_s=None,
            stall_s=None,
        )

    def finish(self, running: RemoteCall) -> None: ...

    def note_broken(self, error: SmgError) -> None: ...

    def why(self, running: RemoteCall, error: TransportError) -> SmgError:
        return SmgError(ErrorKind.UPSTREAM_FAILED, error.message, code="upstream_unavailable")


class Client:
    """Takes the frames of one generation, and is behind now and then."""

    def __init__(self, presenter: Presenter, seed: int) -> None:
        self._presenter = presenter
        self._rng = random.Random(seed)
        self.sent = b""
        self.put_bytes = 0
        self.waited = 0

    def receive(self, events: Sequence[Event]) -> bool:
        self.sent += self._presenter.frames(events)
        return self._rng.random() < 0.2

    def around(self) -> FrameTemplate | None:
        return self._presenter.around()

    def put(self, frames: bytes) -> bool:
        assert frames
        self.sent += frames
        self.put_bytes += len(frames)
        return self._rng.random() < 0.2

    async def ready(self) -> None:
        self.waited += 1


def chunk(ids: Sequence[int], **counts: int) -> bytes:
    pb = PB[Contract.MLX]
    part = pb.GenerateStreamChunk(token_ids=ids, prompt_tokens=2, **counts)
    data: bytes = pb.GenerateResponse(chunk=part).SerializeToString()
    return data


def end(reason: str = "stop") -> bytes:
    pb = PB[Contract.MLX]
    complete = pb.GenerateComplete(finish_reason=reason, prompt_tokens=2)
    data: bytes = pb.GenerateResponse(complete=complete).SerializeToString()
    return data


def reading_of(
    api: str, limit: int, more: Mapping[str, Any] | None = None
) -> tuple[ParsedBody[Any], Presenter]:
    dialect: Dialect = APIS[api](ReaderOptions())
    asked = {"messages": [{"role": "user", "content": "hi"}]} if api == "chat" else {"prompt": "hi"}
    body = {"model": "tiny", "max_tokens": limit, "stream": True, **asked, **(more or {})}
    reading = dialect.read(body)
    return reading, dialect.presenter(reading)
