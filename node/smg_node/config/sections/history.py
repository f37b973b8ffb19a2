"""Knobs of what is remembered of a chat, for how long, and how much of it is read again."""

from typing import Literal

from smg_node.config.declare import Section, choice, number

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
        "Days a conversation is kept with its items after it was made.",
        low=0,
        high=36_500,
        why=_DAYS_WHY,
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


class Responses(Section):
    """How the Responses API answers."""

    reasoning_events: Literal["sdk", "open"] = choice(
        "sdk",
        "Names of the events of reasoning: `sdk` as OpenAI's clients know them (response.reasoning_text.delta),"
        " `open` as Open Responses has them (response.reasoning.delta).",
    )
