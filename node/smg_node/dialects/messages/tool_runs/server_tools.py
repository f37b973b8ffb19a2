"""Server tools: tools of Anthropic's own that its servers execute, as built-in tools that this node may have.

A client names such a tool by type and date, with settings and without a schema. Whether this node has one is known
only when the request is served: there it is offered to the model as a function, or left out and named.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.tool_serving import AskedBuiltin, BuiltinKind
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.messages.cache_control import check_cache_control

_DATED: Final = re.compile(r"(web_search|web_fetch|code_execution)_\d{8}\Z")
_SEARCH: Final = re.compile(r"(tool_search_tool_(?:regex|bm25))(?:_\d{8})?\Z")
_KINDS: Final[Mapping[str, BuiltinKind]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_interpreter",
    "tool_search_tool_regex": "tool_search",
    "tool_search_tool_bm25": "tool_search",
}
_COMMON: Final = ("type", "name", "cache_control", "defer_loading", "strict", "allowed_callers")
_DOMAINS: Final = ("allowed_domains", "blocked_domains")
_WEB: Final = (*_DOMAINS, "max_uses", "response_inclusion")
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "web_search": (*_WEB, "user_location"),
    "web_fetch": (*_WEB, "citations", "max_content_tokens", "url_sources", "use_cache"),
}
_LOCATION: Final = ("type", "city", "region", "country", "timezone")
_DOMAINS_MAX: Final = 500
"""More of them would not be enforced."""
_DOMAIN_MAX: Final = 1_024
_LABEL_MAX: Final = 256
_DIRECT: Final = "direct"


def read_server_tool(declared: Cursor, kind: str) -> tuple[str, AskedBuiltin | None] | None:
    """Return a server tool's name and what is asked of it, None for one that is wrong; None for another type."""
    match = _DATED.match(kind) or _SEARCH.match(kind)
    if match is None:
        return None
    called = match.group(1)
    own = _OWN.get(called, ())
    declared.only((*_COMMON, *own))
    name = declared.word("name", (called,), required=True)
    check_cache_control(declared)
    _check_callers(declared)
    declared.flag("defer_loading")
    declared.flag("strict")
    uses_max = declared.integer("max_uses", low=1) if own else None
    settings = _settings(declared, own)
    if name is None:
        return called, None
    where = declared.path()
    return called, AskedBuiltin(_KINDS[called], kind, settings, uses_max, where=where)


def _check_callers(declared: Cursor) -> None:
    callers = declared.array("allowed_callers")
    names = callers and declared.elements("allowed_callers", str, "a string", callers)
    if names and _DIRECT not in names:
        why = "must have 'direct': nothing here but the model calls tools"
        declared.unsupported("allowed_callers", why)


def _settings(declared: Cursor, own: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the settings of a tool, checked as far as they are known, as the client spelled them."""
    if not own:
        return {}
    for key in _DOMAINS:
        values = declared.array(key, at_most=_DOMAINS_MAX)
        for index, domain in enumerate(
            (values and declared.elements(key, str, "a string", values)) or ()
        ):
            if not 0 < len(domain.strip()) <= _DOMAIN_MAX:
                declared.problem(key, "must have 1 to 1024 characters", index=index)
    if declared.values.get(_DOMAINS[0]) and declared.values.get(_DOMAINS[1]):
        declared.problem(_DOMAINS[1], "cannot be combined with allowed_domains")
    location = declared.object("user_location") if "user_location" in own else None
    if location is not None:
        location.only(_LOCATION)
        location.word("type", ("approximate",), required=True)
        for key in _LOCATION[1:]:
            location.text(key, characters_max=_LABEL_MAX)
    declared.word("response_inclusion", ("full", "excluded"))
    if "use_cache" in own:
        declared.flag("use_cache")
        declared.integer("max_content_tokens", low=1)
        citations = declared.object("citations")
        if citations is not None and citations.flag("enabled"):
            why = "is not supported: models here do not say where they have something from"
            citations.unsupported("enabled", why)
        declared.object("url_sources")
    kept = (key for key in own if key not in ("max_uses", "response_inclusion", "citations"))
    return {key: declared.values[key] for key in kept if declared.values.get(key) is not None}
