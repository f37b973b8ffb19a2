"""History hash: BLAKE2b over every input and every effect, in order, to compare two runs."""

from collections.abc import Sequence
from hashlib import blake2b

from smg_mesh.swim.effects import Effect


class Trace:
    """The hash of all inputs and effects of all cores."""

    __slots__ = ("_hash", "inputs")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.inputs = 0

    def note(self, now_us: int, label: str, cause: object, effects: Sequence[Effect]) -> None:
        """Add one input of the node on host `label`, and what came of it."""
        self.inputs += 1
        self._hash.update(f"{now_us} {label} {cause!r} {effects!r}\n".encode())

    def say(self, line: str) -> None:
        """Add one input of another kind, as a line."""
        self.inputs += 1
        self._hash.update(f"{line}\n".encode())

    def fingerprint(self) -> str:
        """Return the number, as 32 hexadecimal digits."""
        return self._hash.hexdigest()
