"""Store errors: the one way in which a store fails, by kind."""

from enum import Enum


class StoreErrorKind(Enum):
    """Kind of failure, as far as the caller has to know."""

    UNAVAILABLE = "unavailable"
    """The store does not answer, in time or at all, or takes no writes. Whether a write was done is unknown: it may
    be tried again with the same ids."""
    CONFLICT = "conflict"
    """Something else is there under that id, or what is there has changed meanwhile."""
    TOO_LARGE = "too_large"
    """A document, or what a tenant may keep, is too large."""
    BAD_REFERENCE = "bad_reference"
    """Something that is referred to is not there: `missing` names it."""
    CORRUPT = "corrupt"
    """What is there makes no sense. It is left as it is, to be looked at."""
    REJECTED = "rejected"
    """A hook does not want it."""


class StoreError(Exception):
    """Error that every method of a store may raise, and nothing else. `message` has
    neither documents nor secrets.
    """

    def __init__(self, kind: StoreErrorKind, message: str, *, missing: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.missing = missing
        """The id that is not there, of BAD_REFERENCE."""


class OldTablesError(StoreError):
    """The tables lack what this code needs: an operator has to bring them up
    to date; nothing else is wrong.
    """

    def __init__(self, message: str) -> None:
        super().__init__(StoreErrorKind.UNAVAILABLE, message)
