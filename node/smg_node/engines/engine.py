"""Engine: interface of one inference engine's endpoint, its requests, model card, load and
abilities.

An `Engine` is one endpoint behind one contract. It takes token ids and gives token ids; text, stop
strings, parsing and history are ours. All failures are `SmgError`;
`engines/transport/grpc_status.py` maps the transport's status codes to kinds by one total table.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import msgspec

from smg_node.core.generation.request import Sampling, TokenIds
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.engines.chunk_stream import ChunkStream
from smg_node.engines.disaggregation import Pairing, Role, Room
from smg_node.engines.kv_events import KvBatch
from smg_node.engines.load import Load

if TYPE_CHECKING:
    # Loaded with the first picture.
    from smg_node.media.engine_media import Dtype, EngineMedia


class Contract(Enum):
    """The published gRPC service, or the HTTP API, that an engine speaks."""

    SGLANG = "sglang"
    VLLM = "vllm"
    TRTLLM = "trtllm"
    MLX = "mlx"
    TOKENSPEED = "tokenspeed"
    OPENAI = "openai"
    """Not gRPC: the HTTP API that most servers share; requests are relayed to it as they came."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """Features that a contract has natively; others are done by this node or refused with a clear
    error.
    """

    stop_strings: bool
    native_n: bool
    seed: bool
    min_tokens: bool
    logit_bias: bool
    logprobs_max: int
    prompt_logprobs: bool
    constraints: frozenset[str]
    """Constraint kinds (see core.request) the contract has a field for."""
    adapters: bool
    penalties: bool
    loads: bool
    kv_events: bool
    embeds: bool = False
    loads_apart_s: float = 0.0
    """How long to wait, at least, between two questions how busy it is."""


_NO_LIMITS: Final[Mapping[str, int]] = MappingProxyType({})
OWN_MODEL: Final = "own_model"
"""What the card of a target that stands for own workers calls their model."""


_FILES_ONLY: Final = frozenset({"encoded"})


class MediaCard(msgspec.Struct, frozen=True):
    """An engine's description of the media it takes, by its metadata.

    `ways` are the forms it takes: "tensors", "references", "encoded". `device_normalizes`: 8-bit values are to be sent
    as they are, because it normalises them itself. `dtype` is that of the main tensor otherwise. `items_max` by
    modality ("image", "video", "audio"), absent: no limit known. `tokens_max` bounds the features of one item, None if unsaid.
    `shared_memory` is the namespace in which it can open tensors by name, "" for none. `schemes` of references.
    `rules` stands for the files of its image processor, "" where nothing is known of any: the fleet notes it.
    `video_tensors`: engines of its contract were seen to take tensors of videos as well as those of pictures.
    """

    ways: frozenset[str]
    device_normalizes: bool = False
    dtype: "Dtype" = "float32"
    items_max: Mapping[str, int] = _NO_LIMITS
    tokens_max: int | None = None
    shared_memory: str = ""
    schemes: frozenset[str] = frozenset()
    rules: str = ""
    video_tensors: bool = False

    @property
    def told(self) -> tuple[object, ...]:
        """What it says, in an order that is the same everywhere; empty where its contract alone says all of it."""
        if self.ways == _FILES_ONLY:
            return ()
        return (
            *sorted(self.ways),
            self.device_normalizes,
            self.dtype,
            *sorted(self.items_max.items()),
            self.tokens_max,
            self.shared_memory,
            *sorted(self.schemes),
        )


@dataclass(frozen=True, slots=True)
class ModelCard:
    """An engine's description of the model it serves, with its known untruths already removed.

    `vocabulary` and `context` are None where the engine's figure cannot be believed or is missing.
    `prompt_max` is the longest prompt it takes, in tokens, if it says so. `sampling_defaults` are the
    model's own (temperature, top_p, top_k, min_p, repetition_penalty). `server` is the flattened
    server information, values as strings, without secrets.
    """

    contract: Contract
    model: str
    model_path: str
    context: int | None
    prompt_max: int | None
    vocabulary: int | None
    eos_ids: tuple[int, ...]
    sampling_defaults: Mapping[str, float] = field(default_factory=dict)
    server_version: str = ""
    server: Mapping[str, str] = field(default_factory=dict)
    block_size: int | None = None
    running_max: int | None = None
    abilities: Abilities | None = None
    """Where this server can do less than its contract; None: all of it."""
    role: Role = "regular"
    """What it was started as."""
    pairing: Pairing | None = None
    """How it works on one request with another engine; None: it cannot."""
    instance: str = ""
    """What no other process has, the same whichever way it is reached; "" where a contract has nothing of the kind."""
    media: MediaCard | None = None
    """What it says of pictures; None: it takes none."""
    ranks: int = 1
    """Data-parallel ranks that a request can be sent to, each with its own cache and queue."""

    @property
    def owner(self) -> str:
        """Who serves the model: the provider's name, where it is at a vendor, else what the engine speaks."""
        return self.server.get("provider") or self.contract.value


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """One text to be embedded, in token ids; `request_id` is ours and new for every attempt."""

    request_id: str
    ids: TokenIds
    timeout_s: float
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Embedded:
    """One embedding as an engine returned it: 32-bit floats, little-endian, one after the other."""

    vector: bytes
    prompt_tokens: int


