"""Provider dialects by name: each is imported with the first provider that speaks it."""

from functools import cache
from importlib import import_module
from typing import Final

from smg_node.dialects.provider_dialect import ProviderDialect
from smg_node.providers import hosting

_MODULES: Final = {
    hosting.CHAT: "smg_node.dialects.chat.provider.dialect",
    hosting.RESPONSES: "smg_node.dialects.responses.provider.dialect",
    hosting.MESSAGES: "smg_node.dialects.messages.provider.dialect",
    hosting.GENERATE_CONTENT: "smg_node.dialects.gemini.provider.dialect",
    hosting.CONVERSE: "smg_node.dialects.converse.dialect",
}
"""Modules, each with a `PROVIDER`."""


@cache
def provider_dialect(name: str, model: str, issuer: str = "") -> ProviderDialect:
    """Return the dialect of that name, as the vendor's model speaks it; `issuer` is whose its opaque state is, "" if its
    name tells.
    """
    module = import_module(_MODULES[name])
    found: ProviderDialect
    if name == hosting.CONVERSE:
        found = module.converse_provider(model)
    elif name == hosting.RESPONSES:
        found = module.ResponsesProvider(issuer)
    else:
        found = module.PROVIDER
    return found
