"""Errors of history: maps a store's errors to those that clients get; the only place that does."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.json_cursor import quoted
from smg_storage.errors import StoreError, StoreErrorKind

RETRY_AFTER_S: Final = 2.0
"""How soon to ask again a store that is away."""

_log = logging.getLogger("smg_node.history")


class HolderAwayError(StoreError):
    """The node that holds a thread does not answer; whether something was written is unknown."""

    def __init__(self, node: str, why: str) -> None:
        super().__init__(StoreErrorKind.UNAVAILABLE, f"{node}, which holds this thread, {why}")
        self.node = node


class PendingWriteError(StoreError):
    """The record may be spooled on a node that cannot be reached, or that has not written it yet."""

    def __init__(self, node: str) -> None:
        super().__init__(
            StoreErrorKind.UNAVAILABLE, f"turns of this thread may wait on the disk of {node}"
        )
        self.node = node


class NotAnnouncedError(StoreError):
    """The store is unavailable and a node cannot be told that a conversation's turn would be
    spooled here: it is not kept.
    """

    def __init__(self, node: str) -> None:
        super().__init__(
            StoreErrorKind.UNAVAILABLE,
            f"the store is away, and {node} cannot be told that a turn of this conversation waits for it",
        )
        self.node = node


class AnsweredBeforeError(SmgError):
    """An approval that was answered before, in the same way: `response_id` is the response that did so."""

    def __init__(self, response_id: str) -> None:
        super().__init__(
            ErrorKind.CONFLICT,
            f"this approval was answered before, by {quoted(response_id)}",
            code="approval_already_answered",
        )
        self.response_id = response_id


def already_answered(approval: str = "", *, under_way: bool = False) -> SmgError:
    """Return the error for an approval that was answered before; `under_way`: what came of it may be had soon."""
    which = f" {quoted(approval)}" if approval else ""
    return SmgError(
        ErrorKind.CONFLICT,
        f"this request for approval{which} was answered before; its call may have been run, and is not repeated",
        code="approval_already_answered",
        retry_after_s=RETRY_AFTER_S if under_way else None,
    )


def answered_beside(response_id: str) -> SmgError:
    """Return the error for an approval that was answered before, in a request that said something else beside it."""
    return SmgError(
        ErrorKind.CONFLICT,
        f"this request for approval was answered before, and something else was said beside it: go on from "
        f"{quoted(response_id)}",
        code="approval_already_answered",
    )


@contextmanager
def asking_store() -> Iterator[None]:
    """Turn errors of the store into errors for clients."""
    try:
        yield
    except StoreError as error:
        raise failure_of(error) from error


def failure_of(error: StoreError) -> SmgError:
    """Return the client's error for a store's error; the store's own text goes to the log only."""
    match error.kind:
        case StoreErrorKind.UNAVAILABLE:
            return SmgError(
                ErrorKind.OVERLOADED,
                _who_is_away(error),
                code="store_unavailable",
                retry_after_s=RETRY_AFTER_S,
            )
        case StoreErrorKind.CONFLICT:
            return SmgError(ErrorKind.CONFLICT, "it was changed by somebody else meanwhile")
        case StoreErrorKind.TOO_LARGE:
            return SmgError(ErrorKind.TOO_LARGE, "it is larger than what the store keeps")
        case StoreErrorKind.BAD_REFERENCE:
            return SmgError(ErrorKind.NOT_FOUND, f"there is no {quoted(error.missing)} (any more)")
        case StoreErrorKind.REJECTED:
            return SmgError(
                ErrorKind.FORBIDDEN, f"it is not stored: {error.message}", code="storage_rejected"
            )
        case StoreErrorKind.CORRUPT:
            return corrupt(error.message)


def _who_is_away(error: StoreError) -> str:
    if isinstance(error, HolderAwayError):
        return f"the node {quoted(error.node)}, which holds this thread, does not answer"
    if isinstance(error, PendingWriteError):
        return f"the node {quoted(error.node)} may still have to store what this is about"
    if isinstance(error, NotAnnouncedError):
        return (
            "the store of responses and conversations does not answer, and neither does the node"
            f" {quoted(error.node)}: without either this conversation cannot go on"
        )
    return "the store of responses and conversations does not answer"


def corrupt(what: str) -> SmgError:
    """Return the error for a record that makes no sense; `what` names it, for the log only."""
    _log.error("a stored record makes no sense: %s", what)
    return SmgError(ErrorKind.INTERNAL, "a stored record is damaged; it has been logged")


def response_not_found(response_id: str) -> SmgError:
    """Return the error for a response that does not exist, or is another tenant's."""
    return SmgError(ErrorKind.NOT_FOUND, f"there is no response {quoted(response_id)}")


def previous_not_found(response_id: str) -> SmgError:
    """Return the error for a chain with a missing response, at that id."""
    return invalid(
        f"there is no response {quoted(response_id)}",
        "previous_response_id",
        "previous_response_not_found",
    )


def item_not_found(item_id: str) -> SmgError:
    """Return the error for an item that a conversation does not have."""
    return SmgError(ErrorKind.NOT_FOUND, f"there is no item {quoted(item_id)} in this conversation")
