"""File reader: files of a conversation become what their content is: text in the prompt, pictures, videos or sound.

A client names a file without saying what a model has to do with it. For models that engines serve here that is found
before the prompt is rendered; vendors and workers that speak HTTP are sent files as they came.
"""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final, cast

from msgspec.structs import replace

from smg_node.core.cooperative_steps import REST_S
from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaKind,
    MediaPart,
    Part,
    TextPart,
    Turn,
)
from smg_node.media.file_types import BEGINNING, PDF, file_type, text_in
from smg_node.media.sources import InlineSource, decoded, source_of, too_large
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.picture_files import Fetches

CODE: Final = "unsupported_media"
PATIENCE_S: Final = 30.0
"""How long room is waited for at most, as for what is then made of it."""
_MEDIA: Final = ("image", "video", "audio")
_BEGINNING_CHARACTERS: Final = BEGINNING * 4
_SCHEME_CHARACTERS: Final = 16
_REST: Final = partial(time.sleep, REST_S)


class FileReader:
    """Reader of one process. `fetcher` returns what fetches, made at its first call."""

    def __init__(
        self,
        options: Callable[[], MediaOptions],
        fetcher: Callable[[], Fetches],
        budget: ByteBudget,
        threads: Executor,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._fetcher = fetcher
        self._budget = budget
        self._threads = threads
        self._monotonic_s = monotonic_s

    async def read(self, prompt: ChatPrompt, patient_until_s: float = 0.0) -> ChatPrompt:
        """Return a prompt without files: each is the text or medium that its content is.

        INVALID_REQUEST with the path of one that is none of those, such as a PDF, or cannot be had. If the memory for
        what is fetched is taken it is waited for until `patient_until_s`, where that is not 0.
        """
        room = _Room(self._budget, patient=bool(patient_until_s))
        try:
            if patient_until_s:
                patience_s = min(patient_until_s - self._monotonic_s(), PATIENCE_S)
                await self._budget.take_in_line(0, 0, patience_s)
            turns = [await self._turn(turn, room) for turn in prompt.turns]
        finally:
            # Whoever takes in what the files became charges it anew.
            room.close()
        return replace(prompt, turns=tuple(turns), handed=None)

    async def _turn(self, turn: Turn, room: "_Room") -> Turn:
        content = turn.content
        if type(content) is not tuple or not any(_is_file(part) for part in content):
            return turn
        parts: list[Part] = []
        beside_file = False
        for part in content:
            found = await self._found(part, room) if isinstance(part, MediaPart) else part
            _append(parts, found, joined=beside_file or _is_file(part))
            beside_file = _is_file(part)
        return replace(turn, content=tuple(parts))

    async def _found(self, part: MediaPart, room: "_Room") -> Part:
        if part.kind != "file":
            return part
        asked = replace(part, source=_address(part.source))
        options = self._options()
        most = max(options.bytes_max(kind) for kind in _MEDIA)
        source = source_of(asked, bytes_max=most)
        loop = asyncio.get_running_loop()
        if isinstance(source, InlineSource):
            read = partial(_inline, asked, source, options)
            return await loop.run_in_executor(self._threads, read)
        return await self._fetched(asked, options, room)

    async def _fetched(self, part: MediaPart, options: MediaOptions, room: "_Room") -> Part:
        before = room.taken
        # Whose prompt it is is not known here: where that matters, nothing is kept.
        tenant = None if options.tenants_apart else ""
        (content,) = await self._fetcher().fetch([part], room.charge, tenant=tenant)
        read = partial(_of_content, part, content, options)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, read)
        # Of the file nothing is left but what it became.
        file = room.taken - before
        room.charge(len(found.source if isinstance(found, MediaPart) else found.text))
        room.give(file)
        return found


