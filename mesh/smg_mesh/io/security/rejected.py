"""Rejected: the one error of foreign bytes: a datagram or secret that is refused, and why."""

from typing import Final

REASONS: Final = ("wire", "plain", "sealed", "key", "replay", "tag")
"""Why a datagram can be refused: no packet of ours at all; plain where packets are sealed; sealed where
they are plain; an unknown key; seen before, or too old to tell; damaged, forged, or of another label."""


class Rejected(Exception):  # noqa: N818 (nothing went wrong here: somebody else's datagram did)
    """A datagram or secret that is not for us, not genuine, or not new; `reason` is in `REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
