"""Key input of a terminal: turns bytes into names of keys, however the bytes are cut. Pure."""

from typing import Final

_ESCAPE: Final = 0x1B
_SEQUENCES: Final = {
    b"[A": "up",
    b"[B": "down",
    b"OA": "up",
    b"OB": "down",
    b"[5~": "pgup",
    b"[6~": "pgdn",
}
_PLAIN: Final = {0x03: "ctrl-c", 0x04: "ctrl-d", 0x09: "tab", 0x20: "space"}
_SEQUENCE_MAX_BYTES: Final = 16
"""Longer than any key has; what goes on for longer is none."""


class Keys:
    """Parser of keys. A sequence that is cut is read when its rest comes; unknown ones are left
    out.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, sent: bytes) -> list[str]:
        """Return the keys that are complete with these bytes."""
        found: list[str] = []
        left = self._rest + sent
        while left:
            if left[0] != _ESCAPE:
                name = _PLAIN.get(left[0], chr(left[0]) if 0x20 < left[0] < 0x7F else "")
                found += [name] if name else []
                left = left[1:]
                continue
            end = _end(left)
            if end is None:
                break
            name = _SEQUENCES.get(left[1:end], "")
            found += [name] if name else []
            left = left[end:]
        self._rest = left
        return found


def _end(sent: bytes) -> int | None:
    """Return where the sequence ends that these bytes begin with; None if there is more of it to come."""
    if len(sent) < 2:
        return None
    if sent[1] not in b"[O":
        # Escape alone, and then another key.
        return 1
    for at in range(2, min(len(sent), _SEQUENCE_MAX_BYTES)):
        if 0x40 <= sent[at] <= 0x7E:
            return at + 1
    return None if len(sent) < _SEQUENCE_MAX_BYTES else _SEQUENCE_MAX_BYTES
