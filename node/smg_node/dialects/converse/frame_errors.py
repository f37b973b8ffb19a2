"""Frame errors: failures that Bedrock tells by a frame, after it has answered with success. Pure.

    :message-type exception   :exception-type names the kind, the payload says why
    :message-type error       :error-code and :error-message

Statuses are those that the same exception has where it is the whole answer, but for models that fail or are not ready:
Bedrock blames the caller for them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.dialects.converse.aws_frames import Frame
from smg_node.dialects.worker_errors import WorkerError, error_of

_STATUSES: Final[Mapping[str, int]] = {
    "throttlingexception": 429,
    "servicequotaexceededexception": 429,
    "modeltimeoutexception": 408,
    "validationexception": 400,
    "badgatewayexception": 502,
    "dependencyfailedexception": 502,
    "serviceunavailableexception": 503,
    "modelnotreadyexception": 503,
    "modelstreamerrorexception": 500,
    "modelerrorexception": 500,
    "internalserverexception": 500,
    "internalfailure": 500,
    "accessdeniedexception": 403,
    "resourcenotfoundexception": 404,
}
_UNKNOWN: Final = 500
_decode: Final = msgspec.json.Decoder().decode


def error_in(frame: Frame) -> WorkerError | None:
    """Return the failure that a frame tells; None for an event."""
    kind = frame.headers.get(":message-type")
    if kind == "exception":
        return exception_named(str(frame.headers.get(":exception-type", "")), frame.payload)
    if kind == "error":
        words = frame.headers.get(":error-message", "")
        return _error(str(frame.headers.get(":error-code", "")), words)
    return None


def exception_named(name: str, payload: bytes) -> WorkerError:
    """Return an exception of that name with the words of its payload."""
    try:
        said = _decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return _error(name, "")
    words = next(
        (said[key] for key in ("message", "Message", "originalMessage") if said.get(key)), ""
    )
    return _error(name, words)


def _error(name: str, words: Any) -> WorkerError:
    # Words are cut and scrubbed as those of every worker are.
    told = error_of({"error": {"message": words, "code": name}})
    status = _STATUSES.get(name.rpartition("#")[2].lower(), _UNKNOWN)
    return WorkerError(status, told.message if told else "", told.code if told else "")
