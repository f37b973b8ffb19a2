"""Pass outcomes: the outcomes of an answer's passes, as the one outcome of its request. Pure.

A request is one request, however many passes its model took: metrics and usage count it once, as what it came to. Its
tokens are those of all passes; what engines here are paid for is told pass by pass, for prices depend on the length of
a prompt. The time between two passes, in which tools ran and the next prompt was read, is none of the model's speed.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from smg_node.core.generation.outcome import Outcome


def merged_outcome(passes: Sequence[Outcome], *, gone: bool, ended_s: float) -> Outcome:
    """Return the outcome of a request of these passes, one at least, that ended at `ended_s`.

    `gone`: its client left, be it while a tool ran.
    """
    assert passes, "a request that has not entered has no outcome"
    last = passes[-1]
    if gone and last.kind == "ok":
        last = msgspec.structs.replace(
            last, kind="client_gone", error_code="client_gone", status=499
        )
    ended_s = max(ended_s, last.ended_s)
    first_token_s, paused_s = _speech(passes, ended_s)
    if len(passes) == 1:
        return msgspec.structs.replace(last, passes=1, ended_s=ended_s, paused_s=paused_s)
    oddities: Counter[str] = Counter()
    for one in passes:
        oddities.update(one.oddities)
    return msgspec.structs.replace(
        last,
        prompt_tokens=sum(one.prompt_tokens for one in passes),
        cached_tokens=sum(one.cached_tokens for one in passes),
        completion_tokens=sum(one.completion_tokens for one in passes),
        received_s=passes[0].received_s,
        first_token_s=first_token_s,
        ended_s=ended_s,
        attempts=max(one.attempts for one in passes),
        continuations=sum(one.continuations for one in passes),
        oddities=dict(oddities),
        bills=tuple(bill for one in passes for bill in one.bills),
        split=next((one.split for one in reversed(passes) if one.split), ""),
        passes=len(passes),
        pass_tokens=tuple(
            (one.prompt_tokens, one.cached_tokens, one.completion_tokens)
            for one in passes
            if not one.bills and one.is_paid
        ),
        paused_s=paused_s,
    )


def _speech(passes: Sequence[Outcome], ended_s: float) -> tuple[float | None, float]:
    """Return when the model said its first token, None for never, and how long it did not speak from there to the end."""
    spoken = [(one.first_token_s, one.ended_s) for one in passes if one.first_token_s is not None]
    if not spoken:
        return None, 0.0
    first_s = spoken[0][0]
    speaking_s = sum(end_s - begin_s for begin_s, end_s in spoken)
    return first_s, max(0.0, ended_s - first_s - speaking_s)
