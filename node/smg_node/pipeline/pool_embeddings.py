"""Pool embeddings: vectors of texts by an embedding model of the cluster's own, whatever its workers speak."""

from array import array
from collections.abc import Sequence
from contextlib import aclosing
from sys import byteorder
from typing import Any, Final

import msgspec

from smg_node.core.context_limit import TOO_LONG_CODE, is_too_long_message
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import TextPrompt
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.embeddings import Embedder
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_request import APIS, Relayable, relayable
from smg_node.pipeline.relay.relays import Relays

ANSWER_BYTES_MAX: Final = 64 << 20
"""Of a worker's answer: 64 vectors of 4,096 numbers as JSON are some 6 MB."""
_API: Final = "embeddings"
_NOT_IMPLEMENTED: Final = 501
"""No worker behind HTTP has this API: an engine of that name may."""


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _Answer(msgspec.Struct):
    data: list[_Row]


_decode: Final = msgspec.json.Decoder(_Answer).decode
_encode: Final = msgspec.json.Encoder().encode


class PoolEmbeddings:
    """Vectors from engines over gRPC, else from HTTP workers."""

    def __init__(self, embedder: Embedder, relays: Relays) -> None:
        self._embedder = embedder
        self._relays = relays

    async def __call__(
        self, model: str, texts: Sequence[str], context: RequestContext
    ) -> "list[array[float]]":
        """Return the vector of each text. SmgError where there are none, as from the public API."""
        if self._relays.has(model, APIS[_API]) or self._relays.takes(model):
            try:
                return await self._relayed(model, texts, context)
            except SmgError as error:
                if error.status != _NOT_IMPLEMENTED or not self._embedder.takes(model):
                    raise
        run = self._embedder.start(model, [TextPrompt(text) for text in texts], context)
        return [_floats(vector) for vector in (await run.vectors()).vectors]

    async def _relayed(
        self, model: str, texts: Sequence[str], context: RequestContext
    ) -> "list[array[float]]":
        run = self._relays.start(_asked(model, texts), {}, context, "")
        status, body = 0, bytearray()
        async with aclosing(run.answer()) as pieces:
            async for piece in pieces:
                if isinstance(piece, Head):
                    status = piece.status
                elif len(body) + len(piece) > ANSWER_BYTES_MAX:
                    raise _unusable(f"it is larger than {ANSWER_BYTES_MAX} bytes")
                else:
                    body += piece
        if status != 200:
            if is_too_long_message(body.decode("utf-8", "replace")):
                why = "a text is too long for the embedding model"
                raise SmgError(ErrorKind.INVALID_REQUEST, why, code=TOO_LONG_CODE)
            raise _unusable(f"its status is {status}")
        return _vectors(bytes(body), len(texts))


def _asked(model: str, texts: Sequence[str]) -> Relayable:
    fields: dict[str, Any] = {"model": model, "input": list(texts), "encoding_format": "float"}
    return relayable(APIS[_API], _encode(fields), fields)


def _vectors(body: bytes, count: int) -> "list[array[float]]":
    """Return the vectors in an answer, in the order of the texts."""
    try:
        rows = _decode(body).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _unusable("it is no list of embeddings") from None
    if sorted(row.index for row in rows) != list(range(count)):
        raise _unusable(f"it has not one embedding for each of {count} texts")
    return [array("f", row.embedding) for row in sorted(rows, key=lambda row: row.index)]


def _floats(raw: bytes) -> "array[float]":
    """Return 32-bit floats that came in little-endian bytes."""
    found = array("f")
    try:
        found.frombytes(raw)
    except ValueError:
        raise _unusable("it is no row of 32-bit floats") from None
    if byteorder == "big":
        found.byteswap()
    return found


def _unusable(why: str) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, f"the answer of the embedding model: {why}")
