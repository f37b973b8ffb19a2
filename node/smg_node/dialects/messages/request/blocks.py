"""Content blocks: texts, pictures, documents and search results, as pieces of a turn's content.

A piece is a text or a medium. Texts that follow each other are joined by line ends, as everywhere in this
node. Blank ones are left out, unless nothing else is there.
"""

import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from smg_node.core.generation.request import MediaPart, Part, TextPart, Tool, Turn
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.messages.cache_control import check_cache_control
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.messages.request.tools import functions_text

Piece: TypeAlias = str | MediaPart | Tool
"""A tool is one that is made known here: neighbours are told in one list."""
_Reader: TypeAlias = Callable[[MessagesDraft, Cursor], "list[Piece]"]

_EPHEMERAL: Final = {"type": "ephemeral"}
_IMAGE_TYPE: Final = re.compile(r"image/[a-z0-9.+-]{1,32}\Z")
_SOURCES: Final = ("base64", "url", "file")
_DOCUMENT_SOURCES: Final = ("text", "content", "base64", "url", "file")
_NO_FILES: Final = "is not supported: this gateway stores no files; send the content itself"
_TITLE_MAX: Final = 8_192
_NAME_MAX: Final = 128
_TYPE_MAX: Final = 128
_ENCODED_KEYS: Final = ("type", "media_type", "data")
_FAILED: Final = {"is_error": True}


def plain_text(block: Any) -> str | None:
    """Return the text of a block that has nothing else, but for a mark of the cache; None for any other."""
    if type(block) is not dict or block.get("type") != "text":
        return None
    text = block.get("text")
    if type(text) is not str:
        return None
    if len(block) == 2 or (len(block) == 3 and block.get("cache_control") == _EPHEMERAL):
        return text
    return None


def read_text(block: Cursor) -> str | None:
    """Return the text of a text block; its citations belong to an earlier answer."""
    block.only(("type", "text", "cache_control", "citations"))
    check_cache_control(block)
    block.array("citations")
    return block.text("text", required=True)


def pieces_at(
    draft: MessagesDraft, cursor: Cursor, key: str, readers: Mapping[str, _Reader]
) -> list[Piece]:
    """Return the pieces of the content at `key`: a string, or blocks of these types."""
    content = cursor.values.get(key)
    if type(content) is str:
        return [content]
    if content is None:
        return []
    if type(content) is not list:
        why = f"must be a string or an array of blocks, not {kind_of(content)}"
        cursor.problem(key, why, "invalid_type")
        return []
    pieces: list[Piece] = []
    for index, block in enumerate(content):
        text = plain_text(block)
        if text is not None:
            pieces.append(text)
            continue
        inside = cursor.element(key, index, block)
        if inside is not None:
            pieces += read_block(draft, inside, readers)
    return pieces


def read_block(draft: MessagesDraft, block: Cursor, readers: Mapping[str, _Reader]) -> list[Piece]:
    """Return the pieces of one block; one of another type is noted."""
    kind = block.text("type", required=True)
    if kind is None:
        return []
    reader = readers.get(kind)
    if reader is None:
        strange(block, kind, readers)
        return []
    return reader(draft, block)


def strange(block: Cursor, kind: str, known: Iterable[str]) -> None:
    """Note that a block of this type has no place here."""
    names = ", ".join(repr(name) for name in known)
    block.problem("type", f"must be one of {names} here; got {quoted(kind)}", "unsupported_block")


def content_of(pieces: Sequence[Piece]) -> str | tuple[Part, ...]:
    """Return the content of a turn: a string where it is nothing but text."""
    if len(pieces) == 1 and type(pieces[0]) is str:
        return pieces[0]
    runs: list[list[str] | MediaPart] = []
    known: list[Tool] = []
    for piece in pieces:
        if isinstance(piece, Tool):
            known.append(piece)
            continue
        _tell(runs, known)
        if isinstance(piece, MediaPart):
            runs.append(piece)
        elif piece and not piece.isspace():
            _say(runs, piece)
    _tell(runs, known)
    if not runs:
        return next((piece for piece in pieces if type(piece) is str), "")
    if len(runs) == 1 and type(runs[0]) is list:
        return "\n".join(runs[0])
    return tuple(TextPart("\n".join(run)) if type(run) is list else _medium(run) for run in runs)


