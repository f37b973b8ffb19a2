"""Request draft: the fields of a request while its body's parameters are taken one by one.

A reader walks over the keys that are in the body, not over all that could be. For each key a table
names the function that takes it (`Take`): it checks the value through the cursor and fills fields of
the draft. What depends on several parameters is settled after all of them were taken, so the order of
keys in a body never matters.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from smg_node.core.generation.request import Constraint
from smg_node.core.json_cursor import IGNORED_MAX, Cursor, Problems
from smg_node.dialects.options import ReaderOptions

Neutral: TypeAlias = Callable[[Any], bool]

# Names of parameters come from the client and end up in a header.
_IGNORED_NAME_MAX: Final = 64

# Where prefill hands over to decode (`bootstrap_host`, `bootstrap_room` and their kin) is ours to say.
_PLACEMENT: Final = "bootstrap_"
OURS: Final = "is decided by the gateway and cannot be set by a client"


class Draft:
    """Keyword arguments of the request to be, by the class they belong to.

    `spelled` maps a sampling field to the client's name for it, where they differ. `template` holds
    variables for the chat template that parameters stand for; the client's own ones win. `left_out`
    has the types of tools that the model is not shown.
    """

    __slots__ = (
        "constraints", "ignored", "left_out", "options", "prompt", "request", "sampling", "spelled",
        "template", "view",
    )  # fmt: skip

    def __init__(self, options: ReaderOptions) -> None:
        self.options = options
        self.sampling: dict[str, Any] = {}
        self.spelled: dict[str, str] = {}
        self.request: dict[str, Any] = {}
        self.view: dict[str, Any] = {}
        self.prompt: dict[str, Any] = {}
        self.template: dict[str, Any] = {}
        self.constraints: list[Constraint] = []
        self.ignored: list[str] = []
        self.left_out: list[str] = []

    def draw(self, name: str, value: Any, spelling: str) -> None:
        """Fill the sampling field `name`; None leaves the default."""
        if value is None:
            return
        self.sampling[name] = value
        if name != spelling:
            self.spelled[name] = spelling

    def ignore(self, name: str) -> None:
        """Remember that `name` has no effect: at most 32 names of 64 harmless characters."""
        if len(self.ignored) < IGNORED_MAX:
            cut = name[:_IGNORED_NAME_MAX]
            self.ignored.append("".join(c if _harmless(c) else "?" for c in cut))

    def ignored_in(self, problems: Problems) -> tuple[str, ...]:
        """Return the names of everything without effect, those inside objects too."""
        for path in problems.ignored:
            self.ignore(path)
        return tuple(self.ignored)


def problems_for(options: ReaderOptions) -> Problems:
    """Return a new list of problems, in which unknown keys are treated as configured."""
    return Problems(strict=options.unknown_parameters == "reject")


Take: TypeAlias = Callable[[Draft, Cursor, str], None]


def take_all(draft: Draft, cursor: Cursor, table: Mapping[str, Take]) -> None:
    """Hand every key that is not null to its function; a key without one is unknown."""
    for key, value in cursor.values.items():
        if value is None:
            continue
        take = table.get(key)
        if take is not None:
            take(draft, cursor, key)
        else:
            take_unknown(draft, cursor, key, table)


def take_unknown(draft: Draft, cursor: Cursor, key: str, known: Mapping[str, Any]) -> None:
    """Treat an unknown key as configured: refused, or ignored and named."""
    if key.startswith(_PLACEMENT):
        cursor.unsupported(key, OURS)
    elif draft.options.unknown_parameters == "reject":
        cursor.unknown(key, tuple(known))
    else:
        draft.ignore(cursor.path(key))


# ── Makers of what stands in the tables ──────────────────────────────────────


def number(name: str, low: float, high: float, *, low_excluded: bool = False) -> Take:
    """Take a number into the sampling field `name`."""

    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        value = cursor.number(key, low=low, high=high, low_excluded=low_excluded)
        draft.draw(name, value, key)

    return take


def integer(name: str, low: int, high: int | None = None) -> Take:
    """Take an integer into the sampling field `name`."""

    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        draft.draw(name, cursor.integer(key, low=low, high=high), key)

    return take


def flag(name: str) -> Take:
    """Take a boolean into the sampling field `name`."""

    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        draft.draw(name, cursor.flag(key), key)

    return take


def shown(name: str) -> Take:
    """Take a boolean into the view's field `name`."""

    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        value = cursor.flag(key)
        if value is not None:
            draft.view[name] = value

    return take


def refused(reason: str, neutral: Neutral | None = None) -> Take:
    """Refuse a parameter that cannot be honoured, unless its value asks for nothing."""

    def take(_draft: Draft, cursor: Cursor, key: str) -> None:
        if neutral is None or not neutral(cursor.values[key]):
            cursor.unsupported(key, reason)

    return take


def _harmless(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in "._-[]")
