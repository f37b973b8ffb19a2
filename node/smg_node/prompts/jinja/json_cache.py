"""JSON cache: texts of tool definitions written as JSON before.

Most requests of an agent carry the same tools, and writing them out is most of what rendering costs
then: 9 us a tool, 33 if it is indented. The key is the tool itself, encoded by a faster writer.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

# Bounded by number and by size: some 16 MB in all, and a tool's text is rarely longer than 2 KB.
_TEXTS_MAX: Final = 1024
_LENGTH_MAX: Final = 16_384


class JsonTexts:
    """Texts of values that were written before; the oldest goes first. Safe between threads."""

    def __init__(self) -> None:
        self._texts: dict[tuple[bytes, Any], str] = {}

    def text(self, value: Any, form: Any, write: Callable[[], str]) -> str:
        """Return the text of `value`, plain data that came as JSON, in the form named `form`."""
        try:
            key = (msgspec.json.encode(value), form)
        except (TypeError, ValueError, OverflowError):  # an integer of more than 64 bits, say
            return write()
        text = self._texts.get(key)
        if text is None:
            text = write()
            if len(text) <= _LENGTH_MAX:
                for oldest in list(self._texts)[: 1 - _TEXTS_MAX]:
                    self._texts.pop(oldest, None)
                self._texts[key] = text
        return text
