"""Key-value pairs: arguments as pairs of a key and a value, each between tags of its own.

    <arg_key>city</arg_key>⏎<arg_value>Ghent</arg_value>⏎</tool_call>

White space between the tags is layout; a value is taken as it stands. A value's closer counts only where the
next pair or the end of the call follows, so that a value may hold any of these tags.
"""

import re
from dataclasses import dataclass, field
from typing import Final, get_args

from smg_node.parsers.notations.schema_types import JSON, STRING, TypeName, Types
from smg_node.parsers.notations.tagged_arguments import (
    ESCAPED,
    Followed,
    Parameters,
    breaks_off,
    followers,
    parameter,
)
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader

_TEXT: Final = re.compile(r"[^<\n]*")
_NAMES: Final[frozenset[TypeName]] = frozenset(get_args(TypeName))


@dataclass(frozen=True)
class Pairs:
    """The tags of one family: opener and closer of a key, of a value, and of its type if it prints one.

    `ends` close the call, `outer` what it stands in. `stops` are further tags behind which no argument of this
    call comes. For answers that leave the call's closer out: `outer` and `stops` stay at the cursor.
    """

    key: tuple[str, str]
    value: tuple[str, str]
    ends: tuple[str, ...]
    stops: tuple[str, ...] = ()
    outer: tuple[str, ...] = ()
    kind: tuple[str, str] | None = None
    inside: Markers = field(init=False)
    """What may stand where a pair does."""
    _closers: Markers = field(init=False)
    _followed: Followed = field(init=False)

    def __post_init__(self) -> None:
        inside = Markers((self.key[0], *self.ends, *self.outer, *self.stops))
        object.__setattr__(self, "inside", inside)
        object.__setattr__(self, "_closers", Markers((self.value[1],), also=ESCAPED))
        object.__setattr__(self, "_followed", followers(self.key[0], *self.ends, *self.outer))

    def arguments(self, reader: Reader, parameters: Parameters) -> Machine[None]:
        """Read the pairs of a call that has been said, and its closer; nothing may be held before them."""
        while True:
            yield from reader.space()
            word = yield from reader.one_of(self.inside)
            if word != self.key[0]:
                break
            if not (yield from self._pair(reader, parameters)):
                return
        if not word and breaks_off(reader, parameters, self.inside, self.key[0]):
            return
        parameters.end()
        if word in self.ends:
            reader.drop()
        else:
            reader.back()

    def _pair(self, reader: Reader, parameters: Parameters) -> Machine[bool]:
        """Read a pair whose key is opened; return whether its value ended."""
        key = (yield from reader.pattern(_TEXT)).strip()
        types: Types | None = None
        whole = bool(key) and (yield from reader.have(self.key[1]))
        if whole:
            yield from reader.space()
            if self.kind is not None and (yield from reader.have(self.kind[0])):
                types = type_named((yield from reader.pattern(_TEXT)))
                whole = yield from reader.have(self.kind[1])
                yield from reader.space()
        if not whole or not (yield from reader.have(self.value[0])):
            parameters.broken()
            reader.drop()
            return False
        reader.drop()
        closer = yield from parameter(
            reader, parameters, key, self._closers, self._followed, types=types
        )
        reader.at += len(closer)
        reader.drop()
        return bool(closer)


def type_named(name: str) -> Types | None:
    """Return the types of a value that the model labels `name`; None if that says nothing."""
    found = frozenset(known for known in _NAMES if known == name.strip())
    if not found:
        return None
    return STRING if found == STRING else found | JSON
