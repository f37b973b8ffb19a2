"""Byte budget: how much memory the media of all requests under way may take together. Pure."""

from typing import Final

from smg_node.core.errors import ErrorKind, SmgError

RETRY_AFTER_S: Final = 1.0
"""What a client is told where the budget is spent: a picture is worked on for well under a second."""
KNOB: Final = "media.inflight_bytes"


class ByteBudget:
    """Bytes that are taken and given back; `most` may change at any time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0

    def take(self, size: int, already: int = 0) -> None:
        """Take `size` bytes for a request that has `already` so many.

        TOO_LARGE where the request alone would have more than there are, RATE_LIMITED with a time where others have
        them now.
        """
        assert size >= 0, "what is taken is an amount"
        if already + size > self.most:
            raise SmgError(
                ErrorKind.TOO_LARGE,
                f"the media of this request take {already + size} bytes while they are worked on; at most"
                f" {self.most} are allowed ({KNOB})",
                code="media_too_large",
            )
        if self.taken + size > self.most:
            raise SmgError(
                ErrorKind.RATE_LIMITED,
                f"the media of other requests take the {self.most} bytes that are allowed ({KNOB}); try again",
                code="media_busy",
                retry_after_s=RETRY_AFTER_S,
            )
        self.taken += size

    def add(self, size: int) -> None:
        """Take bytes for a request that has begun and is not to be refused any more."""
        assert size >= 0, "what is taken is an amount"
        self.taken += size

    def give(self, size: int) -> None:
        """Give bytes back."""
        assert 0 <= size <= self.taken, "only what was taken is given back"
        self.taken -= size
