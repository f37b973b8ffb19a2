"""Token count: the answer of countTokens."""

from typing import Final

import msgspec

from smg_node.dialects.gemini.answer_objects import text_tokens

_encode: Final = msgspec.json.Encoder().encode


def count_answer(tokens: int) -> bytes:
    """Return the JSON body that says how many tokens a prompt has."""
    return _encode({"totalTokens": tokens, "promptTokensDetails": text_tokens(tokens)})