_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class EngineRequest(msgspec.Struct, frozen=True, gc=False):
    """One prompt for one engine: checked, complete, in token ids.

    `request_id` is ours and new for every attempt. `sampling.max_tokens` is never None here and
    `sampling.stop` holds only strings the pipeline matches as well. `timeout_s` is what is left.
    """

    request_id: str
    ids: TokenIds
    sampling: Sampling
    stream: bool
    timeout_s: float
    headers: Mapping[str, str] = _NO_HEADERS
    silences: int = 0
    """Calls for the same words that ended because nothing came: the next one bears less of it."""
    room: Room | None = None
    """Where the engine meets its partner of a pair, for contracts whose partners look for each other."""
    transfer: str = ""
    """What the engine is told of its partner, a JSON object that nobody here reads; "" for nothing."""
    rank: int | None = None
    """The data-parallel rank it is for; None: the engine chooses."""
    packed: bytes | None = None
    """`ids` as protobuf has them inside of a packed field, where that is known."""
    media: "EngineMedia | None" = None
    """The pictures of the prompt, finished for this engine."""
    rooms: tuple[Room, ...] = ()
    """Where other engines hand its encoded pictures over, one room each, in their order; () if nobody does."""
    pixels: bool = True
    """Whether the values of its pictures are sent along: others may have encoded them."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Result of the prefill engine of a pair once the prompt is worked off. Counts are -1 where it
    does not say.
    """

    prompt_tokens: int = -1
    cached_tokens: int = -1
    prompt_logprobs: tuple[IdLogprob, ...] = ()
    transfer: str = ""
    """What the second engine is to be told, a JSON object; "" for nothing."""
    shared: bool = False
    """Whether tensors of its prompt went through shared memory."""


@runtime_checkable
class Encoder(Protocol):
    """An engine that may have been started to encode pictures for others."""

    async def encode(self, request: EngineRequest) -> None:
        """Encode the one picture of `request` for another engine; return when that engine may rely on it.

        In a room (`room.number`) that is when the picture has been accepted, else when it lies in the store. `ids` are
        those of its place. SmgError as from `Engine.generate`. Cancelling cancels the call at the engine.
        """
        ...


class Engine(Protocol):
    """One engine endpoint behind one contract."""

    contract: Contract
    abilities: Abilities

    async def serving(self, timeout_s: float) -> bool:
        """Whether the standard health service says SERVING for this contract's service.

        SmgError if it cannot be asked, or with what an HTTP server says instead, in words for operators.
        """
        ...

    async def healthy(self, timeout_s: float) -> bool:
        """Whether the contract's own HealthCheck is content; may run a token through the engine."""
        ...

    async def card(self, timeout_s: float) -> ModelCard:
        """Return GetModelInfo and GetServerInfo, normalised."""
        ...

    async def tokenizer(self, timeout_s: float) -> TokenizerBundle:
        """Fetch the tokenizer by GetTokenizer: SHA-256 checked, at most 256 MiB, safely unzipped."""
        ...

    async def loads(self, timeout_s: float) -> Sequence[Load]:
        """Return the present load per rank; UPSTREAM_FAILED with status 501 where there is no RPC."""
        ...

    def kv_events(self, start: int) -> "AsyncGenerator[Sequence[KvBatch], None]":
        """Stream the changes of its prefix cache, from sequence `start` on; 0 is all it has to
        tell.

        Each item is what one wake-up brought, at least one batch. Goes on until it is closed or the
        engine ends it: normally, or with an `SmgError`: code `CURSOR_CODE` or `LOST_CODE` of
        `kv_events`, status 501 where there is no such RPC, UPSTREAM_FAILED for anything broken.
        """
        ...

    def generate(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        """Stream the answer: each item is what one wake-up brought, at least one chunk.

        Ends normally only after every choice has had its `finish`. Otherwise raises `SmgError`:
        UPSTREAM_TIMEOUT past `timeout_s` or the stall limit, UPSTREAM_FAILED for anything broken
        (also an RPC that ends OK without its finish), INVALID_REQUEST where the engine refuses the
        input. Closing the iterator cancels the call at the engine.
        """
        ...

    def call(self, request: EngineRequest) -> ChunkStream:
        """Begin the same call for a reader that gets chunks within the wake-up that brought them.

        It is under way when this returns, and belongs to the caller. SmgError where it cannot
        begin.
        """
        ...

    async def prefill(self, request: EngineRequest) -> Prefilled:
        """Work a prompt off for another engine; return when that one may take it over, or has.

        The request says with `room` or `transfer` how it is handed over, and one token is all that is drawn.
        SmgError as from `generate`. Cancelling cancels the call at the engine.
        """
        ...

    async def embed(self, request: EmbedRequest) -> Embedded:
        """Return the embedding of one text; UPSTREAM_FAILED with status 501 where there is no RPC."""
        ...

    async def abort(self, request_id: str) -> None:
        """Ask the engine to drop a request, in addition to cancelling; never waits for its stream."""
        ...

    def retune(self, *, first_event_s: float, stall_s: float) -> None:
        """Allow this much silence before and after the first message, in calls that begin from now
        on.
        """
        ...

    async def close(self) -> None:
        """Close all connections; running streams end with UPSTREAM_FAILED `worker_removed`."""
        ...
