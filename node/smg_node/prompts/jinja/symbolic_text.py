"""Symbolic text: stands for a message's text in one run, and records every operation and question.
Pure.

A template is run once with such values in the places of the texts of messages. Whatever it does
with one is either known here, and noted (is it empty, does it contain this word), or it is an
`UntraceableError`: nothing about a text can become part of what is printed, or of which way is
taken, without a record. A `SymbolicText` is no `str` for that reason: code that would look into a
text by itself finds none.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NoReturn, TypeAlias

import msgspec

Operation: TypeAlias = tuple[str, str | None]
"""A method of a text that makes another text, and its argument."""
Question: TypeAlias = Literal["true", "has", "starts", "ends", "is"]

QUESTIONS_MAX: Final = 128
"""What one run may ask; a template that asks more is not worth it."""
OPERATIONS: Final[dict[str, Callable[..., str]]] = {
    "strip": str.strip,
    "lstrip": str.lstrip,
    "rstrip": str.rstrip,
}
ASKED: Final[dict[Question, Callable[[str, str], bool]]] = {
    "true": lambda text, _: bool(text),
    "has": lambda text, word: word in text,
    "starts": str.startswith,
    "ends": str.endswith,
    "is": str.__eq__,
}
# A text is equal to nothing of another kind.
_OTHER_KINDS: Final = frozenset({type(None), bool, int, float, list, dict, tuple})


class UntraceableError(Exception):
    """A template does something with a text whose outcome depends on the text in a way not followed
    here.
    """


class Place(msgspec.Struct, frozen=True):
    """The text of one message, after these operations."""

    message: int
    operations: tuple[Operation, ...] = ()

    def text(self, texts: Sequence[str]) -> str:
        """Return what stands here where the messages have these texts."""
        text = texts[self.message]
        for name, argument in self.operations:
            text = OPERATIONS[name](text, argument)
        return text


class Asked(msgspec.Struct, frozen=True):
    """A question about one text, and the answer that the template was given."""

    place: Place
    question: Question
    word: str
    answer: bool

    def holds(self, texts: Sequence[str]) -> bool:
        """Whether the answer would be the same for these texts."""
        return ASKED[self.question](self.place.text(texts), self.word) is self.answer


class Notes:
    """Questions that one run has asked, and the number of times it has touched a text."""

    __slots__ = ("asked", "touched")

    def __init__(self) -> None:
        self.asked: dict[Asked, None] = {}
        self.touched = 0

    def ask(self, unseen: "SymbolicText", question: Question, word: str = "") -> bool:
        """Return the answer for the text that is there, and remember that it was given."""
        self.touch()
        answer = ASKED[question](unseen.value, word)
        if len(self.asked) >= QUESTIONS_MAX:
            raise UntraceableError("it asks too much")
        self.asked[Asked(unseen.place, question, word, answer)] = None
        return answer

    def touch(self) -> None:
        """Count one more use of a text."""
        self.touched += 1


def _stop(*_args: object, **_kwargs: object) -> NoReturn:
    raise UntraceableError("it looks into a text")


_STOP: Final[Any] = _stop


class Opaque:
    """A value with a text that shows nothing of it: all that is not followed ends the run."""

    __slots__ = ()
    # Every way that the interpreter, and code in C, has of looking into a value.
    __str__ = __repr__ = __format__ = __bytes__ = _STOP
    __len__ = __iter__ = __getitem__ = __reversed__ = __contains__ = _STOP
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _STOP
    __hash__ = _STOP
    __bool__ = __int__ = __float__ = __complex__ = __index__ = __call__ = _STOP
    __mul__ = __rmul__ = __mod__ = __rmod__ = __sub__ = __rsub__ = _STOP
    __truediv__ = __rtruediv__ = _STOP
    __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = __neg__ = __pos__ = __invert__ = _STOP
    __and__ = __rand__ = __or__ = __ror__ = __enter__ = __await__ = __aiter__ = __next__ = _STOP
    # Not AttributeError: `hasattr` would make an answer of it.
    __getattr__ = _STOP

    def __add__(self, other: object) -> "Joined":
        return Joined((*_parts(self), *_parts(other)))

    def __radd__(self, other: object) -> "Joined":
        return Joined((*_parts(other), *_parts(self)))


class SymbolicText(Opaque):
    """The text at one place; `value` is the one that is there in this run."""

    __slots__ = ("notes", "place", "value")

    def __init__(self, notes: Notes, place: Place, value: str) -> None:
        self.notes = notes
        self.place = place
        self.value = value

    @property
    def parts(self) -> "tuple[str | SymbolicText, ...]":
        """Itself."""
        self.notes.touch()
        return (self,)

    def operated(self, name: str, argument: str | None) -> "SymbolicText":
        """Return the text after that operation."""
        self.notes.touch()
        place = Place(self.place.message, (*self.place.operations, (name, argument)))
        return SymbolicText(self.notes, place, OPERATIONS[name](self.value, argument))

    def __bool__(self) -> bool:
        return self.notes.ask(self, "true")

    def __contains__(self, word: object) -> bool:
        return self.notes.ask(self, "has", _word(word))

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        return type(other) not in _OTHER_KINDS and self.notes.ask(self, "is", _word(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = _STOP


class Joined(Opaque):
    """Texts in a row, some of them unseen."""

    __slots__ = ("_parts",)

    def __init__(self, parts: "tuple[str | SymbolicText, ...]") -> None:
        self._parts = parts

    @property
    def parts(self) -> "tuple[str | SymbolicText, ...]":
        """The texts it is put together of."""
        return self._parts

    def __bool__(self) -> bool:
        if any(part for part in self._parts if type(part) is str):
            return True
        raise UntraceableError("it asks whether a sum of texts is empty")


def joined(parts: Sequence[Any]) -> "str | SymbolicText | Joined":
    """Return texts, seen and unseen, in one."""
    if all(type(part) is str for part in parts):
        return "".join(parts)
    pieces = tuple(
        piece for part in parts for piece in _parts(part) if type(piece) is not str or piece
    )
    (first, *more) = pieces
    return first if not more else Joined(pieces)


def _parts(value: object) -> "tuple[str | SymbolicText, ...]":
    if type(value) is str:
        return (value,)
    if isinstance(value, (SymbolicText, Joined)):
        return value.parts
    raise UntraceableError(f"it adds a {type(value).__name__} to a text")


def _word(value: object) -> str:
    if type(value) is str:
        return value
    raise UntraceableError(f"it compares a text with a {type(value).__name__}")
