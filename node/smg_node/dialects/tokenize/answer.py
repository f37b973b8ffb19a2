"""Answer of `/v1/tokenize` and `/v1/detokenize`."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from smg_node.dialects.openai.frames import encode_json

_ENCODED_AT_ONCE: Final = 16_384


class Encoded(Protocol):
    """The ids of one prompt, and how many characters its text has."""

    @property
    def ids(self) -> Sequence[int]:
        """The ids."""
        ...

    @property
    def characters(self) -> int:
        """Characters of the text the ids were made from, the template's own included."""
        ...


def tokenize_answer(prompts: Sequence[Encoded], *, many: bool) -> bytes:
    """Return `tokens`, `count` and `char_count`; lists of them if the client sent a list."""
    rows = [_spelled(prompt.ids) for prompt in prompts]
    counts: dict[str, Any] = {
        "count": [len(prompt.ids) for prompt in prompts],
        "char_count": [prompt.characters for prompt in prompts],
    }
    if many:
        return b"".join((b'{"tokens":[', b",".join(rows), b"],", encode_json(counts)[1:]))
    assert len(prompts) == 1, "one prompt, one answer"
    rest = encode_json({key: values[0] for key, values in counts.items()})
    return b"".join((b'{"tokens":', rows[0], b",", rest[1:]))


def _spelled(ids: Sequence[int]) -> bytes:
    """Return ids as JSON, some thousand at a time: millions at once would stop every other thread."""
    pieces = (ids[at : at + _ENCODED_AT_ONCE] for at in range(0, len(ids), _ENCODED_AT_ONCE))
    return b"[%b]" % b",".join(encode_json(list(piece))[1:-1] for piece in pieces)


def detokenize_answer(texts: Sequence[str], *, many: bool) -> bytes:
    """Return `text`, or a list of texts if the client sent a list of lists; no ids, no text."""
    return encode_json({"text": list(texts) if many else "".join(texts)})
