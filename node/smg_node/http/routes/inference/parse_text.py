"""Parse routes: read a whole text as a model's answer, for tool calls or reasoning.

The client names the format. There is no second parser: the text goes through the scanner of
streams, some of it at a time, so that a long one does not block the loop.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.dialects.parse.reader import ParseBody, read_parse_calls, read_parse_reasoning
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply, name_list
from smg_node.parsers.reading.parser import Parser
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.parser_labels import reasoning_named, thinks_first, tools_named
from smg_node.parsers.selection.registry import known_joint

SLICE_CHARACTERS: Final = 32 * 1024
"""Characters that are read before others have their turn; about 5 ms."""


class ParseRoutes:
    """Serves the parsers."""

    def __init__(self, parts: HttpParts, bodies: BodyReader) -> None:
        self._parts = parts
        self._bodies = bodies

    async def calls(self, request: HttpRequest) -> Reply:
        """Return the tool calls of a text, and the rest of it."""
        asked = read_parse_calls(await self._body(request), self._parts.reading)
        self._note(request, asked)
        try:
            name = tools_named(asked.parser)
        except SmgError as error:
            raise invalid(error.message, "tool_call_parser") from error
        joint = name in known_joint()
        printing = Printing(Chosen(reasoning=name if joint else "plain", tools=name))
        pieces = await _read(self._parser(printing, asked, calls=True), asked.text)
        said: dict[str, Any] = {
            "remaining_text": _joined(pieces, Text),
            "tool_calls": _calls(pieces),
            "success": True,
        }
        thought = _joined(pieces, Reasoning)
        if thought:
            said["reasoning_text"] = thought
        return json_reply(said)

    async def reasoning(self, request: HttpRequest) -> Reply:
        """Return the reasoning of a text, and the rest of it."""
        asked = read_parse_reasoning(await self._body(request), self._parts.reading)
        self._note(request, asked)
        try:
            name, options = reasoning_named(asked.parser)
        except SmgError as error:
            raise invalid(error.message, "reasoning_parser") from error
        tools = name if name in known_joint() else "plain"
        printing = Printing(Chosen(name, tools, options or frozenset()))
        # A text is all there is here: what opened its thought may be at the end of a prompt that is not.
        if printing.start(asked.prompt) == "undecided":
            opener = printing.missed_opener(asked.text, thinks_first=thinks_first(asked.parser))
            asked = msgspec.structs.replace(asked, prompt=opener)
        pieces = await _read(self._parser(printing, asked, calls=False), asked.text)
        return json_reply(
            {
                "normal_text": _joined(pieces, Text),
                "reasoning_text": _joined(pieces, Reasoning),
                "success": True,
            }
        )

    async def _body(self, request: HttpRequest) -> dict[str, Any]:
        found = await self._bodies.json(request)
        nesting_max = self._parts.options.nesting_max
        return await self._bodies.large.decoded(found, nesting_max=nesting_max)

    def _note(self, request: HttpRequest, asked: ParseBody) -> None:
        for name in asked.ignored:
            self._parts.meters.ignored_parameter(name)
        if asked.ignored:
            request.reply_headers["x-smg-ignored-params"] = name_list(asked.ignored)

    def _parser(self, printing: Printing, asked: ParseBody, *, calls: bool) -> Parser:
        ids = self._parts.ids
        return printing.scanner(
            tools=asked.tools,
            calls=calls,
            tail=asked.prompt,
            new_id=lambda _name, _ordinal: ids.new("call_"),
        )


async def _read(parser: Parser, text: str) -> Sequence[Piece]:
    pieces: list[Piece] = []
    for start in range(0, len(text), SLICE_CHARACTERS):
        pieces += parser.feed(text[start : start + SLICE_CHARACTERS])
        await asyncio.sleep(0)
    pieces += parser.finish()
    return pieces


def _joined(pieces: Sequence[Piece], kind: type[Text] | type[Reasoning]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, kind))


def _calls(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    calls: list[tuple[Call, list[str]]] = []
    for piece in pieces:
        if isinstance(piece, Call):
            calls.append((piece, []))
        elif isinstance(piece, Arguments):
            calls[-1][1].append(piece.text)
    return [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": "".join(texts)},
        }
        for call, texts in calls
    ]
