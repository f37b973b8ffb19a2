"""Prompt skeleton: fixed text around the messages for one form of conversation, found by one
symbolic run.

A conversation's form is its roles, in their order. For most templates the prompt is then the same
words around the texts of the messages, whatever they are: rendering is joining, 1 us where the
template takes 9 to 60. Which words, and what must be true of the texts for it, a run with symbolic
texts tells (`symbolic_run`). It is exact by construction: such a run can print nothing and go no
way that depends on a text other than as written down. On top of that its text must be the one that
was really rendered, or the form is not used.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

from smg_node.core.generation.request import NOTHING_SAID, ChatPrompt, Turn
from smg_node.prompts.jinja.sandbox import Moment
from smg_node.prompts.jinja.symbolic_text import Asked, Joined, Place, SymbolicText

Key: TypeAlias = tuple[Any, ...]
"""Who speaks; where there is more to it: whether the answer is begun, who speaks, and what else the template is told."""

FORMS_MAX: Final = 128
"""Forms remembered per template, the oldest goes first: with as many words as may be, 4 MB."""
TURNS_MAX: Final = 64
"""Conversations of more messages hardly share a form with another one."""
WORDS_MAX: Final = 32_768
"""Characters of a form beside its messages."""
_VARIANTS_MAX: Final = 4
_TOLD_MAX: Final = 4
_TOLD_CHARACTERS_MAX: Final = 64
_TOLD_KINDS: Final = frozenset((str, bool, int, type(None)))
_TRIES_MAX: Final = 6
# A template touches a text this many times at least: it is copied on its way through filters and into the prompt.
_COPIES: Final = 8
_TEXTS: Final = slice(1, None, 2)
"""Where among the pieces of a prompt its texts are."""
_content_of: Final = attrgetter("content")
_role_of: Final = attrgetter("role")
_PLAIN_ROLES: Final = frozenset(("system", "developer", "user", "assistant"))


class Form:
    """The words around the texts, and what was asked about these. `characters_max` of all texts keep every limit."""

    __slots__ = ("_asked", "_dates", "_messages", "_places", "characters_max", "longest", "pieces")

    def __init__(
        self,
        pieces: Sequence[Any],
        asked: Sequence[Asked],
        dates: Sequence[tuple[str, str]],
        *,
        output_max_bytes: int,
        work_left: int,
        touched: int,
    ) -> None:
        """`pieces` are what was printed; `dates` what was said of the day, by format."""
        flat, places = _flat(pieces)
        self.pieces = flat
        """What stands around the texts, with a place for one at every second."""
        self._places = places
        changed = any(place.operations for _, place in places)
        self._messages = None if changed else [place.message for _, place in places]
        """Whose texts are printed as they are, in that order, one behind each piece; None if some are changed before."""
        # That a text is not empty goes without saying: one that is has no form.
        self._asked = [one for one in asked if one.question != "true" or one.place.operations]
        self._dates = dates
        words = sum(map(len, flat))
        # Four bytes a character at most; every text may be printed at every place.
        room = (output_max_bytes // 4 - words) // (len(places) + 1)
        self.characters_max = min(room, work_left // (_COPIES * (touched + 1)))
        self.longest = words + self.characters_max
        """Characters of a prompt in which each text is printed once."""

    def steady(self, turns: int) -> bool:
        """Whether the prompt is these words and all texts of so many turns, in order, whatever they are and when."""
        return not self._asked and not self._dates and self._messages == list(range(turns))

    @property
    def words(self) -> int:
        """Number of characters around the texts."""
        return sum(map(len, self.pieces))

    def text(self, texts: Sequence[str], today: Any) -> str | None:
        """Return the prompt for these texts; None where it may be another one. `today` is as in templates."""
        for asked in self._asked:
            if not asked.holds(texts):
                return None
        for form, said in self._dates:
            if today(form) != said:
                return None
        pieces = self.pieces.copy()
        if self._messages is not None:
            pieces[_TEXTS] = map(texts.__getitem__, self._messages)
        else:
            for at, place in self._places:
                pieces[at] = place.text(texts) if place.operations else texts[place.message]
        return "".join(pieces)


class Forms:
    """The forms of one template. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: dict[Key, _Variants] = {}

    def text(self, key: Key, texts: Sequence[str], today: Any) -> str | None:
        """Return the prompt of a conversation whose form is known, None for any other."""
        found = self._known.get(key)
        if found is None:
            return None
        characters = sum(map(len, texts))
        for form in found.forms:
            if characters <= form.characters_max:
                text = form.text(texts, today)
                if text is not None:
                    return text
        return None

    def plain_text(self, turns: Sequence[Turn], now_ms: Callable[[], int]) -> str | None:
        """Return what `text` does for turns that are nothing but a plain role and a string, with an answer begun.

        The caller knows that of each of them. The time is asked for if a template is, and once.
        """
        texts = list(map(_content_of, turns))
        roles = tuple(map(_role_of, turns))
        found = self._known.get(roles)
        if found is None or "" in texts:
            return None
        form = found.steady
        if form is not None:
            pieces = form.pieces.copy()
            pieces[_TEXTS] = texts
            text = "".join(pieces)
            if len(text) <= form.longest:
                return text
        return self.text(roles, texts, Moment(now_ms()))

    def wanted(self, key: Key) -> bool:
        """Whether a form should be looked for: not where it was seen for the first time, or tried in vain."""
        found = self._known.get(key)
        if found is None:
            for oldest in list(self._known)[: 1 - FORMS_MAX]:
                self._known.pop(oldest, None)
            self._known[key] = _Variants()
            return False
        found.tries += 1
        return found.tries <= _TRIES_MAX and len(found.forms) < _VARIANTS_MAX

    def learn(self, key: Key, form: Form) -> None:
        """Remember a form, unless it is too long."""
        found = self._known.get(key)
        if found is not None and form.words <= WORDS_MAX and form.characters_max > 0:
            if not found.forms and form.steady(len(key)):
                found.steady = form
            found.forms = (*found.forms, form)


