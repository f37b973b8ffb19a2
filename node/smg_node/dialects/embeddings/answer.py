"""Answer of `/v1/embeddings`: vectors as numbers or as base64."""

import sys
from array import array
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

import msgspec

_encode: Final = msgspec.json.Encoder().encode


def embeddings_answer(
    model: str, vectors: Sequence[bytes], *, packed: bool, prompt_tokens: int
) -> bytes:
    """Return the body for `vectors`, each 32-bit floats, little-endian, in the order of the inputs."""
    rows: list[dict[str, Any]] = [
        {"object": "embedding", "index": at, "embedding": _spelled(vector, packed=packed)}
        for at, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens}
    return _encode({"object": "list", "data": rows, "model": model, "usage": usage})


def _spelled(vector: bytes, *, packed: bool) -> object:
    if packed:
        return b64encode(vector).decode()
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
