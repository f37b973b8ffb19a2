"""Authenticator of a test that knows one token: whatever comes is it, and its issuer closes the node."""

from smg_node.access.identity import Identity


class OneToken:
    """Whoever comes has that role, and belongs to `acme`."""

    closed = settled = True
    empty = False
    version = 99

    def __init__(self, role: str) -> None:
        self._role = role

    def expects(self, credential: str) -> bool:
        return True

    def is_asked_about(self, credential: str) -> bool:
        return False

    def identify(self, credential: str) -> Identity:
        return Identity("t", "acme", self._role, subject="token:other/alice")
