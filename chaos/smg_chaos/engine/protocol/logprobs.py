"""Logprobs of a scripted model: its token has probability one, all alternatives next to none."""

from collections.abc import Sequence
from typing import Any

from smg_chaos.engine.protocol.contracts import Contract
from smg_chaos.engine.protocol.servicer_behaviours import Manners
from smg_chaos.engine.protocol.wire import Field, field_of, joined, require

_CERTAIN = 0.0
_HOPELESS = -78.0


class Logprobs:
    """Writes the log probabilities of one contract, as ready fields of the message they belong to.

    Contracts keep them in columns (values, ids, alternatives) or in rows, one a token. They are
    asked for rarely, so the generated messages encode them.
    """

    def __init__(self, contract: Contract, manners: Manners, *, vocabulary: int) -> None:
        self._messages: Any = contract.messages
        chunk = self._messages.GenerateStreamChunk.DESCRIPTOR
        complete = self._messages.GenerateComplete.DESCRIPTOR
        self._in_rows = hasattr(self._messages, "TokenLogprob")
        self._placeholders = manners.logprob_placeholders
        self._top_needed = manners.logprobs_need_top
        self._vocabulary = vocabulary
        self._in_chunk = require(chunk, "output_logprobs", "logprobs")
        self._in_complete = require(complete, "output_logprobs", "logprobs")
        self._prompt_in_chunk = field_of(chunk, "input_logprobs")
        self._prompt_in_complete = field_of(complete, "input_logprobs", "prompt_logprobs")

    def chunk(self, ids: Sequence[int], top: int) -> bytes:
        """Return the log probabilities of a chunk's ids as a field of the chunk."""
        return self._drawn(self._in_chunk, ids, top)

    def complete(self, ids: Sequence[int], top: int) -> bytes:
        """Return the log probabilities of a complete message's ids as a field of it."""
        return self._drawn(self._in_complete, ids, top)

    def prompt_chunk(self, ids: Sequence[int], top: int) -> bytes:
        """Return a prompt's log probabilities as a field of its choice's first chunk."""
        return self._prompt(self._prompt_in_chunk, ids, top)

    def prompt_complete(self, ids: Sequence[int], top: int) -> bytes:
        """Return a prompt's log probabilities as a field of a complete message."""
        return self._prompt(self._prompt_in_complete, ids, top)

    def _drawn(self, where: Field, ids: Sequence[int], top: int) -> bytes:
        if not ids or (self._top_needed and top < 1):
            return b""
        if self._in_rows:
            return self._rows(where, ids, top)
        columns = self._messages.OutputLogProbs(
            token_logprobs=[_CERTAIN] * len(ids), token_ids=ids, top_logprobs=self._tops(ids, top)
        )
        return where.holding(columns.SerializeToString())

    def _prompt(self, where: Field, ids: Sequence[int], top: int) -> bytes:
        if not ids:
            return b""
        if self._in_rows:
            return self._rows(where, ids, top)
        if not hasattr(self._messages, "InputLogProbs"):
            return b""
        one = self._messages.InputTokenLogProb
        tops = self._tops(ids, top)
        if tops:
            tops[0] = self._messages.TopLogProbs()  # the first token has nothing before it
        columns = self._messages.InputLogProbs(
            token_logprobs=[one(), *(one(value=_CERTAIN) for _ in ids[1:])],
            token_ids=ids,
            top_logprobs=tops,
        )
        return where.holding(columns.SerializeToString())

    def _tops(self, ids: Sequence[int], top: int) -> list[Any]:
        if top < 1 and not self._placeholders:
            return []
        empty = self._messages.TopLogProbs
        return [
            empty(
                values=[value for _, value in self._best(token, top)],
                token_ids=[other for other, _ in self._best(token, top)],
            )
            for token in ids
        ]

    def _rows(self, where: Field, ids: Sequence[int], top: int) -> bytes:
        row, alternative = self._messages.TokenLogprob, self._messages.TopLogprob
        return joined(
            [
                where.holding(
                    row(
                        token_id=token,
                        logprob=_CERTAIN,
                        top_logprobs=[
                            alternative(token_id=other, logprob=value)
                            for other, value in self._best(token, top)
                        ],
                    ).SerializeToString()
                )
                for token in ids
            ]
        )

    def _best(self, token: int, top: int) -> list[tuple[int, float]]:
        """The `top` most likely ids; engines that take any number give at most the vocabulary."""
        count = min(top, self._vocabulary)
        return [
            ((token + rank) % self._vocabulary, _HOPELESS - rank if rank else _CERTAIN)
            for rank in range(count)
        ]
