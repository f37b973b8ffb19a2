"""Stream errors: how a stream or question fails, as words for counters and sentences for people."""

from typing import Final

import grpc
import grpc.aio

from smg_mesh.swim.messages import Address

MESSAGE_CHARS_MAX: Final = 500
CODE_CHARS_MAX: Final = 32

# What the words of gRPC mean. It has one code, UNAVAILABLE, for all that keeps two ends from talking.
_IMPOSTOR: Final = ("Hostname Verification Check failed", "is not in peer certificate")
_CUT: Final = "Internal error from Core"  # of a write on a call that has just ended
_PLAIN: Final = ("WRONG_VERSION_NUMBER",)
_STRANGER: Final = ("SSL_ERROR_SSL",)  # anything else about certificates and signatures
_CLOSED: Final = ("Socket closed",)
_NOBODY: Final = ("Connection refused",)  # the system's words (strerror) for ECONNREFUSED
_REASONS: Final = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "deadline",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "busy",
    grpc.StatusCode.FAILED_PRECONDITION: "refused",
    grpc.StatusCode.INVALID_ARGUMENT: "refused",
    grpc.StatusCode.PERMISSION_DENIED: "refused",
}


class StreamError(Exception):
    """A ping, exchange or question came to nothing; `reason` is a word for a counter.

    `key` no common key or label · `name` another process than expected · `plain` one side without TLS ·
    `nobody` its host refuses: no process listens there · `unreachable` · `deadline` · `hung_up` · `busy` the peer (or this node) has too many streams · `refused` by the
    peer, which says why · `order` `size` `wire` `version` `label` it said what it may not say ·
    `state` it sent a piece that cannot be taken · `failed`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message[:MESSAGE_CHARS_MAX])
        self.reason: Final = reason


class AskError(Exception):
    """A question without an answer. `code` is a word for programs: that of the
    answering side, or one of these.

    `unknown` no such topic · `busy` · `timeout` the answer took too long · `failed` the answering side
    has a fault · `refused` who asks is not who it says, or asks another node than it means ·
    `too_large` · `unreachable` and the other reasons of `StreamError`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message[:MESSAGE_CHARS_MAX])
        self.code: Final = code[:CODE_CHARS_MAX]


def failure(error: grpc.aio.AioRpcError, address: Address, name: str | None) -> StreamError:
    """Return what gRPC's error means for a stream to `name` (None: to any member) at `address`."""
    details = error.details() or ""
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return _unavailable(details, address, name)
    if details == _CUT:
        return StreamError("hung_up", f"peer at {address} hung up before the end")
    reason = _REASONS.get(error.code(), "failed")
    if reason == "deadline":
        return StreamError(reason, f"peer at {address} did not answer in time")
    return StreamError(reason, f"peer at {address} refused: {details}")


def _unavailable(details: str, address: Address, name: str | None) -> StreamError:
    if _says(details, _IMPOSTOR):
        who = "a member of our mesh" if name is None else name
        return StreamError("name", f"the process at {address} does not prove to be {who}")
    if _says(details, _PLAIN):
        return StreamError(
            "plain", f"peer at {address} does not speak TLS: is it an insecure mesh?"
        )
    if _says(details, _STRANGER):
        return StreamError(
            "key",
            f"peer at {address} does not share our mesh key or label (if the key was changed and the old"
            " one removed while this node was away, its key file needs the new one)",
        )
    if _says(details, _CLOSED):
        return StreamError(
            "unreachable",
            f"peer at {address} closed the connection at once: it is stopping, or only one side"
            " speaks TLS, or it does not trust our certificate",
        )
    reason = "nobody" if _says(details, _NOBODY) else "unreachable"
    return StreamError(reason, f"peer at {address} cannot be reached: {_last(details)}")


def _says(details: str, words: tuple[str, ...]) -> bool:
    return any(word in details for word in words)


def _last(details: str) -> str:
    """Return what gRPC says of its last attempt, which is all there is with one address."""
    return details.rpartition("last error: ")[2] or "no reason given"
