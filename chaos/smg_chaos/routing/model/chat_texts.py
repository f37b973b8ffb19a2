"""Chat texts: chats of many turns for real gateways, a smaller version of `workload`, by the clock.

A session begins under one of 12 system prompts (Zipf), has 1 to 12 turns, 5 on average, and repeats
the answers it received: each prompt is the whole chat so far. Everything but the answers follows
from the seed.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Any, Final

from smg_chaos.engine.scripts.corpus import TRAINING_TEXT
from smg_chaos.gameday.clients.stream_check import Hearing
from smg_chaos.gameday.clients.stream_client import Connect, listen

TURNS_MEAN: Final = 5
_TURNS_MAX: Final = 12
_SYSTEMS: Final = 12
_SYSTEM_WORDS: Final = (300, 1_500)
_TURN_WORDS: Final = (20, 300)
_ANSWER_TOKENS: Final = (32, 256)
_THINK_S: Final = 4.0
_STREAM_S: Final = 60.0
_WORDS: Final = tuple(sorted({word for word in TRAINING_TEXT.split() if word.isalpha()}))


@dataclass(frozen=True, slots=True)
class Turn:
    """Next message of a chat, the length its answer may have, and the pause before it."""

    text: str
    answer_tokens: int
    think_s: float


@dataclass(frozen=True, slots=True)
class Session:
    """One chat."""

    begins_s: float
    system: str
    turns: tuple[Turn, ...]


@dataclass
class Heard:
    """Results of all clients. Times are seconds."""

    ttft_s: list[float] = field(default_factory=list)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    wrong: list[str] = field(default_factory=list)


def sessions(seed: int, per_s: float, seconds: float) -> list[Session]:
    """Return the sessions that begin within so many seconds."""
    rng = Random(f"{seed}/chats")
    systems = [_words(rng, rng.randint(*_SYSTEM_WORDS)) for _ in range(_SYSTEMS)]
    shares = list(accumulate(1 / (rank + 1) for rank in range(_SYSTEMS)))
    made: list[Session] = []
    at_s = rng.expovariate(per_s)
    while at_s < seconds:
        (system,) = rng.choices(systems, cum_weights=shares)
        count = 1
        while count < _TURNS_MAX and rng.random() >= 1 / TURNS_MEAN:
            count += 1
        made.append(Session(at_s, system, tuple(_turn(rng) for _ in range(count))))
        at_s += rng.expovariate(per_s)
    return made


def _turn(rng: Random) -> Turn:
    text = _words(rng, rng.randint(*_TURN_WORDS))
    return Turn(text, rng.randint(*_ANSWER_TOKENS), rng.expovariate(1 / _THINK_S))


def _words(rng: Random, count: int) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


async def talk(
    session: Session,
    connect: Connect,
    model: str,
    heard: Heard,
    *,
    now_s: Callable[[], float],
    end_s: float,
) -> None:
    """Run one chat, turn by turn, until it ends or no further turn may begin; stops at the first
    error.
    """
    messages = [{"role": "system", "content": session.system}]
    for turn in session.turns:
        if now_s() >= end_s:
            return
        messages.append({"role": "user", "content": turn.text})
        asked: dict[str, Any] = {
            "model": model,
            "messages": messages,
            "max_tokens": turn.answer_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        one = Hearing(now_s())
        await listen(connect, asked, now_s=now_s, limit_s=_STREAM_S, hearing=one)
        if one.errors or one.broken or not one.texts.get(0) or len(one.usages) != 1:
            heard.wrong.append("; ".join([*one.errors, one.broken, f"usage {one.usages}"]))
            return
        heard.ttft_s.append(one.spoken_s - one.begun_s)
        usage: Any = one.usages[0]
        heard.prompt_tokens += usage["prompt_tokens"]
        details = usage.get("prompt_tokens_details") or {}
        heard.cached_tokens += details.get("cached_tokens") or 0
        messages.append({"role": "assistant", "content": one.texts[0]})
        if turn is session.turns[-1] or now_s() + turn.think_s >= end_s:
            return
        await asyncio.sleep(turn.think_s)
