"""Refused updates: which fields of a session are not as its client wants them. Pure.

Clients go on after a refusal, without the instructions and tools that they asked for. So no answer is given until each field
of the refused update was in one that was accepted.
"""

from collections.abc import Collection
from typing import Final

from smg_node.core.errors import invalid
from smg_node.core.json_cursor import quoted
from smg_node.dialects.realtime.config.session_config import GIVEN

_HINTS: Final = GIVEN | {"tracing", "include"}
"""Fields without which all answers are the same."""
_WHOLE: Final = "session"
"""Stands for the fields of an update of which none could be read."""
_NAMED_MAX: Final = 8
_FIELDS_MAX: Final = 64
_WHY_CHARACTERS_MAX: Final = 512


class RefusedUpdates:
    """Fields that wait for an update that is accepted, and what was wrong with the last one that was not."""

    __slots__ = ("_fields", "_why")

    def __init__(self) -> None:
        self._fields: set[str] = set()
        self._why = ""

    def refused(self, fields: Collection[str], why: str) -> None:
        """Note the fields of an update that was refused; any accepted one makes up for an update without any."""
        self._why = why[:_WHY_CHARACTERS_MAX]
        lost = sorted(set(fields) - _HINTS) or [_WHOLE]
        for name in lost[:_FIELDS_MAX]:
            if len(self._fields) < _FIELDS_MAX:
                self._fields.add(name)

    def accepted(self, fields: Collection[str]) -> None:
        """Note the fields of an update that was accepted."""
        self._fields -= {*fields, _WHOLE}

    def check(self) -> None:
        """Raise INVALID_REQUEST `session_update_refused` while fields wait."""
        if not self._fields:
            return
        names = ", ".join(quoted(name) for name in sorted(self._fields)[:_NAMED_MAX])
        raise invalid(
            f"the session is not as its client wants it: an update of {names} was refused ({self._why}). No answer is"
            " given before an update of the same fields is accepted.",
            None,
            "session_update_refused",
        )
