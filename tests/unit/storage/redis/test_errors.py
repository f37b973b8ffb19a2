import asyncio

import pytest
from redis import exceptions

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.redis.errors import door, refuse, translated

UNAVAILABLE, CORRUPT = StoreErrorKind.UNAVAILABLE, StoreErrorKind.CORRUPT
SECRET = "hunter2 in a document"


@pytest.mark.parametrize(
    ("error", "kind", "word"),
    [
        (exceptions.ConnectionError(SECRET), UNAVAILABLE, "ConnectionError"),
        (exceptions.TimeoutError(SECRET), UNAVAILABLE, "TimeoutError"),
        (exceptions.MaxConnectionsError(SECRET), UNAVAILABLE, "MaxConnectionsError"),
        (exceptions.AuthenticationError(SECRET), UNAVAILABLE, "AuthenticationError"),
        (exceptions.ReadOnlyError(SECRET, status_code="READONLY"), UNAVAILABLE, "READONLY"),
        (exceptions.OutOfMemoryError(SECRET, status_code="OOM"), UNAVAILABLE, "OOM"),
        (exceptions.NoPermissionError(SECRET, status_code="NOPERM"), UNAVAILABLE, "NOPERM"),
        (
            exceptions.ClusterDownError(SECRET, status_code="CLUSTERDOWN"),
            UNAVAILABLE,
            "CLUSTERDOWN",
        ),
        (exceptions.ResponseError(f"MISCONF {SECRET}"), UNAVAILABLE, "MISCONF"),
        (exceptions.ResponseError(f"BUSY {SECRET}"), UNAVAILABLE, "BUSY"),
        (exceptions.ResponseError(f"WRONGTYPE {SECRET}"), CORRUPT, "WRONGTYPE"),
        (exceptions.ResponseError(f"ERR {SECRET}"), CORRUPT, "ERR"),
        (exceptions.ResponseError(SECRET), CORRUPT, "ERR"),
        (exceptions.ResponseError(""), CORRUPT, "ERR"),
        (exceptions.RedisClusterException(SECRET), UNAVAILABLE, "RedisClusterException"),
        (OSError(SECRET), UNAVAILABLE, "OSError"),
    ],
)
async def test_every_error_of_the_driver_becomes_ours_and_says_nothing_of_what_was_sent(
    error: Exception, kind: StoreErrorKind, word: str
) -> None:
    with pytest.raises(StoreError) as told:
        async with door(5):
            raise error
    assert told.value.kind is kind
    assert word in told.value.message
    assert "hunter2" not in told.value.message
    assert told.value.__cause__ is error
    assert translated(error).message == told.value.message


async def test_what_takes_too_long_is_unavailable() -> None:
    with pytest.raises(StoreError, match=r"no answer within 0\.01 s") as told:
        async with door(0.01):
            await asyncio.Event().wait()
    assert told.value.kind is UNAVAILABLE


async def test_our_own_errors_and_cancellation_go_through() -> None:
    with pytest.raises(StoreError, match="as it was"):
        async with door(5):
            raise StoreError(CORRUPT, "as it was")
    with pytest.raises(asyncio.CancelledError):
        async with door(5):
            raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("why", "kind", "missing"),
    [
        ("clash", StoreErrorKind.CONFLICT, ""),
        ("version", StoreErrorKind.CONFLICT, ""),
        ("final", StoreErrorKind.CONFLICT, ""),
        ("status", StoreErrorKind.CONFLICT, ""),
        ("lease", StoreErrorKind.CONFLICT, ""),
        ("idempotency", StoreErrorKind.CONFLICT, ""),
        ("never", StoreErrorKind.CONFLICT, ""),
        ("missing", StoreErrorKind.BAD_REFERENCE, "msg_1"),
        ("cycle", CORRUPT, ""),
        ("full", StoreErrorKind.TOO_LARGE, ""),
    ],
)
def test_every_refusal_of_a_function_has_its_kind(
    why: str, kind: StoreErrorKind, missing: str
) -> None:
    with pytest.raises(StoreError) as told:
        refuse(why, "msg_1")
    assert (told.value.kind, told.value.missing) == (kind, missing)
