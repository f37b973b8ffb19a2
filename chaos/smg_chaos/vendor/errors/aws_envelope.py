"""AWS's envelope of errors: the exception's name in a header, and only a message in the body."""

from collections.abc import Mapping
from typing import Final

from smg_chaos.vendor.errors.vendor_error import Reason, VendorError

_NAMES: Final[Mapping[Reason, tuple[int, str]]] = {
    Reason.UNAUTHORIZED: (403, "UnrecognizedClientException"),
    Reason.FORBIDDEN: (403, "AccessDeniedException"),
    Reason.SIGNATURE: (403, "InvalidSignatureException"),
    Reason.NO_ROUTE: (404, "UnknownOperationException"),
    Reason.RATE: (429, "ThrottlingException"),
    Reason.QUOTA: (400, "ServiceQuotaExceededException"),
    Reason.NO_MONEY: (403, "AccessDeniedException"),
    Reason.SERVER: (500, "InternalServerException"),
    Reason.UNAVAILABLE: (503, "ServiceUnavailableException"),
    Reason.OVERLOADED: (429, "ModelNotReadyException"),
    Reason.TIMEOUT: (408, "ModelTimeoutException"),
}


def aws_reply(error: VendorError) -> tuple[int, str]:
    """Return the status and the exception's name; a model that is not there is a wrong request too."""
    return _NAMES.get(error.reason, (400, "ValidationException"))


def exception_of(error: VendorError) -> str:
    """Return the exception's name as frames spell it: with a small first letter."""
    name = aws_reply(error)[1]
    streamed = {
        "ModelNotReadyException": "ServiceUnavailableException",
        "UnrecognizedClientException": "ValidationException",
        "AccessDeniedException": "ValidationException",
        "ServiceQuotaExceededException": "ThrottlingException",
    }
    name = streamed.get(name, name)
    return name[0].lower() + name[1:]