def result_turn(pieces: list[Piece], call_id: str, *, failed: bool) -> Turn:
    """Return the turn of a tool's result."""
    content = content_of(pieces)
    if failed:
        return Turn("tool", content, answers_call=call_id, extra=_FAILED)
    if pieces and isinstance(pieces[0], Tool):
        names = [piece.name for piece in pieces if isinstance(piece, Tool)]
        if len(names) == len(pieces):
            return Turn("tool", content, answers_call=call_id, references=tuple(names))
    return Turn("tool", content, answers_call=call_id)


def is_blank(content: str | tuple[Part, ...]) -> bool:
    """Whether content has nothing to see."""
    return type(content) is str and (not content or content.isspace())


def _medium(run: "list[str] | MediaPart") -> MediaPart:
    assert isinstance(run, MediaPart), "a run of texts is a list"
    return run


def _say(runs: "list[list[str] | MediaPart]", text: str) -> None:
    last = runs[-1] if runs else None
    if type(last) is list:
        last.append(text)
    else:
        runs.append([text])


def _tell(runs: "list[list[str] | MediaPart]", known: list[Tool]) -> None:
    if known:
        _say(runs, functions_text(known))
        known.clear()


# ── One reader for each type ─────────────────────────────────────────────────


def _text_piece(draft: MessagesDraft, block: Cursor) -> list[Piece]:
    text = read_text(block)
    return [] if text is None else [text]


def _image(draft: MessagesDraft, block: Cursor) -> list[Piece]:
    block.only(("type", "source", "cache_control", "transformations"))
    check_cache_control(block)
    if block.object("transformations") is not None:
        block.ignore("transformations")
    source = block.object("source", required=True)
    kind = None if source is None else source.word("type", _SOURCES, required=True)
    if source is None or kind is None:
        return []
    if kind == "file":
        source.unsupported("type", _NO_FILES)
        return []
    if kind == "url":
        source.only(("type", "url"))
        address = source.text("url", required=True, characters_min=1)
    else:
        address = _data_url(source)
    if address is None:
        return []
    shelf = draft.parts
    shelf.media["image"] = shelf.media.get("image", 0) + 1
    if shelf.media["image"] > shelf.limit("image"):
        block.problem("", f"a request may have at most {shelf.limit('image')} images")
        return []
    return [MediaPart("image", address, source.path())]


def _data_url(source: Cursor) -> str | None:
    source.only(("type", "media_type", "data"))
    media = source.text("media_type", required=True)
    data = source.text("data", required=True, characters_min=1)
    if media is not None and not _IMAGE_TYPE.match(media):
        source.problem("media_type", f"must be the type of an image; got {quoted(media)}")
        return None
    return None if media is None or data is None else f"data:{media};base64,{data}"


def _document(draft: MessagesDraft, block: Cursor) -> list[Piece]:
    block.only(("type", "source", "title", "context", "citations", "cache_control"))
    check_cache_control(block)
    _check_citations(block)
    title = block.text("title", characters_max=_TITLE_MAX)
    context = block.text("context")
    source = block.object("source", required=True)
    kind = None if source is None else source.word("type", _DOCUMENT_SOURCES, required=True)
    if source is None or kind is None:
        return []
    if kind == "file":
        source.unsupported("type", _NO_FILES)
        return []
    if kind == "url" or (kind == "base64" and not _is_text(source)):
        found = _file(draft, source, kind, title)
        return [context, *found] if context and found else found
    draft.documents += 1
    head = _frame("document", index=str(draft.documents), title=title, context=context)
    if kind == "base64":
        inside = _encoded_text(source)
    elif kind == "text":
        source.only(("type", "media_type", "data"))
        source.word("media_type", ("text/plain",))
        data = source.text("data", required=True)
        inside = [] if data is None else [data]
    else:
        source.only(("type", "content"))
        source.raw("content", required=True)
        inside = pieces_at(draft, source, "content", IN_DOCUMENTS)
    pieces = _framed(head, inside, "</document>")
    if len(pieces) == 1 and type(pieces[0]) is str:
        said = content_of(inside)
        text = f"{context}\n\n{said}" if context else said
        draft.framed = {"doc_id": draft.documents, "title": title or "", "text": text}
    return pieces


