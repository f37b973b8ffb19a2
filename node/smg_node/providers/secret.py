"""Secret: a key or password as an operator gives it: a file, a name of the environment, or the value itself. Pure.

    file:/run/secrets/a1    read from the file, blanks around it left out
    env:NAME                read from the environment of each node
    anything else           the value

Printing one shows where it comes from and never what it is.
"""

from typing import Final, Protocol

import msgspec

from smg_node.core.errors import ErrorKind, SmgError

SECRET_MAX_CHARACTERS: Final = 65_536
"""Far above a service account's file, which is the largest there is."""
_FILE: Final = "file:"
_ENV: Final = "env:"


class SecretSources(Protocol):
    """Where references lead: files and environment of this node."""

    def file(self, path: str) -> str:
        """Return the text of a file; OSError or UnicodeDecodeError where it cannot be read."""
        ...

    def env(self, name: str) -> str | None:
        """Return a variable of the environment, None where there is none."""
        ...


class Secret(msgspec.Struct, frozen=True):
    """One secret; `spelled` is the reference or the value."""

    spelled: str

    @property
    def reference(self) -> str:
        """The reference, or "" for a value."""
        return self.spelled if self.spelled.startswith((_FILE, _ENV)) else ""

    def read(self, sources: SecretSources) -> str:
        """Return the value; UPSTREAM_FAILED `provider_secret` that says which reference leads nowhere."""
        if not self.reference:
            return self.spelled
        kind, _, name = self.spelled.partition(":")
        try:
            found = sources.file(name) if kind == "file" else sources.env(name)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it holds no text"
            raise _unread(f"{self.spelled} cannot be read: {why}") from error
        value = (found or "").strip()
        if not value:
            raise _unread(f"{self.spelled} is empty" if found is not None else f"{name} is not set")
        return value

    def __repr__(self) -> str:
        return f"Secret({self.reference or '…'})"

    __str__ = __repr__


def _unread(why: str) -> SmgError:
    return SmgError(
        ErrorKind.UPSTREAM_FAILED, f"a secret of a provider: {why}", code="provider_secret"
    )
