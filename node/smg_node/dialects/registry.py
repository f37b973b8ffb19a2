"""Registry of dialects: every public API of this node, by name."""

from typing import Final

from smg_node.core.registry import Registry
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.completions.dialect import CompletionsDialect
from smg_node.dialects.dialect import Dialect
from smg_node.dialects.options import ReaderOptions

CHAT: Final = ChatDialect.name
COMPLETIONS: Final = CompletionsDialect.name


def known_dialects(options: ReaderOptions) -> Registry[Dialect]:
    """Return the dialects, each built with `options`."""
    registry: Registry[Dialect] = Registry("dialect")
    registry.add(CHAT, ChatDialect(options))
    registry.add(COMPLETIONS, CompletionsDialect(options))
    return registry
