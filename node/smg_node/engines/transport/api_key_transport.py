"""API key transport: wraps a transport, sends `authorization: Bearer …` as gRPC metadata with every
call.

The key is in no error: an engine, or a proxy before it, may repeat the headers of a call it refuses, and
such words end up in logs and in what an operator is shown.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.engines.transport.message_pieces import Body
from smg_node.engines.transport.transport import MessageStream, Take, Transport, TransportError

API_KEY_MAX_CHARACTERS: Final = 4096
"""Some keys are signed tokens; servers refuse headers of 8 KB and more."""
_HIDDEN: Final = "[the API key]"


def fits_header(api_key: str) -> bool:
    """Whether a key can travel as metadata at all: printable ASCII without blanks."""
    return (
        0 < len(api_key) <= API_KEY_MAX_CHARACTERS
        and api_key.isascii()
        and api_key.isprintable()
        and " " not in api_key
    )


def authorized(transport: Transport, api_key: str | None) -> Transport:
    """Return `transport`, with that key on every call if there is one."""
    return transport if api_key is None else AuthorizedTransport(transport, api_key)


class AuthorizedTransport:
    """A transport whose calls carry one key."""

    def __init__(self, transport: Transport, api_key: str) -> None:
        assert fits_header(api_key)
        self.target = transport.target
        self._transport = transport
        self._api_key = api_key
        self._header = {"authorization": f"Bearer {api_key}"}

    async def unary(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        work: bool = False,
    ) -> bytes:
        """See `Transport`."""
        try:
            return await self._transport.unary(
                method, request, timeout_s=timeout_s, headers=self._with_key(headers), work=work
            )
        except TransportError as error:
            raise without(error, self._api_key) from None

    def stream(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> MessageStream:
        """See `Transport`."""
        stream = self._transport.stream(
            method, request, timeout_s=timeout_s, headers=self._with_key(headers)
        )
        return _DiscreetStream(stream, self._api_key)

    def notify(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        """See `Transport`."""
        return self._transport.notify(
            method, request, timeout_s=timeout_s, headers=self._with_key(headers)
        )

    async def close(self) -> None:
        """See `Transport`."""
        await self._transport.close()

    def _with_key(self, headers: Mapping[str, str] | None) -> Mapping[str, str]:
        return {**headers, **self._header} if headers else self._header


class _DiscreetStream:
    """A call with many answers, whose failure does not name the key."""

    def __init__(self, stream: MessageStream, api_key: str) -> None:
        self._stream = stream
        self._api_key = api_key

    @property
    def ended(self) -> bool:
        """See `MessageStream`."""
        return self._stream.ended

    def __aiter__(self) -> "_DiscreetStream":
        return self

    async def __anext__(self) -> Sequence[bytes]:
        try:
            return await self._stream.__anext__()
        except TransportError as error:
            raise without(error, self._api_key) from None

    async def pour(self, take: Take) -> bool:
        """See `MessageStream`."""
        try:
            return await self._stream.pour(take)
        except TransportError as error:
            raise without(error, self._api_key) from None

    def pause(self) -> None:
        """See `MessageStream`."""
        self._stream.pause()

    def resume(self) -> None:
        """See `MessageStream`."""
        self._stream.resume()

    def cancel(self) -> None:
        """See `MessageStream`."""
        self._stream.cancel()


def without(error: TransportError, secret: str) -> TransportError:
    """Return `error` with every mention of `secret` taken out."""
    trailers = {key: value.replace(secret, _HIDDEN) for key, value in error.trailers.items()}
    return TransportError(error.status, error.message.replace(secret, _HIDDEN), trailers)
