"""Generations in short, and what of their telling is compared."""

from collections.abc import Sequence
from typing import Any

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from support.answers.responses import decoded

BEGIN = Begin("1", "m", 5, 3)
USAGE = Usage(3, 2, 1, 1)
BROKEN = SmgError(ErrorKind.UPSTREAM_FAILED, "it broke")


def text(*deltas: str, block: int = 0) -> list[Event]:
    return [
        BlockStart(0, block, "text"),
        *(Delta(0, block, delta, 1) for delta in deltas),
        BlockEnd(0, block, "text", "".join(deltas)),
    ]


def thought(*deltas: str, block: int = 0) -> list[Event]:
    return [
        BlockStart(0, block, "reasoning"),
        *(Delta(0, block, delta, 1) for delta in deltas),
        BlockEnd(0, block, "reasoning", "".join(deltas)),
    ]


def call(*deltas: str, block: int = 0, name: str = "f", call_id: str = "call_a") -> list[Event]:
    return [
        BlockStart(0, block, "call", name, call_id),
        *(Delta(0, block, delta, 1) for delta in deltas),
        BlockEnd(0, block, "call", "".join(deltas), name, call_id),
    ]


def whole(*blocks: list[Event], reason: FinishReason = "stop") -> list[Event]:
    return [BEGIN, *(event for block in blocks for event in block), Finish(0, reason), USAGE, End()]


def types(told: Sequence[NumberedEvent]) -> list[str]:
    """Return the types of these events, without what all of them begin with."""
    return [one.type.removeprefix("response.") for one in told]


def merged(told: Sequence[NumberedEvent]) -> list[dict[str, Any]]:
    """Return the events with neighbouring deltas of one place joined, and without numbers."""
    rows: list[dict[str, Any]] = []
    for row in decoded(told):
        del row["sequence_number"]
        last = rows[-1] if rows else {}
        if row["type"].endswith(".delta") and last.get("type") == row["type"]:
            last["delta"] += row["delta"]
            last.get("logprobs", []).extend(row.get("logprobs", []))
        else:
            rows.append(row)
    return rows
