"""A client of any engine, real or simulated: asks over gRPC and writes down what it heard."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
from google.protobuf import json_format
from smg_grpc_proto.generated import common_pb2

from smg_chaos.engine.protocol.contracts import CONTRACTS

WAIT_S = 30.0


@dataclass
class Heard:
    """Everything one call brought: messages as dictionaries, and how it ended."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    code: str = "OK"
    details: str = ""

    @property
    def ids(self) -> list[int]:
        """The ids of all chunks, or of the complete message if there was no chunk."""
        chunks = [one["chunk"] for one in self.messages if "chunk" in one]
        if chunks:
            return [token for chunk in chunks for token in chunk.get("token_ids", [])]
        return [
            token
            for one in self.messages
            for token in one["complete"].get(
                "output_ids", one["complete"].get("output_token_ids", [])
            )
        ]

    @property
    def complete(self) -> dict[str, Any]:
        """The last complete message."""
        completes = [one["complete"] for one in self.messages if "complete" in one]
        assert completes, f"no complete message: {self}"
        last: dict[str, Any] = completes[-1]
        return last

    @property
    def kinds(self) -> list[str]:
        """What each message is."""
        return ["chunk" if "chunk" in one else "complete" for one in self.messages]


def plain(message: Any) -> dict[str, Any]:
    """Return a message as a dictionary under the contract's own names."""
    found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return found


class Asker:
    """Asks one engine; `ids` is a prompt to use when none is given."""

    def __init__(self, channel: grpc.Channel, contract: str, ids: Sequence[int]) -> None:
        self.contract = CONTRACTS[contract]
        self.messages: Any = self.contract.messages
        self.ids = list(ids)
        self._channel = channel
        self._asked = 0

    def fresh(self, name: str) -> str:
        """Return a request id that was not used before.

        A real MLX engine cleans up behind a request by its id, and a little later: who uses the id
        again at once may find the new request cleaned up as well.
        """
        self._asked += 1
        return f"{name}-{self._asked}"

    def request(self, *, ids: Sequence[int] | None = None, **fields: Any) -> bytes:
        """Return a GenerateRequest: greedy, streamed, of an id of its own, unless it is told otherwise.

        A field whose value is None is left unset.
        """
        asked: dict[str, Any] = {"stream": True, "temperature": 0.0, "max_tokens": 500}
        if "request_id" not in fields:
            asked["request_id"] = self.fresh("test")
        if self.contract.name == "sglang":
            # Its zeros are not "unset".
            asked |= {"repetition_penalty": 1.0, "top_p": 1.0, "n": 1}
        asked |= fields
        set_fields = {name: value for name, value in asked.items() if value is not None}
        return self.contract.ask(self.ids if ids is None else ids, **set_fields)

    def open(self, body: bytes, *, wait_s: float = WAIT_S) -> Any:
        """Start a Generate; iterate over what it returns."""
        call = self._channel.unary_stream(
            f"/{self.contract.service}/Generate",
            request_serializer=bytes,
            response_deserializer=self.messages.GenerateResponse.FromString,
        )
        return call(body, timeout=wait_s)

    def generate(self, *, wait_s: float = WAIT_S, **fields: Any) -> Heard:
        """Run a Generate to its end."""
        return listen(self.open(self.request(**fields), wait_s=wait_s))

    def call(self, method: str, request: bytes = b"", *, service: str = "") -> Heard:
        """Call any other method and return its answers, read by the contract where it knows them."""
        name = service or self.contract.service
        kind = getattr(self.messages, f"{method}Response", None)
        kind = kind or _COMMON.get(method)
        reader = (lambda raw: raw) if service or kind is None else kind.FromString
        call = self._channel.unary_stream(
            f"/{name}/{method}", request_serializer=bytes, response_deserializer=reader
        )
        return listen(call(request, timeout=WAIT_S))

    def subscribe(self) -> Any:
        """Listen to KV events from now on; iterate over the raw batches, cancel to stop."""
        call = self._channel.unary_stream(
            f"/{self.contract.service}/SubscribeKvEvents",
            request_serializer=bytes,
            response_deserializer=bytes,
        )
        return call(b"", timeout=WAIT_S)

    def abort(self, request_id: str) -> Heard:
        """Send an Abort."""
        request = self.messages.AbortRequest()
        if hasattr(request, "request_ids"):
            request.request_ids.append(request_id)
        else:
            request.request_id = request_id
        return self.call("Abort", request.SerializeToString())

    def health(self, service: str) -> Heard:
        """Ask the standard health service."""
        raw = b"\x0a" + bytes((len(service),)) + service.encode() if service else b""
        return self.call("Check", raw, service="grpc.health.v1.Health")


_COMMON: dict[str, Any] = {
    "FlushCache": common_pb2.FlushCacheResponse,
    "GetTokenizer": common_pb2.GetTokenizerChunk,
    "SubscribeKvEvents": common_pb2.KvEventBatch,
}


def listen(call: Any, *, heard: Heard | None = None, stop_after: int | None = None) -> Heard:
    """Return what a call brings until it ends, or until there were so many messages."""
    heard = heard or Heard()
    try:
        for message in call:
            heard.messages.append(
                {"raw": message.hex()} if isinstance(message, bytes) else plain(message)
            )
            if stop_after is not None and len(heard.messages) >= stop_after:
                return heard
    except grpc.RpcError as error:
        # What a call raises is the call itself; the stubs do not know that.
        ended = cast(grpc.Call, error)
        heard.code, heard.details = ended.code().name, ended.details() or ""
    return heard


@contextmanager
def in_background(work: Callable[[], None]) -> Iterator[threading.Thread]:
    """Run `work` in a thread that is waited for."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(WAIT_S)
        assert not thread.is_alive(), "the background work hangs"


@contextmanager
def asking(address: str, contract: str, ids: Sequence[int]) -> Iterator[Asker]:
    """Connect to an engine."""
    options = [("grpc.max_receive_message_length", 1 << 28)]
    with grpc.insecure_channel(address, options=options) as channel:
        yield Asker(channel, contract, ids)
