"""Response writer: encodes the chunks and complete messages of Generate, for any contract."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from smg_chaos.engine.protocol.answers import Answer
from smg_chaos.engine.protocol.contracts import Contract
from smg_chaos.engine.protocol.logprobs import Logprobs
from smg_chaos.engine.protocol.servicer_behaviours import Manners
from smg_chaos.engine.protocol.wire import field_of, joined, require

_HEADS_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class Spoken:
    """Fields that are the same in every message of one choice."""

    named: bytes
    """The request id's field, or nothing."""
    chunk_tail: bytes
    complete_tail: bytes


@dataclass(frozen=True, slots=True)
class Ending:
    """Finish reason of a choice; `matched` is the id or string that caused it."""

    reason: str
    matched: int | str | None = None


class Writer:
    """Writes the chunks and complete messages of one contract under one servicer's behaviours."""

    def __init__(self, contract: Contract, manners: Manners, *, vocabulary: int) -> None:
        messages = contract.messages
        response = messages.GenerateResponse.DESCRIPTOR
        chunk = messages.GenerateStreamChunk.DESCRIPTOR
        complete = messages.GenerateComplete.DESCRIPTOR
        self._manners = manners
        self.vocabulary = vocabulary
        self._named = field_of(response, "request_id")
        self._chunk = require(response, "chunk")
        self._complete = require(response, "complete")
        self._chunk_ids = require(chunk, "token_ids")
        self._chunk_prompt = require(chunk, "prompt_tokens")
        self._chunk_count = require(chunk, "completion_tokens")
        self._chunk_cached = require(chunk, "cached_tokens")
        self._chunk_index = require(chunk, "index", "sequence_index")
        self._ids = require(complete, "output_ids", "output_token_ids")
        self._reason = require(complete, "finish_reason")
        self._prompt = require(complete, "prompt_tokens")
        self._count = require(complete, "completion_tokens")
        self._cached = require(complete, "cached_tokens")
        self._index = require(complete, "index", "sequence_index")
        self._matched_id = require(complete, "matched_token_id", "matched_stop_token_id")
        self._matched_text = field_of(complete, "matched_stop_str")
        self.transfer = field_of(complete, "kv_transfer_params_json")
        self.logprobs = Logprobs(contract, manners, vocabulary=vocabulary)

    def spoken(self, request_id: str, *, prompt: int, cached: int, index: int) -> Spoken:
        """Return the fields that all messages of a choice share."""
        named = self._named.text(request_id) if self._manners.names_request else b""
        chunk = (
            self._chunk_prompt.of(prompt)
            + self._chunk_cached.of(cached)
            + self._chunk_index.of(index)
        )
        complete = self._prompt.of(prompt) + self._cached.of(cached) + self._index.of(index)
        return Spoken(named, chunk, complete)

    def one(self, spoken: Spoken, answer: Answer, at: int, extra: bytes = b"") -> bytes:
        """Return the chunk that carries the token at position `at` alone."""
        heads = answer.heads
        if at < len(heads):
            head = heads[at]
        else:
            head = self._head((answer.token(at),), at + 1)
            if at == len(heads) and at < _HEADS_KEPT:
                heads.append(head)
        return spoken.named + self._chunk.holding(head + spoken.chunk_tail + extra)

    def chunk(
        self, spoken: Spoken, ids: Sequence[int], total: int, extra: bytes = b"", off: int = 0
    ) -> bytes:
        """Return a chunk of any number of ids; `total` counts the choice's tokens with them.

        `off` is added to the count: a fault.
        """
        head = self._head(ids, total, off)
        return spoken.named + self._chunk.holding(head + spoken.chunk_tail + extra)

    def _head(self, ids: Sequence[int], total: int, off: int = 0) -> bytes:
        count = len(ids) if self._manners.counts_per_chunk else total
        return self._chunk_ids.packed(ids) + self._chunk_count.of(count + off)

    def complete(
        self, spoken: Spoken, ids: Sequence[int], count: int, ending: Ending, extra: bytes = b""
    ) -> bytes:
        """Return a choice's last message."""
        matched = b""
        if isinstance(ending.matched, str):
            matched = self._matched_text.holding(ending.matched.encode())
        elif ending.matched is not None:
            matched = self._matched_id.present(ending.matched)
        body = joined(
            (
                self._ids.packed(ids),
                self._reason.text(ending.reason),
                self._count.of(count),
                spoken.complete_tail,
                matched,
                extra,
            )
        )
        return spoken.named + self._complete.holding(body)
