"""History knobs: retention, how much of a chat is read again, background responses."""

from typing import Literal

from pydantic import Field

from smg_node.config.schema.declaration import Section, choice, number

_DAYS_WHY = "0 keeps it for ever; a century is longer than any of us plans"


class Retention(Section):
    """How long history is kept."""

    responses_days: int = number(
        30,
        "Days a response is kept after it was complete.",
        low=0,
        high=36_500,
        why=_DAYS_WHY,
    )
    conversations_days: int = number(
        0,
        "Days a conversation is kept with its items after something was last appended to it.",
        low=0,
        high=36_500,
        why=_DAYS_WHY,
    )
    idempotency_s: int = number(
        86_400,
        "Seconds for which an Idempotency-Key answers with the response that was made under it.",
        low=60,
        high=2_592_000,
        why="a client that tries again does so within minutes; each key is a row for as long",
    )
    sweep_s: float = number(
        60,
        "Seconds between two looks for what is over; one node does it for all that share a store.",
        low=1,
        high=86_400,
        why="what is over is not shown from that moment on, swept or not",
    )


class History(Section):
    """How much of a chat is read when it goes on."""

    items_max: int = number(
        2_000,
        "Most responses of a chain, or items of a conversation, that are read: the newest.",
        low=1,
        high=100_000,
        why="one at least; a prompt of more than some thousand items fits no model",
    )
    bytes_max: int = number(
        16 << 20,
        "Most bytes of them.",
        low=1 << 10,
        high=1 << 30,
        why="a kibibyte holds a question; all of it is in memory while a prompt is made",
    )


class Background(Section):
    """Responses that are made while nobody waits for them."""

    per_node_max: int = number(
        1_024,
        "Most of them at a time on this node, with streams that go on without their clients.",
        low=1,
        high=100_000,
        why="each holds what it has said so far, and up to 8 MiB of events while the store is away",
    )
    per_tenant_max: int = number(
        128,
        "Most of them at a time of one tenant on this node.",
        low=1,
        high=100_000,
        why="one tenant leaves room for others; more than per_node_max means no limit of its own",
    )
    deadline_s: float = number(
        3_600,
        "Seconds one of them may take; then it has failed.",
        low=1,
        high=604_800,
        why="a second is for tests; a week is longer than any engine stays up for one answer",
    )


class Responses(Section):
    """How the Responses API answers."""

    reasoning_events: Literal["sdk", "open"] = choice(
        "sdk",
        "Names of the events of reasoning: `sdk` as OpenAI's clients know them (response.reasoning_text.delta),"
        " `open` as Open Responses has them (response.reasoning.delta).",
    )
    resume_grace_s: float = number(
        0,
        "Seconds a stored stream goes on without its client, who may pick it up again; 0 ends it with its client.",
        low=0,
        high=3_600,
        why="it costs a lease and a log from its beginning; a client that comes back does so within seconds",
    )
    event_log_ttl_s: float = number(
        600,
        "Seconds the events of a response are kept after its end, for streams that are picked up again.",
        low=1,
        high=604_800,
        why="a client that comes back does so within minutes; the response itself is kept much longer",
    )
    background: Background = Field(default_factory=Background)


class Interactions(Section):
    """How the Interactions API answers."""

    checkpoint_ms: int = number(
        250,
        "Milliseconds between two checkpoints in a stored stream, from which a client goes on by itself after a break;"
        " 0 is one with every write, -1 is none.",
        low=-1,
        high=60_000,
        why="each has some 300 bytes; a client whose last event is none gets an error when its stream breaks",
    )
    resume_grace_s: float = number(
        5,
        "Seconds a stored stream with checkpoints goes on without its client.",
        low=0,
        high=3_600,
        why="a client that goes on by itself asks again at once; one that left for good costs so much generation",
    )
