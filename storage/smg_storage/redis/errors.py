"""Errors of the driver as errors of the store: what is wrong, and nothing of what was sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NoReturn

from redis import exceptions

from smg_storage.errors import StoreError, StoreErrorKind

_REFUSALS: Final = {
    "clash": (StoreErrorKind.CONFLICT, "something else is there under the id:"),
    "version": (StoreErrorKind.CONFLICT, "the conversation has changed meanwhile"),
    "final": (StoreErrorKind.CONFLICT, "another response is there under the id, or it is final"),
    "status": (StoreErrorKind.CONFLICT, "the response has another status meanwhile"),
    "lease": (StoreErrorKind.CONFLICT, "somebody else has the response, or it is gone"),
    "idempotency": (StoreErrorKind.CONFLICT, "the idempotency key stands for another request"),
    "never": (StoreErrorKind.CONFLICT, "the turn cannot be written"),
    "missing": (StoreErrorKind.BAD_REFERENCE, "this is not there:"),
    "cycle": (StoreErrorKind.CORRUPT, "a response continues itself:"),
    "full": (StoreErrorKind.TOO_LARGE, "the conversation has as many items as it may:"),
}
# What a server's error begins with, to what it means; whatever else it answers is something that makes no sense.
_PASSING: Final = frozenset(
    {"OOM", "READONLY", "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK"}
    | {
        "NOREPLICAS",
        "MISCONF",
        "NOAUTH",
        "WRONGPASS",
        "NOPERM",
        "UNKILLABLE",
        "NOSCRIPT",
        "UNBLOCKED",
    }
)


def refuse(why: str, what: str) -> NoReturn:
    """Raise what a function of the server answered instead of a result."""
    kind, text = _REFUSALS[why]
    missing = what if kind is StoreErrorKind.BAD_REFERENCE else ""
    raise StoreError(kind, f"{text} {what}" if text.endswith(":") else text, missing=missing)


def corrupt(what: str) -> StoreError:
    """Return the error for something that is there and cannot be read."""
    return StoreError(StoreErrorKind.CORRUPT, f"{what} cannot be read")


def unavailable(why: str) -> StoreError:
    """Return the error for a server that does not do it now."""
    return StoreError(StoreErrorKind.UNAVAILABLE, f"redis: {why}")


@asynccontextmanager
async def door(timeout_s: float) -> AsyncIterator[None]:
    """Give what is inside so much time, and turn what the driver raises into StoreError."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise unavailable(f"no answer within {timeout_s:g} s") from error
    except (exceptions.RedisError, exceptions.RedisClusterException, OSError) as error:
        raise translated(error) from error


def translated(error: Exception) -> StoreError:
    """Return the store's error for one of the driver's; of a server's own words only the first is kept."""
    if isinstance(error, exceptions.ResponseError):
        word = first_word(error)
        if word in _PASSING:
            return unavailable(f"the server says {word}")
        return StoreError(StoreErrorKind.CORRUPT, f"redis: the server says {word}")
    return unavailable(type(error).__name__)


def first_word(error: Exception) -> str:
    """Return the code of a server's error, such as OOM, which the driver takes off the text of those it knows."""
    code = getattr(error, "status_code", None)
    word = code if isinstance(code, str) else str(error).partition(" ")[0]
    return word if word.isalpha() and word.isupper() else "ERR"