class _Room:
    """Memory that the fetched files of one prompt take while it is read; who is `patient` has waited for it already."""

    def __init__(self, budget: ByteBudget, *, patient: bool) -> None:
        self._budget = budget
        self._patient = patient
        self.taken = 0

    def charge(self, size: int) -> None:
        """Take memory; SmgError where it cannot be had."""
        if self._patient:
            # Nobody can wait in the middle of what an origin sends.
            self._budget.check(size, self.taken)
            self._budget.add(size)
        else:
            self._budget.take(size, self.taken)
        self.taken += size

    def give(self, size: int) -> None:
        """Give memory back."""
        self._budget.give(size)
        self.taken -= size

    def close(self) -> None:
        """Give all of it back."""
        self.give(self.taken)


def _inline(part: MediaPart, source: InlineSource, options: MediaOptions) -> Part:
    """Return what a file in the request is; in a thread. Of pictures, videos and sound only the beginning is read."""
    first = source.encoded[source.start : source.start + _BEGINNING_CHARACTERS]
    beginning = decoded(InlineSource(first, 0, 0), part)
    found = file_type(beginning[:BEGINNING], _declared(part.source))
    kind = _kind(found)
    if kind is not None:
        return replace(part, kind=kind)
    if not found and source.size > options.bytes_max("file"):
        raise too_large(part, source.size, options.bytes_max("file"))
    return _text(part, found, decoded(source, part, _REST) if not found else b"")


def _of_content(part: MediaPart, content: bytes, options: MediaOptions) -> Part:
    """Return what a fetched file is; in a thread."""
    found = file_type(content[:BEGINNING])
    kind = _kind(found)
    if kind is None:
        return _text(part, found, content)
    if len(content) > options.bytes_max(kind):
        raise too_large(replace(part, kind=kind), len(content), options.bytes_max(kind))
    source = f"data:{found};base64,{b64encode(content).decode()}"
    return replace(part, kind=kind, source=source)


def _text(part: MediaPart, found: str, content: bytes) -> TextPart:
    """Return the text of a file as a document in the prompt; INVALID_REQUEST for one that is no text."""
    text = text_in(content) if not found else None
    if text is None:
        raise _not_shown(part, found)
    return TextPart(f"<document{_title(part.name)}>\n{text.rstrip()}\n</document>")


def _not_shown(part: MediaPart, found: str) -> SmgError:
    if found == PDF:
        why = (
            "no model here reads a PDF: send its text, or its pages as pictures; vendors and workers that speak HTTP"
            " are sent PDFs as they are"
        )
    else:
        why = (
            f"it is {found or 'of no kind that is known here'}: files are shown to a model where they are pictures,"
            " videos, sound or text (UTF-8)"
        )
    return invalid(why, part.where, CODE)


def _kind(found: str) -> MediaKind | None:
    kind = found.partition("/")[0]
    return cast(MediaKind, kind) if kind in _MEDIA else None


def _address(source: str) -> str:
    """Return a data URL for base64 that came without its head, as files of Chat may; other addresses as they are."""
    if source[:5].lower() == "data:" or "://" in source[:_SCHEME_CHARACTERS]:
        return source
    return f"data:;base64,{source}"


def _declared(source: str) -> str:
    return source[5 : source.find(",", 0, 256)].partition(";")[0]


def _title(name: str) -> str:
    said = " ".join(name.replace('"', "&quot;").split())
    return f' title="{said}"' if said else ""


def _is_file(part: Part) -> bool:
    return isinstance(part, MediaPart) and part.kind == "file"


def _append(parts: list[Part], part: Part, *, joined: bool) -> None:
    """Add a part; a text beside that of a file becomes one with it, on a line of its own."""
    last = parts[-1] if parts else None
    if joined and isinstance(last, TextPart) and isinstance(part, TextPart):
        parts[-1] = TextPart(f"{last.text}\n{part.text}")
    else:
        parts.append(part)


def has_files(turns: Sequence[Turn]) -> bool:
    """Whether some turns have files."""
    return any(
        type(turn.content) is tuple and any(_is_file(part) for part in turn.content)
        for turn in turns
    )
