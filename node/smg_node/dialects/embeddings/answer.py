"""Answer of `/v1/embeddings`: vectors as numbers or as base64."""

import sys
from array import array
from base64 import b64encode
from collections.abc import Sequence
from typing import Final

import msgspec

_encode: Final = msgspec.json.Encoder().encode


def embeddings_answer(
    model: str, vectors: Sequence[bytes], *, packed: bool, prompt_tokens: int
) -> bytes:
    """Return the body for `vectors`, each 32-bit floats, little-endian, in the order of the inputs."""
    # Row by row: millions of numbers encoded at once would stop every other thread.
    rows = b",".join(
        _encode({"object": "embedding", "index": at, "embedding": _spelled(vector, packed=packed)})
        for at, vector in enumerate(vectors)
    )
    usage = {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens}
    rest = _encode({"model": model, "usage": usage})
    return b"".join((b'{"object":"list","data":[', rows, b"],", rest[1:]))


def _spelled(vector: bytes, *, packed: bool) -> object:
    if packed:
        return b64encode(vector).decode()
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
