"""Media forms: pictures and clips among the texts of a turn, in the form that a template and its model want. Pure.

A template that goes through the parts of a turn is given a part for each medium and writes the model's anchor itself.
For one that concatenates strings, or knows no part of that kind, the anchor is written here, between the texts or
before them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from smg_node.core.errors import SmgError, invalid, unsupported
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaKind,
    MediaPart,
    Part,
    TextPart,
    Turn,
    media_of,
)
from smg_node.prompts.analysis.media_parts import PicturePart, clip_part
from smg_node.prompts.analysis.template_facts import ContentForm
from smg_node.prompts.call_order import in_call_order
from smg_node.prompts.clip_marks import ClipMark

ContentOrder: TypeAlias = Literal["as_sent", "media_first"]

NOUNS: Final[Mapping[MediaKind, tuple[str, str]]] = {
    "image": ("picture", "pictures"),
    "video": ("video", "videos"),
    "audio": ("sound", "sound"),
    "file": ("file", "files"),
}
"""What one and several of a kind are called in messages."""
_ANCHORED: Final[tuple[MediaKind, ...]] = ("image", "video", "audio")
_LINE_END: Final = "\n"


class MediaForms(msgspec.Struct, frozen=True, gc=False):
    """How one model sees media.

    `anchor` is the token text that stands once for each picture in the finished prompt. `literal` is what is written
    for a picture where the template only concatenates: it holds the anchor once, and is the anchor alone where empty.
    `order` is where it is written then: where the picture was sent, or before all texts of its turn. `kinds` are the
    media that this model sees at all; `clips` are the marks of videos and sound, without which such cannot be written
    for a template that concatenates.
    """

    anchor: str
    order: ContentOrder = "as_sent"
    kinds: tuple[MediaKind, ...] = ("image",)
    literal: str = ""
    clips: tuple[ClipMark, ...] = ()

    @property
    def written(self) -> str:
        """Return what is written for a picture among strings."""
        return self.literal or self.anchor

    def anchor_of(self, kind: MediaKind) -> str:
        """Return the token text that stands once for each medium of that kind, "" where it is not known."""
        if kind == "image":
            return self.anchor
        return next((mark.anchor for mark in self.clips if mark.kind == kind), "")

    def literal_of(self, kind: MediaKind) -> str:
        """Return what is written for a medium of that kind among strings, "" where it is not known."""
        if kind == "image":
            return self.written
        return next((mark.literal for mark in self.clips if mark.kind == kind), "")


def ordered_media(turns: Sequence[Turn]) -> list[MediaPart]:
    """Return the media of a conversation in the order in which every prompt of it shows them.

    That is the order of the turns, but for results of tools, which are shown in the order of their calls.
    INVALID_REQUEST where two calls of one turn have the same id, as then nobody knows whose picture is whose.
    """
    media = media_of(in_call_order(turns))
    if len(media) > 1:
        _check_ids(turns)
    return media


def check_kinds(media: Iterable[MediaPart], forms: MediaForms | None, model: str = "") -> None:
    """Raise INVALID_REQUEST (`unsupported_parameter`) at the first part of a kind that the model does not see.

    Without `forms` it sees none. `model` is its name, for the message.
    """
    for part in media:
        if forms is None or part.kind not in forms.kinds:
            raise not_seen(part, model)


def not_seen(part: MediaPart, model: str = "") -> SmgError:
    """Return the error for a part of a kind that the model does not see."""
    return unsupported(f"{_who(model)} takes no {NOUNS[part.kind][1]}", part.where)


class MediaNames(msgspec.Struct, frozen=True, gc=False):
    """The parts that a template knows: what it calls that of a picture, "" for none, and those of other kinds."""

    picture: PicturePart = ""
    clips: tuple[MediaKind, ...] = ()

    def know(self, part: Part) -> bool:
        """Whether the template prints something for a part of this kind, other than text."""
        if isinstance(part, TextPart):
            return False
        return bool(self.picture) if part.kind == "image" else part.kind in self.clips


def content_with_media(
    parts: Sequence[Part], form: ContentForm, names: MediaNames, forms: MediaForms | None
) -> Any:
    """Return the content of a turn with media, as its template takes it.

    `form` is how the template wants texts, `names` are the parts it knows.
    INVALID_REQUEST (`unsupported_parameter`) at a part that the model does not see, or that its template cannot show.
    """
    check_kinds((part for part in parts if isinstance(part, MediaPart)), forms)
    assert forms is not None, "a model that sees no media has been refused"
    if any(names.know(part) for part in parts):
        return [_part(part, names, forms) for part in parts]
    if forms.order == "media_first":
        parts = sorted(parts, key=_is_text)
    texts = [part.text if isinstance(part, TextPart) else _literal(part, forms) for part in parts]
    if form == "string":
        return _LINE_END.join(texts)
    return [{"type": "text", "text": text} for text in texts]


class PicturedPrompt:
    """A prompt with media: what is checked before it is rendered, and afterwards.

    `mendable` is whether it keeps the order of its media in a form that has its system messages in front.
    """

    def __init__(self, prompt: ChatPrompt, forms: MediaForms | None, model: str) -> None:
        """Check that the model sees all of it, and that no text holds its anchor; see `check_kinds`, `ordered_media`."""
        media = ordered_media(prompt.turns)
        check_kinds(media, forms, model)
        assert forms is not None, "a model that sees no media has been refused"
        self._prompt = prompt
        self._who = _who(model)
        self._media = media
        self._anchors = {kind: anchor for kind in _ANCHORED if (anchor := forms.anchor_of(kind))}
        for kind, anchor in self._anchors.items():
            if any(anchor in text for turn in prompt.turns for text in _texts(turn)):
                raise self._typed(kind)
        self.mendable = not any(
            turn.role in ("system", "developer") and media_of([turn]) for turn in prompt.turns
        )

    def check(self, text: str) -> None:
        """Raise INVALID_REQUEST unless the anchor of each kind stands in the prompt's `text` once for each medium of it.

        There are too few where the template leaves media of some turns out, too many where a text of the
        conversation holds the anchor: an engine would take that for the place of one.
        """
        for kind, anchor in self._anchors.items():
            sent = [part for part in self._media if part.kind == kind]
            found, wanted = text.count(anchor), len(sent)
            if found < wanted:
                raise unsupported(
                    f"the chat template of {self._who} shows only {found} of the {wanted} {NOUNS[kind][1]}",
                    sent[0].where,
                )
            if found > wanted:
                raise self._typed(kind)

    def _typed(self, kind: MediaKind) -> SmgError:
        one, many = NOUNS[kind]
        return invalid(
            f"the text {self._anchors[kind]!r} stands for a {one} in the prompts of {self._who};"
            f" it cannot be said in a conversation with {many if self._sends(kind) else 'media'}",
            self._prompt.where,
        )

    def _sends(self, kind: MediaKind) -> bool:
        return any(part.kind == kind for part in self._media)


def _texts(turn: Turn) -> Sequence[str]:
    if isinstance(turn.content, str):
        return (turn.content,)
    return [part.text for part in turn.content or () if isinstance(part, TextPart)]


def _who(model: str) -> str:
    return f"the model {model!r}" if model else "this model"


def _check_ids(turns: Iterable[Turn]) -> None:
    answers = {turn.answers_call: turn for turn in turns if turn.role == "tool"}
    for turn in turns:
        ids = [call.call_id for call in turn.calls]
        for call_id in ids:
            answer = answers.get(call_id)
            if answer is not None and ids.count(call_id) > 1 and media_of([answer]):
                why = f"two calls of one turn have the id {call_id!r}: their pictures cannot be told apart"
                raise invalid(why, media_of([answer])[0].where)


def _is_text(part: Part) -> bool:
    return isinstance(part, TextPart)


def _part(part: Part, names: MediaNames, forms: MediaForms) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if not names.know(part):
        return {"type": "text", "text": _literal(part, forms)}
    # Templates that print the value of the part, rather than a word of their own, print the anchor.
    written = forms.literal_of(part.kind)
    if part.kind != "image":
        return clip_part(part.kind, written or part.kind)
    if names.picture == "image_url":
        return {"type": "image_url", "image_url": {"url": written}}
    return {"type": "image", "image": written}


def _literal(part: MediaPart, forms: MediaForms) -> str:
    written = forms.literal_of(part.kind)
    if not written:
        raise unsupported(
            f"the chat template of this model cannot show {NOUNS[part.kind][1]}", part.where
        )
    return written
