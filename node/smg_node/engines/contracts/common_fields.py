"""Common fields: decodes stream messages of the four contracts that share their field names. Pure.

SGLang, vLLM, MLX and TokenSpeed speak of `token_ids`, `output_ids` and columns of log probabilities;
only TensorRT-LLM names them otherwise.
"""

from collections.abc import Iterable
from typing import Any

from smg_node.engines.chunk import IdLogprob
from smg_node.engines.contracts.sampling_rules import known_logprob
from smg_node.engines.contracts.wire import Message


def stream_message(response: Any, *, of_prompt: bool) -> Message | None:
    """Return a GenerateResponse; None if it is neither chunk nor complete.

    `of_prompt` tells whether the contract has log probabilities of the prompt.
    """
    which = response.WhichOneof("response")
    if which == "chunk":
        chunk = response.chunk
        found = Message(chunk.index, tuple(chunk.token_ids))
    elif which == "complete":
        chunk = response.complete
        found = Message(
            chunk.index, tuple(chunk.output_ids), final=True, reason=chunk.finish_reason
        )
    else:
        return None
    if chunk.prompt_tokens:
        # A message without a prompt says nothing of the cache either: an abort has zeros everywhere.
        found.prompt_tokens = chunk.prompt_tokens
        found.cached_tokens = chunk.cached_tokens
    if chunk.HasField("output_logprobs"):
        found.logprobs = column_logprobs(chunk.output_logprobs)
    if of_prompt and chunk.HasField("input_logprobs"):
        found.prompt_logprobs = column_prompt_logprobs(chunk.input_logprobs)
    return found


def matched_stop(complete: Any) -> int | str | None:
    """Return what ended a choice, from the `matched_stop` union most contracts have."""
    which = complete.WhichOneof("matched_stop")
    if which is None:
        return None
    value: int | str = getattr(complete, which)
    return value


def column_logprobs(columns: Any) -> tuple[IdLogprob, ...]:
    """Return log probabilities kept in columns; a missing row of alternatives is an empty one."""
    return tuple(
        IdLogprob(token_id, known_logprob(value), tops)
        for token_id, value, tops in zip(
            columns.token_ids, columns.token_logprobs, _alternatives(columns), strict=False
        )
    )


def column_prompt_logprobs(columns: Any) -> tuple[IdLogprob, ...]:
    """Return a prompt's log probabilities; the first token has none."""
    return tuple(
        IdLogprob(token_id, known_logprob(one.value) if one.HasField("value") else None, tops)
        for token_id, one, tops in zip(
            columns.token_ids, columns.token_logprobs, _alternatives(columns), strict=False
        )
    )


def _alternatives(columns: Any) -> list[tuple[tuple[int, float], ...]]:
    rows = [pairs(row.token_ids, row.values) for row in columns.top_logprobs]
    rows += [()] * (len(columns.token_ids) - len(rows))
    return rows


def pairs(ids: Iterable[int], values: Iterable[float]) -> tuple[tuple[int, float], ...]:
    """Return alternatives of one position as (id, log probability)."""
    return tuple(
        (token_id, known_logprob(value)) for token_id, value in zip(ids, values, strict=False)
    )
