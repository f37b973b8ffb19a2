"""Fetched page: what a server's fetch of an address brought, as models and APIs are shown it. Pure.

A server tells of a page as a text, or as an object with its address, title and text. The domains of a request hold for
the address that was asked for, before it is fetched, and for the one that the page came from, if its server says so: an
address may lead elsewhere.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from smg_node.core.generation.tool_serving import RunResult, Source
from smg_node.mcp.builtin.domains import URL_CHARACTERS_MAX, DomainRule, domain_rule, web_address
from smg_node.mcp.builtin.found_sources import json_in, one_line
from smg_node.mcp.failures import INVALID_PARAMS, NOT_RUN, Failure, FailureKind, refused
from smg_node.mcp.tools.content import cut_text, text_of
from smg_node.mcp.tools.tool_result import CallResult

NOT_ALLOWED: Final = "url_not_allowed"
TOO_LONG: Final = "url_too_long"
_TOKEN_BYTES: Final = 4
"""About so long is a token of text."""
_LEAST_BYTES: Final = 256
_URLS: Final = ("final_url", "finalUrl", "url", "uri", "link", "source_url")
_TITLES: Final = ("title", "name")
_TEXTS: Final = ("markdown", "text", "content", "body", "page_content", "raw_content", "html")
_INSIDE: Final = ("result", "page", "document", "data", "metadata")
_LISTS: Final = ("results", "pages", "documents", "items")


def checked_address(url: str, rule: DomainRule) -> str | Failure:
    """Return the address of a page that may be fetched; a failure, not sent, for any other."""
    if len(url) > URL_CHARACTERS_MAX:
        return refused(f"{TOO_LONG}: an address has at most {URL_CHARACTERS_MAX} characters")
    address = web_address(url)
    if not address:
        why = "url must be a whole http address, such as https://example.com/page"
        return Failure(FailureKind.PROTOCOL, INVALID_PARAMS, why, sent=False)
    if not rule.allows(address):
        return refused(f"{NOT_ALLOWED}: the request does not allow this domain")
    return address


def read_page(
    settings: Mapping[str, Any], action: Mapping[str, Any], result: CallResult, *, bytes_max: int
) -> RunResult | Failure:
    """Return a page that was fetched; a failure for one that came from where it must not."""
    places = list(_places(result))
    asked = str(action.get("url", ""))
    url = next((found for text in _words(places, _URLS) if (found := web_address(text))), "")
    if url and not domain_rule(settings).allows(url):
        why = f"{NOT_ALLOWED}: the address led to a domain that the request does not allow"
        return Failure(FailureKind.PROTOCOL, NOT_RUN, why)
    title = next(filter(None, map(one_line, _words(places, _TITLES))), "")
    text = next(_words(places, _TEXTS), "") or text_of(result, bytes_max=bytes_max)
    source = Source(url or asked, title)
    shown = cut_text(text, _room(settings, bytes_max)) or "The page is empty."
    return RunResult(shown, content=result.content, action=action, sources=(source,))


def _room(settings: Mapping[str, Any], bytes_max: int) -> int:
    most = settings.get("max_content_tokens")
    if not isinstance(most, int) or most <= 0:
        return bytes_max
    return min(bytes_max, max(_LEAST_BYTES, most * _TOKEN_BYTES))


def _places(result: CallResult) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that tell of the page: the structured result, or a text that is an object; and what is in it."""
    texts = [result.structured] if result.structured else []
    blocks = [block for block in result.content if isinstance(block.get("text"), str)]
    if len(blocks) == 1:
        texts.append(blocks[0]["text"].encode("utf-8", "replace"))
    for text in texts:
        value = json_in(text)
        if not isinstance(value, dict):
            continue
        yield value
        for name in _INSIDE:
            if isinstance(value.get(name), dict):
                yield value[name]
        for name in _LISTS:
            rows = value.get(name)
            if isinstance(rows, list) and len(rows) == 1 and isinstance(rows[0], dict):
                yield rows[0]


def _words(places: list[Mapping[str, Any]], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        for place in places:
            value = place.get(name)
            if isinstance(value, str) and value.strip():
                yield value