class _Variants:
    """The forms that conversations between the same speakers have, by what was asked about their texts."""

    __slots__ = ("forms", "steady", "tries")

    def __init__(self) -> None:
        self.steady: Form | None = None
        """The first of them, where it is steady, for a plain key: the length of that is how many turns there are."""
        self.forms: tuple[Form, ...] = ()
        self.tries = 0


def form_of(prompt: ChatPrompt) -> tuple[Key, list[str]] | None:
    """Return a conversation's form and its texts; None where there is more to it than roles and
    strings.
    """
    turns = prompt.turns
    if (
        prompt.tools
        or prompt.documents is not None
        or prompt.handed is not None
        or prompt.template is not None
        or prompt.continue_final_message
        or prompt.systems_stay
        or len(turns) > TURNS_MAX
    ):
        return None
    roles: list[str] = []
    texts: list[str] = []
    for turn in turns:
        text = turn.content
        if (
            type(text) is not str
            or not text
            or turn.reasoning is not None
            or turn.calls
            or turn.name is not None
            or turn.extra
            or turn.role not in _PLAIN_ROLES
        ):
            return None
        roles.append(turn.role)
        texts.append(text)
    speakers = tuple(roles)
    if not (prompt.kwargs or prompt.thinking is not NOTHING_SAID) and prompt.add_generation_prompt:
        return speakers, texts
    told = _told(prompt) if prompt.kwargs or prompt.thinking is not NOTHING_SAID else ()
    return None if told is None else ((prompt.add_generation_prompt, speakers, told), texts)


def _told(prompt: ChatPrompt) -> tuple[Any, ...] | None:
    """Return the template's variables besides the conversation, so that only the same is equal;
    None if it is long.
    """
    kwargs = prompt.kwargs
    if len(kwargs) > _TOLD_MAX:
        return None
    told: list[Any] = [prompt.thinking]
    for name, value in kwargs.items():
        # True is 1, and 1 is 1.0, but they are printed differently.
        kind = type(value)
        if kind not in _TOLD_KINDS or (kind is str and len(value) > _TOLD_CHARACTERS_MAX):
            return None
        told += (name, kind, value)
    return tuple(told)


def _flat(pieces: Sequence[Any]) -> tuple[list[str], list[tuple[int, Place]]]:
    """Return what was printed, strings in a row joined, and where among them which text belongs: at every second place."""
    flat: list[str] = []
    places: list[tuple[int, Place]] = []
    seen: list[str] = []
    for piece in pieces:
        for part in piece.parts if isinstance(piece, (SymbolicText, Joined)) else (piece,):
            if not isinstance(part, SymbolicText):
                seen.append(part)
                continue
            flat.append("".join(seen))
            seen.clear()
            places.append((len(flat), part.place))
            flat.append("")
    flat.append("".join(seen))
    return flat, places
