"""Tool tokens: how long the definitions of tools are in a prompt, by the tokenizer of the model that is asked.

Where this node has no tokenizer of the model (at vendors, behind HTTP), four bytes are taken for a token, as definitions
in English are. The same tools of the same model are counted once.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from smg_node.core.generation.request import Tool

BYTES_PER_TOKEN: Final = 4
KEPT_MAX: Final = 256
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class ToolTokens:
    """Counts of tokens; `count` returns how many a text is for a model, None where nobody here knows."""

    def __init__(self, count: Callable[[str, str], Awaitable[int | None]]) -> None:
        self._count = count
        self._kept: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    async def exceed(self, most: int, model: str, tools: Sequence[Tool]) -> bool:
        """Return whether the definitions of tools are more tokens than that in a prompt of a model."""
        text = _encode([[tool.name, tool.description, tool.parameters] for tool in tools])
        if len(text) <= most:
            # No token is less than a byte.
            return False
        key = (model, hashlib.blake2b(text, digest_size=16).digest())
        tokens = self._kept.get(key)
        if tokens is None:
            known = await self._count(model, text.decode())
            tokens = len(text) // BYTES_PER_TOKEN if known is None else known
            self._kept[key] = tokens
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return tokens > most
