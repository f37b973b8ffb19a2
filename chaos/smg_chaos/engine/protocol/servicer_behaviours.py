"""Servicer behaviours: every way in which one engine's servicer can differ from another's, row by
row.

The values are in `servicers`. Nothing else in this package asks which contract it serves; it asks
the behaviours, so a new engine is a new column and not a new branch.
"""

from dataclasses import dataclass
from enum import Enum, auto


class Flavour(Enum):
    """A contract together with the servicer that serves it."""

    MLX = "mlx"
    VLLM = "vllm"
    VLLM_RUST = "vllm-rust"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    TOKENSPEED = "tokenspeed"


class AfterChunks(Enum):
    """Which ids the complete message of a streamed choice carries."""

    NOTHING = auto()
    LAST_DELTA = auto()
    ALL = auto()


class EmptyChunks(Enum):
    """Whether a chunk without ids is sent."""

    SENT = auto()
    FIRST_ONLY = auto()
    NEVER = auto()


class Coalesce(Enum):
    """When tokens share a chunk."""

    NEVER = auto()
    WHEN_READER_LAGS = auto()


class Aborted(Enum):
    """Effect of an Abort on the stream it aborts."""

    ENDS_WITHOUT_COMPLETE = auto()
    EMPTY_COMPLETE = auto()
    LATE_COMPLETE = auto()
    FULL_COMPLETE = auto()
    NEVER_ENDS = auto()
    RPC_ERROR = auto()


class Bad(Enum):
    """Effect of a request that should never have been sent."""

    ACCEPTED = auto()
    GARBAGE = auto()
    """Accepted, and noise comes out."""
    REFUSED = auto()
    """INVALID_ARGUMENT."""
    EXITS = auto()
    """The engine's process ends."""
    KILLS = auto()
    """The engine behind the servicer is dead; every call ends INTERNAL from now on."""
    WEDGES = auto()
    """Nobody advances until the caller gives up."""
    ONE_TOKEN = auto()
    EMPTY = auto()
    """No token, one empty chunk, `length`."""


class Twin(Enum):
    """Effect of a second request under an id in use."""

    INDEPENDENT = auto()
    REFUSED = auto()
    """ALREADY_EXISTS."""
    MIXED = auto()
    """The second stream gets the tokens of both; the first never ends."""


class KvEvents(Enum):
    """KV events that a subscriber gets."""

    NONE = auto()
    LIVE = auto()
    WITH_MEMORY = auto()


class AnswerBlocks(Enum):
    """When the blocks of an answer are published."""

    WHEN_FULL = auto()
    AT_END = auto()


class LoadRecords(Enum):
    """How load travels on the KV-event stream."""

    NONE = auto()
    AFTER_FIRST_BATCH = auto()
    FROM_START = auto()


@dataclass(frozen=True, slots=True)
class Manners:
    """Behaviours of one servicer, in the order of the engines' specification."""

    flavour: Flavour
    # The stream.
    counts_per_chunk: bool
    """Chunks carry their own token count rather than the running total."""
    after_chunks: AfterChunks
    total_in_complete: bool
    """The complete message of a stream counts all tokens rather than the last delta."""
    coalesce: Coalesce
    end_ids_in_output: bool
    """Else the ids that ended the answer appear only where the request asks to keep them."""
    end_ids_counted: bool
    matched_at_end: bool
    """The end-of-text id is reported as matched; a further id of the generation config always is."""
    stop_strings: bool
    holds_back: bool
    """Tokens that may begin a stop string wait until it is known whether they do."""
    choices: bool
    completes_together: bool
    """With several choices, every complete message waits for the last choice."""
    indexes_whole: bool
    """Complete messages of an answer that is not streamed say which choice they are."""
    prefills_once: bool
    reports_cached: bool
    names_request: bool
    empty_chunks: EmptyChunks
    """What happens to a chunk whose only id was trimmed away."""
    logprob_placeholders: bool
    """Alternatives are sent empty, one entry a token, when none were asked for."""
    logprobs_need_top: bool
    """Without alternatives there are no log probabilities at all."""
    zeros_are_literal: bool
    """An unset penalty is a penalty of zero, and what comes out is noise."""
    # Ends.
    stop_string_reason: str
    tool_reason: str
    abort_reason: str
    # Abort.
    aborted: Aborted
    aborted_overrun: int
    """At most that many tokens still come after an Abort took effect."""
    abort_answers: bool | None
    """`success` for an unknown id, or None where the answer has no such field."""
    # Requests that kill.
    no_ids: Bad
    unknown_id: Bad
    long_prompt: Bad
    prompt_reserve: int
    """The longest prompt is that much shorter than the context."""
    no_tokens: Bad
    cold_temperature: Bad
    """A temperature below zero."""
    wide_top_p: Bad
    """A top_p above one."""
    greedy_choices: Bad
    """Several choices at temperature zero."""
    logprobs_max: int | None
    text_prompt: Bad
    twin: Twin
    clamps: bool
    """prompt + max_tokens over the context is cut rather than run."""
    room_rank: bool
    """A prompt for a room is worked off by the rank that is the room's remainder, and by no other."""
    # Answers about itself.
    deep_health: bool
    health_text: str
    # KV events and loads.
    kv_events: KvEvents
    kv_block: int
    answer_blocks: AnswerBlocks
    cleared_at_once: bool
    kv_first_sequence: int
    kv_group: bool
    kv_tiers: bool
    kv_rank: bool
    kv_copies: bool
    """A block that is computed twice is stored, and removed, twice."""
    kv_split: bool
    """Every event is a batch of its own, without a time."""
    load_records: LoadRecords
    load_speeds: bool
    """Throughput and hit rate are filled in."""
    load_queued: bool
    """Queued token-work is told; elsewhere it is absent, which is not zero."""
    load_retained: bool
    """Usage counts retained cache, and active usage stands beside it."""
    load_sections: bool
    """Memory, queues and disaggregation come along."""
    load_silence: bool
    """The engine's silence, whether it reports steps, and pending prefill are told."""
    flush_refusal: str
    flush_grace_s: float
    flush_text: str
