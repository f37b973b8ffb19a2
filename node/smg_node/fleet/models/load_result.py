"""Load result: outcome of reading a model's files in one process of this node, for processes that
have not read them.
"""

from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError

_MESSAGE_MAX_CHARS: Final = 2000


class Finding(msgspec.Struct, frozen=True, array_like=True):
    """`digest` is the vocabulary's. `vocabulary` is one more than the largest id; 0 where it could not be read.

    `kind` and `message` say why not then.
    """

    name: str
    digest: str
    vocabulary: int = 0
    kind: str = ""
    message: str = ""

    @classmethod
    def of_error(cls, name: str, digest: str, error: SmgError) -> "Finding":
        """Return that reading failed with `error`."""
        return cls(name, digest, 0, error.kind.value, error.message[:_MESSAGE_MAX_CHARS])

    def error(self) -> SmgError | None:
        """Return what reading failed with, a new one each time; None where it did not."""
        return SmgError(ErrorKind(self.kind), self.message) if self.kind else None
