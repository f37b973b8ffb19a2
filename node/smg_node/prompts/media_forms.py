"""Media forms: pictures and clips among the texts of a turn, in the form that a template and its model want. Pure.

A template that goes through the parts of a turn is given a part for each picture and writes the model's anchor itself.
For one that concatenates strings the anchor is written here, between the texts or before them.
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
from smg_node.prompts.analysis.template_facts import ContentForm, PicturePart
from smg_node.prompts.call_order import in_call_order

ContentOrder: TypeAlias = Literal["as_sent", "media_first"]

_NAMES: Final[Mapping[MediaKind, str]] = {
    "image": "pictures",
    "video": "videos",
    "audio": "sound",
    "file": "files",
}
_LINE_END: Final = "\n"


class MediaForms(msgspec.Struct, frozen=True, gc=False):
    """How one model sees media.

    `anchor` is the token text that stands once for each picture in the finished prompt. `literal` is what is written
    for a picture where the template only concatenates: it holds the anchor once, and is the anchor alone where empty.
    `order` is where it is written then: where the picture was sent, or before all texts of its turn. `kinds` are the
    media that this model sees at all; of those only pictures can be written for a template that concatenates.
    """

    anchor: str
    order: ContentOrder = "as_sent"
    kinds: tuple[MediaKind, ...] = ("image",)
    literal: str = ""

    @property
    def written(self) -> str:
        """Return what is written for a picture among strings."""
        return self.literal or self.anchor


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
    return unsupported(f"{_who(model)} takes no {_NAMES[part.kind]}", part.where)


def content_with_media(
    parts: Sequence[Part], form: ContentForm, picture: PicturePart, forms: MediaForms | None
) -> Any:
    """Return the content of a turn with media, as its template takes it.

    `form` is how the template wants texts, `picture` what it calls the part that is a picture, "" where it knows none.
    INVALID_REQUEST (`unsupported_parameter`) at a part that the model does not see, or that its template cannot show.
    """
    check_kinds((part for part in parts if isinstance(part, MediaPart)), forms)
    assert forms is not None, "a model that sees no media has been refused"
    if picture:
        return [_part(part, picture, forms) for part in parts]
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
        self._forms = forms
        self._who = _who(model)
        self._pictures = [part for part in media if part.kind == "image"]
        if any(forms.anchor in text for turn in prompt.turns for text in _texts(turn)):
            raise self._typed()
        self.mendable = not any(
            turn.role in ("system", "developer") and media_of([turn]) for turn in prompt.turns
        )

    def check(self, text: str) -> None:
        """Raise INVALID_REQUEST unless the anchor stands in the prompt's `text` once for each picture.

        There are too few where the template leaves pictures of some turns out, too many where a text of the
        conversation holds the anchor: an engine would take that for the place of a picture.
        """
        found, wanted = text.count(self._forms.anchor), len(self._pictures)
        if found < wanted:
            raise unsupported(
                f"the chat template of {self._who} shows only {found} of the {wanted} pictures",
                self._pictures[0].where,
            )
        if found > wanted:
            raise self._typed()

    def _typed(self) -> SmgError:
        return invalid(
            f"the text {self._forms.anchor!r} stands for a picture in the prompts of {self._who};"
            " it cannot be said in a conversation with pictures",
            self._prompt.where,
        )


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


def _part(part: Part, picture: PicturePart, forms: MediaForms) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if part.kind == "image":
        # Templates that print the value of the part, rather than a word of their own, print the anchor.
        if picture == "image_url":
            return {"type": "image_url", "image_url": {"url": forms.written}}
        return {"type": "image", "image": forms.written}
    return {"type": part.kind, part.kind: part.kind}


def _literal(part: MediaPart, forms: MediaForms) -> str:
    if part.kind != "image":
        raise unsupported(
            f"the chat template of this model cannot show {_NAMES[part.kind]}", part.where
        )
    return forms.written
