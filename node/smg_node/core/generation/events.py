"""Events of a generation, independent of dialects: begin, blocks, deltas, runs of tools, finish, usage, end, fail.

    stream = Begin { Listed } { block | run } ( { Finish } Usage End | Fail )
    block  = BlockStart { Delta } BlockEnd
    run    = RunStart { RunNote } RunEnd, of a call that has ended

Blocks of different choices interleave; within one choice they follow each other. Every block that
starts is ended, also on failure. Runs are those of tools on this node's side: each belongs to one block, the call,
whose `owner` says so from its start; runs overlap with each other and with later blocks of the same pass, and every
one that starts is ended before the choice finishes, also on failure. `Delta` is the hot one: as a struct it costs 0.06 us to make, where a
slotted dataclass costs 0.12, or 0.5 if it is frozen; and each such class takes 12 KB less. What cannot be part of
a cycle is not looked after by the collector of garbage, which otherwise wakes up for every 700 tokens.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.tool_owner import ToolOwner

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ListedTool, RunResult

BlockKind: TypeAlias = Literal["text", "reasoning", "call", "refusal"]
"""A refusal is text in which a model of a vendor declines to answer, and which its API keeps apart."""
FinishReason: TypeAlias = Literal[
    "stop", "length", "tool_calls", "content_filter", "refusal", "pause", "context_window"
]
"""Only vendors' models end by `refusal` and `context_window`: they refused; the context was full before `max_tokens`.
By `pause`: tools on the vendor's or this node's side have had as many rounds as one answer may, and it is to be sent
again.
"""

UNSAID: Final = 1.0
"""The temperature and the `top_p` that every engine draws with where nobody says anything: the model's own odds."""


class TopLogprob(msgspec.Struct, frozen=True, gc=False):
    """One alternative at a position: its id, text, exact bytes and log probability."""

    token_id: int
    token: str
    raw: bytes
    logprob: float


class TokenLogprob(msgspec.Struct, frozen=True, gc=False):
    """The token drawn at a position and its best alternatives, most likely first.

    `logprob` is None where it has no meaning (the first token of a prompt); -9999.0 stands for an
    engine's "not known".
    """

    token_id: int
    token: str
    raw: bytes
    logprob: float | None
    top: tuple[TopLogprob, ...]


class Begin(msgspec.Struct, frozen=True, gc=False):
    """A generation starts; sent once, when its first token or its end is known.

    `id` is 32 hex digits; a presenter puts its dialect's prefix before it. `prompt_tokens` counts
    all prompts together. `temperature` and `top_p` are what it is drawn with, given by the client
    or not. `room` is how long the answer may be where the context leaves less than was asked for.
    """

    id: str
    model: str
    created_s: int
    prompt_tokens: int
    fingerprint: str | None = None
    temperature: float = UNSAID
    top_p: float = UNSAID
    room: int | None = None


class BlockStart(msgspec.Struct, frozen=True, gc=False):
    """A block of one kind starts in a choice; `block` counts up from 0 within the choice.

    `opaque` is what its vendor wants back with it, as far as that is known already. `owner` is whose tool a call is;
    None for the client's own. `name` is the name that the model sees. `apart`: the model called something before it
    that the answer does not show. `round` counts the passes of a model that may call tools on this side: blocks of one
    pass have the same, and stay together when a client sends them back; 0 for what was called before them.
    """

    choice: int
    block: int
    kind: BlockKind
    name: str = ""
    call_id: str = ""
    opaque: tuple[Opaque, ...] = ()
    owner: ToolOwner | None = None
    apart: bool = False
    round: int = 0


class Delta(msgspec.Struct, frozen=True, gc=False):
    """More text of an open block. `tokens` are the tokens generated since the choice's last delta.

    `logprobs` travels with the text it belongs to and is empty unless asked for; `ids` likewise.
    """

    choice: int
    block: int
    text: str
    tokens: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()
    ids: tuple[int, ...] = ()


class BlockEnd(msgspec.Struct, frozen=True, gc=False):
    """A block is over; `text` is the whole of it. `opaque` is what its vendor wants back with it.

    `annotations` are those of a text, in the form of Responses (`url_citation`), indices in characters. `apart` and `round`
    are as in its start.
    """

    choice: int
    block: int
    kind: BlockKind
    text: str
    name: str = ""
    call_id: str = ""
    opaque: tuple[Opaque, ...] = ()
    owner: ToolOwner | None = None
    annotations: tuple[Mapping[str, Any], ...] = ()
    apart: bool = False
    round: int = 0


class Listed(msgspec.Struct, frozen=True):
    """The tools of a server that the request names, or why they cannot be had. Sent after Begin, before any block."""

    server: str
    tools: "tuple[ListedTool, ...]" = ()
    error: str = ""


class RunStart(msgspec.Struct, frozen=True, gc=False):
    """The run of a call of ours starts; `block` is that of the call, which has ended."""

    choice: int
    block: int


class RunNote(msgspec.Struct, frozen=True, gc=False):
    """A run goes on: what its server says of its progress, and how much of it is done, None where that is not known."""

    choice: int
    block: int
    message: str = ""
    progress: float | None = None
    total: float | None = None


class RunEnd(msgspec.Struct, frozen=True):
    """A run is over. `spoken`: the pass that called it had ended before, so that no block of that pass follows."""

    choice: int
    block: int
    result: "RunResult"
    spoken: bool = False


class Finish(msgspec.Struct, frozen=True, gc=False):
    """A choice is over. `matched` is the stop string or stop id that ended it, if one did.

    `rounds` is how many passes its model has had where it ends because there may be no more of them; 0 otherwise.
    """

    choice: int
    reason: FinishReason
    matched: str | int | None = None
    rounds: int = 0


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What the generation cost, in tokens; prompts are counted once whatever `n` is.

    Cached and written tokens, and those of pictures, are parts of the prompt's. `cache_write_tokens` were written into a vendor's cache,
    `cache_write_long_tokens` of them for an hour. `service_tier` is the vendor's name of what was served, "" where it
    says none, `server_tools` how often it used which of its own tools. `cost_pico` is its own bill for the call, in
    millionths of a millionth of a dollar; None where it says none, as nearly all do.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_long_tokens: int = 0
    service_tier: str = ""
    server_tools: tuple[tuple[str, int], ...] = ()
    cost_pico: int | None = None
    image_tokens: int = 0


class End(msgspec.Struct, frozen=True, gc=False):
    """The generation is complete."""


class Fail(msgspec.Struct, frozen=True):
    """The generation broke; nothing follows."""

    error: SmgError


class PromptEcho(msgspec.Struct, frozen=True, gc=False):
    """A prompt given back before its choices' first block, for `echo` and `prompt_logprobs`.

    Sent at most once per choice, directly after Begin. `logprobs` is empty unless asked for.
    """

    choice: int
    text: str
    ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()


Event: TypeAlias = (
    Begin
    | PromptEcho
    | Listed
    | BlockStart
    | Delta
    | BlockEnd
    | RunStart
    | RunNote
    | RunEnd
    | Finish
    | Usage
    | End
    | Fail
)
