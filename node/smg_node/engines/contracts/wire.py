"""Wire: interface of every contract's module: encodes requests into bytes and decodes messages from
bytes. Pure.

A `Wire` holds no state: one object per contract would do for the whole process. Which stream
messages repeat earlier ids is decided in `stream_reader`.
"""

import sys
from array import array
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtoMessage

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import IdLogprob
from smg_node.engines.engine import (
    Abilities,
    Contract,
    Embedded,
    EmbedRequest,
    EngineRequest,
    ModelCard,
)
from smg_node.engines.load import Load
from smg_node.engines.transport.message_pieces import MessagePieces
from smg_node.media.engine_media import Tensor
from smg_node.native.stream_messages import ChunkReader, EndReader

GENERATE: Final = "Generate"
ABORT: Final = "Abort"
ENCODE: Final = "Encode"
EMBED: Final = "Embed"
HEALTH_CHECK: Final = "HealthCheck"
GET_MODEL_INFO: Final = "GetModelInfo"
GET_SERVER_INFO: Final = "GetServerInfo"
GET_TOKENIZER: Final = "GetTokenizer"
GET_LOADS: Final = "GetLoads"
SUBSCRIBE_KV_EVENTS: Final = "SubscribeKvEvents"

Places: TypeAlias = Mapping[str, str]
"""Names of shared memory, by the keys of the tensors that lie there."""
NOWHERE: Final[Places] = MappingProxyType({})


class Message(msgspec.Struct, gc=False):
    """One message of a Generate stream, as it was sent, in terms common to all contracts.

    `final` is true for a `complete`, whose `ids` may repeat what chunks had. `prompt_tokens` and
    `cached_tokens` are -1 where the message does not say.
    """

    choice: int
    ids: tuple[int, ...]
    final: bool = False
    reason: str = ""
    matched: int | str | None = None
    prompt_tokens: int = -1
    cached_tokens: int = -1
    logprobs: tuple[IdLogprob, ...] = ()
    prompt_logprobs: tuple[IdLogprob, ...] = ()
    transfer: str = ""
    """What the engine wants its partner of a pair to be told, in a `complete`."""


class Wire(Protocol):
    """One contract. `service` is its full gRPC service name.

    `ping_interval_min_s` is how often its servers bear an HTTP/2 ping while they send nothing.
    """

    contract: Contract
    service: str
    abilities: Abilities
    ping_interval_min_s: float
    chunks: ChunkReader
    """Reads the plain chunks of its streams, nearly all there are; means what `read` means."""
    ends: EndReader
    """Reads the plain ends of its streams; likewise."""

    def generate(self, request: EngineRequest, *, bias_width: int | None) -> bytes:
        """Return the GenerateRequest. `bias_width` is the engine's own figure of its vocabulary."""
        ...

    def read(self, data: bytes) -> Message | None:
        """Return a stream message; None for one that says nothing. UPSTREAM_FAILED for garbage."""
        ...

    def abort(self, request_id: str) -> bytes:
        """Return the AbortRequest."""
        ...

    def healthy(self, data: bytes) -> bool:
        """Return whether a HealthCheckResponse reports health, as far as it says."""
        ...

    def card(self, model: bytes, server: bytes) -> ModelCard:
        """Return GetModelInfoResponse and GetServerInfoResponse, normalised."""
        ...

    def bias_width(self, model: bytes) -> int | None:
        """Return the vocabulary size a GetModelInfoResponse gives, believable as a bound or not."""
        ...

    def loads_request(self) -> bytes:
        """Return the GetLoadsRequest."""
        ...

    def loads(self, data: bytes) -> Sequence[Load]:
        """Return a GetLoadsResponse, one row a rank."""
        ...


@runtime_checkable
class EmbedWire(Protocol):
    """A contract whose engines embed."""

    def embed(self, request: EmbedRequest) -> bytes:
        """Return the EmbedRequest."""
        ...

    def embedded(self, data: bytes) -> Embedded:
        """Return an EmbedResponse; UPSTREAM_FAILED for garbage."""
        ...


@runtime_checkable
class MediaWire(Protocol):
    """A contract whose requests may have pictures. They were checked (`media/checks`) before it is asked."""

    def generate_media(
        self, request: EngineRequest, *, bias_width: int | None, places: Places = NOWHERE
    ) -> MessagePieces:
        """Return the GenerateRequest of a request with pictures; the bytes of tensors stay where they are.

        Those whose key is in `places` are in shared memory of that name already.
        """
        ...

    def shareable(self, request: EngineRequest) -> Mapping[str, Tensor]:
        """Return the tensors that its engine could open in shared memory, by the keys that `places` has for them."""
        ...


@runtime_checkable
class EncodeWire(Protocol):
    """A contract with a service of its own for engines that encode pictures for others, in rooms."""

    encoder_service: str
    """The full name of that service."""

    def encode(self, request: EngineRequest, *, places: Places = NOWHERE) -> MessagePieces:
        """Return the EncodeRequest of the one picture of `request`, which was checked; see `MediaWire`."""
        ...

    def accepted(self, data: bytes) -> bool:
        """Return whether an EncodeResponse says that the picture was taken; UPSTREAM_FAILED for garbage."""
        ...


T = TypeVar("T", bound=ProtoMessage)


def parsed(kind: type[T], data: bytes) -> T:
    """Return `data` as a protobuf message; UPSTREAM_FAILED if it is none."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED, "the engine sent a message that cannot be read"
        ) from error


def embed_wire(wire: Wire) -> EmbedWire:
    """Return the wire of a contract that embeds; UPSTREAM_FAILED with status 501 for any other."""
    if not isinstance(wire, EmbedWire):
        raise no_embeddings(wire.contract)
    return wire


def embedded(response: Any) -> Embedded:
    """Return an `EmbedResponse`, which two contracts share in all but package; UPSTREAM_FAILED for an empty one."""
    vector = array("f", response.embedding)
    if not vector:
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "the engine sent an empty embedding")
    if sys.byteorder == "big":
        vector.byteswap()
    return Embedded(vector.tobytes(), response.prompt_tokens)


def no_embeddings(contract: Contract) -> SmgError:
    """Return the error of a contract that has no Embed."""
    return SmgError(
        ErrorKind.UPSTREAM_FAILED,
        f"{contract.value} engines do not embed",
        code="upstream_unimplemented",
        status=501,
    )


def no_loads(contract: Contract) -> SmgError:
    """Return the error of a contract that has no GetLoads."""
    return SmgError(
        ErrorKind.UPSTREAM_FAILED,
        f"{contract.value} engines do not say how busy they are",
        code="upstream_unimplemented",
        status=501,
    )
