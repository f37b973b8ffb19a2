"""Call ledger: one engine's record of calls and their tokens, to check a gateway's limits against.

Two lines of JSON for each Generate, both with wall-clock microseconds: `came` when it came in,
however it ended, and `ended` with the tokens that were made. A client that numbers its requests by
their `seed` can be matched with what arrived for it, for any gateway in between.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from smg_chaos.engine.protocol.generate_request import Asked


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the ledger. `seed` -1: none was given; `most` -1: as many tokens as the context
    allows.
    """

    did: Literal["came", "ended"]
    at_us: int
    worker: int
    request: str
    seed: int = -1
    prompt: int = 0
    most: int = -1
    made: int = 0


class Account:
    """Writes the ledger of one engine, the `worker`-th of its process; `write` takes whole
    lines.
    """

    def __init__(self, write: Callable[[str], object], worker: int) -> None:
        self._write = write
        self._worker = worker

    def came(self, asked: Asked, at_s: float) -> None:
        """Note a call that comes in."""
        self._note("came", asked, 0, at_s)

    def ended(self, asked: Asked, made: int, at_s: float) -> None:
        """Note that a call is over, for which so many tokens were made."""
        self._note("ended", asked, made, at_s)

    def _note(self, did: Literal["came", "ended"], asked: Asked, made: int, at_s: float) -> None:
        line = Line(
            did,
            round(at_s * 1e6),
            self._worker,
            asked.request_id,
            -1 if asked.seed is None else asked.seed,
            len(asked.ids),
            -1 if asked.max_tokens is None else asked.max_tokens,
            made,
        )
        self._write(msgspec.json.encode(line).decode() + "\n")
