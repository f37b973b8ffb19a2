"""Logprobs in the shapes of the OpenAI dialects and of vLLM."""

from collections.abc import Sequence
from typing import Any, Final

from smg_node.core.generation.events import TokenLogprob, TopLogprob

NOT_KNOWN: Final = -9999.0
_CHARACTER_BYTES_MAX: Final = 4
CONTENT: Final = "content"
"""The list of the tokens of a message's content."""
THOUGHT: Final = "reasoning_content"
"""The list of the tokens of a thought that is not in the content; servers' own, as its text is."""


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


def chat_rows(
    content: Sequence[TokenLogprob], thought: Sequence[TokenLogprob], *, as_ids: bool
) -> dict[str, Any]:
    """Return `logprobs` of Chat Completions: tokens of calls are in none of its lists."""
    rows: dict[str, Any] = {CONTENT: content_rows(content, as_ids=as_ids), "refusal": None}
    if thought:
        rows[THOUGHT] = content_rows(thought, as_ids=as_ids)
    return rows


def prompt_rows(tokens: Sequence[TokenLogprob]) -> list[dict[str, Any] | None]:
    """Return `prompt_logprobs` in vLLM's form: id to log probability, rank and text.

    The first token of a prompt has none. The rank of a drawn token outside the best is not known.
    """
    rows: list[dict[str, Any] | None] = []
    for at, token in enumerate(tokens):
        if not at or token.logprob is None:
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

    Offsets count characters of the text that is returned, an echoed prompt included. A token that the text
    leaves out, or that is a part of a character, takes no room in it.
    """

    __slots__ = ("_as_ids", "_offset", "_partial", "_taken", "_text")

    def __init__(self, *, as_ids: bool) -> None:
        self._as_ids = as_ids
        self._offset = 0
        # Text behind that offset, as far as it is known, and how much of what comes next is before it.
        self._text = ""
        self._taken = 0
        # Bytes of a character that is not whole.
        self._partial = b""

    def echo(self, text: str, tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Return the lists for an echoed prompt; what follows starts where `text` ends."""
        rows = self.rows(tokens, text)
        if tokens:
            # Nothing is before the first token, so it has no probability, whatever an engine says.
            rows["token_logprobs"][0] = rows["top_logprobs"][0] = None
        self._offset, self._text, self._taken, self._partial = len(text), "", 0, b""
        return rows

    def rows(self, tokens: Sequence[TokenLogprob], text: str) -> dict[str, Any]:
        """Return the lists for the next tokens of this choice, with which `text` was said."""
        taken = min(self._taken, len(text))
        self._taken -= taken
        self._text += text[taken:]
        offsets: list[int] = []
        for token in tokens:
            offsets.append(self._offset)
            self._pass(token)
        return {
            "tokens": [spelling(token, as_id=self._as_ids) for token in tokens],
            "token_logprobs": [
                None if token.logprob is None else finite(token.logprob) for token in tokens
            ],
            "top_logprobs": [self._top(token) for token in tokens],
            "text_offset": offsets,
        }

    def _pass(self, token: TokenLogprob) -> None:
        """Move over what the text has of a token."""
        size = self._size(token)
        self._offset += size
        self._taken = max(0, size - len(self._text))
        self._text = self._text[size:]

    def _size(self, token: TokenLogprob) -> int:
        text, raw = self._text, self._partial + token.raw
        self._partial = b""
        if not text:
            return 0
        try:
            spelled = raw.decode()
        except UnicodeDecodeError as error:
            if len(raw) - error.start < _CHARACTER_BYTES_MAX:
                self._partial = raw[error.start :]
            spelled = raw[: error.start].decode()
        if text.startswith(spelled) or spelled.startswith(text):
            return len(spelled)
        # The first word of a text may have lost the space before it.
        bare = spelled[1:] if spelled[0] == " " else ""
        return len(bare) if bare and text.startswith(bare) else 0

    def _top(self, token: TokenLogprob) -> dict[str, float] | None:
        """Return the best alternatives and the drawn token itself, by text.

        Parts of characters are spelled alike, and the best of them has that name: a drawn one that is another
        stands beside it under its bytes.
        """
        if token.logprob is None:
            return None
        best: dict[str, float] = {}
        for top in token.top:
            best.setdefault(spelling(top, as_id=self._as_ids), finite(top.logprob))
        drawn = spelling(token, as_id=self._as_ids)
        if any(top.token_id != token.token_id for top in token.top if self._alike(top, drawn)):
            drawn = "bytes:" + "".join(f"\\x{byte:02x}" for byte in token.raw)
        best[drawn] = finite(token.logprob)
        return best

    def _alike(self, top: TopLogprob, name: str) -> bool:
        return spelling(top, as_id=self._as_ids) == name
