"""Logprobs in the shapes of the OpenAI dialects and of vLLM."""

from collections.abc import Sequence
from typing import Any, Final

from smg_node.core.generation.events import TokenLogprob, TopLogprob

NOT_KNOWN: Final = -9999.0


def finite(logprob: float | None) -> float:
    """Return a log probability that JSON can hold; an unknown one, or minus infinity, is -9999.0."""
    return logprob if logprob is not None and logprob > NOT_KNOWN else NOT_KNOWN


def spelling(token: TokenLogprob | TopLogprob, *, as_id: bool) -> str:
    """Return the name of a token: its text, or `token_id:123` for clients that want exact ids."""
    return f"token_id:{token.token_id}" if as_id else token.token


def content_rows(tokens: Sequence[TokenLogprob], *, as_ids: bool) -> list[dict[str, Any]]:
    """Return `logprobs.content` of Chat Completions."""
    return [
        {
            "token": spelling(token, as_id=as_ids),
            "logprob": finite(token.logprob),
            "bytes": list(token.raw),
            "top_logprobs": [
                {
                    "token": spelling(top, as_id=as_ids),
                    "logprob": finite(top.logprob),
                    "bytes": list(top.raw),
                }
                for top in token.top
            ],
        }
        for token in tokens
    ]


def prompt_rows(tokens: Sequence[TokenLogprob]) -> list[dict[str, Any] | None]:
    """Return `prompt_logprobs` in vLLM's form: id to log probability, rank and text.

    The first token of a prompt has none. The rank of a drawn token outside the best is not known.
    """
    rows: list[dict[str, Any] | None] = []
    for token in tokens:
        if token.logprob is None:
            rows.append(None)
            continue
        row = {str(token.token_id): _prompt_row(token.logprob, None, token.token)}
        for rank, top in enumerate(token.top, 1):
            row[str(top.token_id)] = _prompt_row(top.logprob, rank, top.token)
        rows.append(row)
    return rows


def _prompt_row(logprob: float, rank: int | None, text: str) -> dict[str, Any]:
    return {"logprob": finite(logprob), "rank": rank, "decoded_token": text}


class OldShape:
    """`logprobs` of Completions, for one choice: four lists side by side, and where each token starts.

    Offsets count characters of the text that is returned, an echoed prompt included.
    """

    __slots__ = ("_as_ids", "_offset")

    def __init__(self, *, as_ids: bool) -> None:
        self._as_ids = as_ids
        self._offset = 0

    def echo(self, text: str, tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Return the lists for an echoed prompt; what follows starts where `text` ends.

        Its tokens alone would not tell: a prompt begins with special tokens that its text leaves out.
        """
        rows = self.rows(tokens)
        self._offset = len(text)
        return rows

    def rows(self, tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Return the lists for the next tokens of this choice."""
        offsets: list[int] = []
        for token in tokens:
            offsets.append(self._offset)
            self._offset += len(token.token)
        return {
            "tokens": [spelling(token, as_id=self._as_ids) for token in tokens],
            "token_logprobs": [
                None if token.logprob is None else finite(token.logprob) for token in tokens
            ],
            "top_logprobs": [self._top(token) for token in tokens],
            "text_offset": offsets,
        }

    def _top(self, token: TokenLogprob) -> dict[str, float] | None:
        """Return the best alternatives and the drawn token itself, by text."""
        if token.logprob is None:
            return None
        drawn = {spelling(token, as_id=self._as_ids): finite(token.logprob)}
        best = {spelling(top, as_id=self._as_ids): finite(top.logprob) for top in token.top}
        return best | drawn
