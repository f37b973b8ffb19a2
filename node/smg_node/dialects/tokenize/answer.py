"""Answer of `/v1/tokenize` and `/v1/detokenize`."""

from collections.abc import Sequence
from typing import Any, Protocol

from smg_node.dialects.openai.frames import encode_json


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
    tokens = [list(prompt.ids) for prompt in prompts]
    body: dict[str, Any] = {
        "tokens": tokens,
        "count": [len(ids) for ids in tokens],
        "char_count": [prompt.characters for prompt in prompts],
    }
    if not many:
        assert len(prompts) == 1, "one prompt, one answer"
        body = {key: values[0] for key, values in body.items()}
    return encode_json(body)


def detokenize_answer(texts: Sequence[str], *, many: bool) -> bytes:
    """Return `text`, or a list of texts if the client sent a list of lists; no ids, no text."""
    return encode_json({"text": list(texts) if many else "".join(texts)})