def _is_text(source: Cursor) -> bool:
    media = source.values.get("media_type")
    return type(media) is str and media.lower().startswith("text/")


def _encoded_text(source: Cursor) -> list[Piece]:
    """Return the text of a document that came as base64."""
    source.only(_ENCODED_KEYS)
    data = source.text("data", required=True)
    if data is None:
        return []
    try:
        return [binascii.a2b_base64(data, strict_mode=True).decode()]
    except ValueError:
        source.problem("data", "must be UTF-8 text, encoded in base64")
        return []


def _file(draft: MessagesDraft, source: Cursor, kind: str, title: str | None) -> list[Piece]:
    """Return a document that is no text yet: what it is shows when a model is chosen."""
    if kind == "url":
        source.only(("type", "url"))
        address = source.text("url", required=True, characters_min=1)
    else:
        source.only(_ENCODED_KEYS)
        media = source.text("media_type", required=True, characters_min=1, characters_max=_TYPE_MAX)
        data = source.text("data", required=True, characters_min=1)
        if media is not None and ("," in media or ";" in media):
            source.problem("media_type", "must be a media type, such as 'application/pdf'")
        address = None if media is None or data is None else f"data:{media};base64,{data}"
    if address is None:
        return []
    shelf = draft.parts
    shelf.media["file"] = shelf.media.get("file", 0) + 1
    return [MediaPart("file", address, source.path(), name=title or "")]


def _search_result(draft: MessagesDraft, block: Cursor) -> list[Piece]:
    block.only(("type", "source", "title", "content", "citations", "cache_control"))
    check_cache_control(block)
    _check_citations(block)
    title = block.text("title", required=True, characters_max=_TITLE_MAX)
    source = block.text("source", required=True, characters_max=_TITLE_MAX)
    if type(block.raw("content", required=True)) is str:
        block.problem("content", "must be an array of blocks, not a string", "invalid_type")
        return []
    head = _frame("search_result", title=title, source=source)
    return _framed(head, pieces_at(draft, block, "content", TEXTS), "</search_result>")


def _check_citations(block: Cursor) -> None:
    citations = block.object("citations")
    if citations is not None and citations.flag("enabled"):
        citations.unsupported(
            "enabled", "is not supported: models here do not say where they have something from"
        )


def _frame(name: str, **attributes: str | None) -> str:
    said = "".join(
        f' {key}="{value.replace(chr(34), "&quot;")}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{said}>"


def _framed(head: str, inside: Sequence[Piece], tail: str) -> list[Piece]:
    content = content_of(inside)
    if type(content) is str:
        return [f"{head}\n{content}\n{tail}"]
    return [head, *(part.text if isinstance(part, TextPart) else part for part in content), tail]


def _reference(draft: MessagesDraft, block: Cursor) -> list[Piece]:
    block.only(("type", "tool_name", "cache_control"))
    check_cache_control(block)
    name = block.text("tool_name", required=True, characters_min=1, characters_max=_NAME_MAX)
    if name is None:
        return []
    tool = draft.tools.get(name)
    if tool is None:
        why = f"there is no tool called {quoted(name)}"
        block.problem("tool_name", why, "tool_reference_unresolved")
        return []
    return [tool]


TEXTS: Final[Mapping[str, _Reader]] = {"text": _text_piece}
"""Where only text may stand."""
IN_DOCUMENTS: Final[Mapping[str, _Reader]] = {**TEXTS, "image": _image}
"""Inside a document."""
SHOWN: Final[Mapping[str, _Reader]] = {
    **IN_DOCUMENTS,
    "document": _document,
    "search_result": _search_result,
}
"""What a user shows, besides results of tools."""
RETURNED: Final[Mapping[str, _Reader]] = {**SHOWN, "tool_reference": _reference}
"""What a tool returns."""
