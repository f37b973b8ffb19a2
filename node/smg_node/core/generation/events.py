"""Events of a generation, independent of dialects: begin, blocks, deltas, finish, usage, end, fail.

    stream = Begin { block } ( { Finish } Usage End | Fail )
    block  = BlockStart { Delta } BlockEnd

Blocks of different choices interleave; within one choice they follow each other. Every block that
starts is ended, also on failure. `Delta` is the hot one: as a struct it costs 0.06 us to make, where a
slotted dataclass costs 0.12, or 0.5 if it is frozen; and each such class takes 12 KB less. What cannot be part of
a cycle is not looked after by the collector of garbage, which otherwise wakes up for every 700 tokens.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import Opaque

BlockKind: TypeAlias = Literal["text", "reasoning", "call", "refusal"]
"""A refusal is text in which a model of a vendor declines to answer, and which its API keeps apart."""
FinishReason: TypeAlias = Literal[
    "stop", "length", "tool_calls", "content_filter", "refusal", "pause", "context_window"
]
"""Only vendors' models end by the last three: they refused; their server's tools have not ended, and the answer is
to be sent again; the context was full before `max_tokens`.
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

    `opaque` is what its vendor wants back with it, as far as that is known already.
    """

    choice: int
    block: int
    kind: BlockKind
    name: str = ""
    call_id: str = ""
    opaque: tuple[Opaque, ...] = ()


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
    """A block is over; `text` is the whole of it. `opaque` is what its vendor wants back with it."""

    choice: int
    block: int
    kind: BlockKind
    text: str
    name: str = ""
    call_id: str = ""
    opaque: tuple[Opaque, ...] = ()


class Finish(msgspec.Struct, frozen=True, gc=False):
    """A choice is over. `matched` is the stop string or stop id that ended it, if one did."""

    choice: int
    reason: FinishReason
    matched: str | int | None = None


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What the generation cost, in tokens; prompts are counted once whatever `n` is.

    Cached and written tokens are parts of the prompt's. `cache_write_tokens` were written into a vendor's cache,
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


Event: TypeAlias = Begin | PromptEcho | BlockStart | Delta | BlockEnd | Finish | Usage | End | Fail
