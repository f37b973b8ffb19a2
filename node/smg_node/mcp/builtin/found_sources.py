"""Sources in the result of a search: a list of things with address, title and text, however a server spells them. Pure.

Servers of searches agree on nothing but the shape: a list, or an object that has one, of objects with a few strings. So
names of lists and of fields are tried in an order, and what has neither address nor title nor text is no source.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.core.generation.tool_serving import BuiltinKind, Source
from smg_node.mcp.builtin.domains import URL_CHARACTERS_MAX, web_address
from smg_node.mcp.failures import plain_text
from smg_node.mcp.tools.tool_result import CallResult

SOURCES_MAX: Final = 50
TEXT_CHARACTERS_MAX: Final = 65_536
_TITLE_CHARACTERS_MAX: Final = 300
_WORD_CHARACTERS_MAX: Final = 128
_JSON_BYTES_MAX: Final = 2 << 20
"""Reading more would keep everybody else waiting; it is passed on as a text, and cut."""
_DEPTH_MAX: Final = 3
_LISTS: Final = (
    "results",
    "items",
    "documents",
    "hits",
    "result",
    "data",
    "organic",
    "organic_results",
    "webPages",
    "value",
    "web",
    "matches",
    "passages",
    "chunks",
    "sources",
    "news",
    "response",
)
_INSIDE: Final = ("metadata", "document", "_source", "payload", "attributes", "fields")
_URLS: Final = ("url", "link", "uri", "href", "source_url", "source")
_TITLES: Final = ("title", "name", "filename", "file_name", "display_name", "source")
_TEXTS: Final = (
    "text",
    "snippet",
    "content",
    "description",
    "body",
    "passage",
    "summary",
    "page_content",
    "extract",
    "chunk",
    "highlights",
)
_SCORES: Final = ("score", "relevance_score", "relevance", "similarity", "_score")
_AGES: Final = ("page_age", "published_date", "publishedDate", "published", "date", "age")
_FILES: Final = ("file_id", "document_id", "id")
_decode: Final = msgspec.json.Decoder().decode


def sources_in(result: CallResult, kind: BuiltinKind) -> list[Source] | None:
    """Return what a search found, at most `SOURCES_MAX`; None where the result cannot be read as such."""
    if result.structured:
        found = _sources(json_in(result.structured), kind, _DEPTH_MAX)
        if found is not None:
            return found
    links = [source for block in result.content if (source := _linked(block)) is not None]
    if links:
        return links[:SOURCES_MAX]
    texts = _texts_of(result)
    values = [json_in(text.encode("utf-8", "replace")) for text in texts]
    if len(values) == 1:
        return _sources(values[0], kind, _DEPTH_MAX)
    # One block for each thing that was found is how some SDKs tell a list.
    if values and all(isinstance(value, dict) for value in values):
        return _sources(values, kind, _DEPTH_MAX)
    return None


def answer_in(result: CallResult) -> str:
    """Return the answer in words that some searches give beside what they found, "" where there is none."""
    for text in (
        result.structured,
        *(text.encode("utf-8", "replace") for text in _texts_of(result)),
    ):
        value = json_in(text)
        if isinstance(value, dict) and isinstance(answer := value.get("answer"), str):
            return plain_text(answer.strip(), TEXT_CHARACTERS_MAX)
    return ""


def json_in(text: bytes, bytes_max: int = _JSON_BYTES_MAX) -> Any:
    """Return the object or list that a JSON text is, None for anything else and for what is too large."""
    if len(text) > bytes_max or text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _texts_of(result: CallResult) -> list[str]:
    blocks = (block for block in result.content if block.get("type") == "text")
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]


def _sources(value: Any, kind: BuiltinKind, depth: int) -> list[Source] | None:
    if isinstance(value, list):
        return _listed(value, kind)
    if not isinstance(value, dict) or not depth:
        return None
    for name in _LISTS:
        inner = value.get(name)
        if isinstance(inner, list | dict):
            found = _sources(inner, kind, depth - 1)
            if found is not None:
                return found
    alone = _source(value, kind)
    return [alone] if alone is not None and (alone.url or alone.file_id) else None


def _listed(values: Sequence[Any], kind: BuiltinKind) -> list[Source] | None:
    """Return the sources of a list; None where it has something, and none of it is a source."""
    if values and all(isinstance(value, list) for value in values):
        values = [inner for value in values for inner in value]
    found: list[Source] = []
    for value in values:
        source = _source(value, kind)
        if source is not None:
            found.append(source)
        if len(found) == SOURCES_MAX:
            break
    return found if found or not values else None


def _source(value: Any, kind: BuiltinKind) -> Source | None:
    if isinstance(value, str):
        url = web_address(value)
        text = "" if url else plain_text(value.strip(), TEXT_CHARACTERS_MAX)
        return Source(url=url, text=text) if url or text else None
    if not isinstance(value, dict):
        return None
    inner = [each for name in _INSIDE if isinstance(each := value.get(name), dict)]
    places = (value, *inner)
    url = next(filter(None, (_address(text, kind) for text in _words(places, _URLS))), "")
    titles = (one_line(text) for text in _words(places, _TITLES))
    title = next((text for text in titles if text and text != url), "")
    text = next(filter(None, _long_texts(places)), "")
    if not (url or title or text):
        return None
    file_id = ""
    if kind == "file_search":
        file_id = next(_words(places, _FILES), "")[:_WORD_CHARACTERS_MAX]
    return Source(
        url=url,
        title=title,
        text=text,
        score=_score(places),
        file_id=plain_text(file_id, _WORD_CHARACTERS_MAX),
        age=plain_text(next(_words(places, _AGES), ""), _WORD_CHARACTERS_MAX),
    )


def _linked(block: Mapping[str, Any]) -> Source | None:
    """Return the source that a link to a resource, or a resource with a text, is."""
    kind, resource = block.get("type"), block.get("resource")
    if kind == "resource_link":
        return _source({**block, "title": block.get("title") or block.get("name")}, "web_search")
    if kind == "resource" and isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return _source(resource, "web_search")
    return None


def _words(places: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[str]:
    """Yield the strings that are there under these names; the names decide, not the places."""
    for name in names:
        for place in places:
            value = place.get(name)
            if isinstance(value, str) and value.strip():
                yield value


def _long_texts(places: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name in _TEXTS:
        for place in places:
            yield plain_text(_joined(place.get(name)).strip(), TEXT_CHARACTERS_MAX)


def _joined(value: Any) -> str:
    """Return a text: a string, an object that has one, or several of these."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return value["text"] if isinstance(value.get("text"), str) else ""
    if isinstance(value, list):
        return "\n".join(
            filter(None, (_joined(each) for each in value if isinstance(each, str | dict)))
        )
    return ""


def one_line(text: str) -> str:
    """Return a title as it may stand in a line: no line feeds, no control characters, not long."""
    return " ".join(plain_text(text[: 4 * _TITLE_CHARACTERS_MAX]).split())[:_TITLE_CHARACTERS_MAX]


def _address(text: str, kind: BuiltinKind) -> str:
    """Return the address of something: an http one, for files of any scheme."""
    if (url := web_address(text)) or kind != "file_search":
        return url
    line = one_line(text)
    return line if "://" in line and len(line) <= URL_CHARACTERS_MAX and " " not in line else ""


def _score(places: Sequence[Mapping[str, Any]]) -> float | None:
    for name in _SCORES:
        for place in places:
            value = place.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                fits = math.isfinite(value) and 0 <= value <= 1
                return float(value) if fits else None
    return None
