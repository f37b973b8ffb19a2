"""Target figures: how soon and how fast one model at a vendor answers. Pure.

    expected seconds of an answer = p50 of the time to its first token  +  tokens of it / tokens a second

A vendor says nothing of its load, so all is measured at the answers. What is five minutes old counts half. The median
is that of the last 32 answers, each with its weight; rates are sums of tokens and seconds that fade alike. An answer
that came in one piece says only how long it took: what is known of the first token is taken off.
"""

from collections import deque
from typing import Final

HALF_LIFE_S: Final = 300.0
SAMPLES_MAX: Final = 32
ANSWER_TOKENS: Final = 256.0
"""Tokens of an answer, where none has ended yet."""
_SECONDS_MIN: Final = 1e-4
"""An answer takes longer per token; a clock may not say so."""


class TargetFigures:
    """What is known of one target. `first_s` and `token_s` are None until an answer has shown them."""

    __slots__ = (
        "_answers",
        "_at_s",
        "_firsts",
        "_seconds",
        "_timed",
        "_tokens",
        "first_s",
        "token_s",
    )

    def __init__(self) -> None:
        self.first_s: float | None = None
        """Half of the answers began sooner."""
        self.token_s: float | None = None
        """Seconds a token takes after the first."""
        self._firsts: deque[tuple[float, float]] = deque(maxlen=SAMPLES_MAX)
        """Seconds to the first token, and when."""
        self._answers = 0.0
        self._tokens = 0.0
        self._timed = 0.0
        self._seconds = 0.0
        self._at_s = 0.0

    @property
    def answers(self) -> tuple[float, float]:
        """Answers and their tokens, as they count now: the second by the first is what an answer has."""
        return self._answers, self._tokens

    def streamed(self, first_s: float, rest_s: float, tokens: int, now_s: float) -> None:
        """Count in an answer that came token by token; `rest_s` is from its first to its last."""
        self._first(first_s, now_s)
        self._fade(now_s)
        self._count(tokens)
        if tokens > 1:
            self._time(tokens - 1, rest_s)

    def whole(self, took_s: float, tokens: int, now_s: float) -> None:
        """Count in an answer that came in one piece."""
        self._fade(now_s)
        self._count(tokens)
        if tokens > 0:
            self._time(tokens, took_s - (self.first_s or 0.0))

    def silent(self, waited_s: float, now_s: float) -> None:
        """Count in a call that was given up after so long without a token."""
        self._first(waited_s, now_s)

    def _first(self, first_s: float, now_s: float) -> None:
        self._firsts.append((max(0.0, first_s), now_s))
        weighed = sorted((one_s, _weight(now_s - at_s)) for one_s, at_s in self._firsts)
        half = sum(weight for _, weight in weighed) / 2
        for one_s, weight in weighed:
            half -= weight
            if half <= 0:
                self.first_s = one_s
                return

    def _fade(self, now_s: float) -> None:
        kept = _weight(now_s - self._at_s)
        self._answers *= kept
        self._tokens *= kept
        self._timed *= kept
        self._seconds *= kept
        self._at_s = now_s

    def _count(self, tokens: int) -> None:
        self._answers += 1
        self._tokens += tokens

    def _time(self, tokens: int, seconds: float) -> None:
        self._timed += tokens
        self._seconds += max(seconds, tokens * _SECONDS_MIN)
        self.token_s = self._seconds / self._timed


def _weight(age_s: float) -> float:
    return float(0.5 ** (max(0.0, age_s) / HALF_LIFE_S))
