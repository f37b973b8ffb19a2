"""Response stream: the body of an HTTP worker's answer, piece by piece, under limits, with this
node's errors.
"""

from collections.abc import Callable, Mapping
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.http.transport import HttpAnswer
from smg_node.engines.transport.grpc_status import DEADLINE_CODE, FIRST_EVENT_CODE
from smg_node.engines.transport.stream_timeouts import Limit, Watch
from smg_node.engines.transport.transport import TransportError

STALLED_CODE: Final = "upstream_stalled"


class HttpStream:
    """An answer whose head has come. The caller closes it; that cuts the call if more was to
    come.
    """

    def __init__(
        self,
        answer: HttpAnswer,
        watch: Watch,
        broken: Callable[[TransportError], SmgError],
        *,
        stall_s: float,
    ) -> None:
        self.status = answer.status
        self._answer = answer
        self._watch = watch
        self._broken = broken
        self._stall_s = stall_s
        self._ended = False
        self._headers: Mapping[str, str] | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers, names in lower case; of several of one name the last."""
        if self._headers is None:
            self._headers = dict(self._answer.headers)
        return self._headers

    async def read(self) -> bytes:
        """Return what has come, b"" at the end. SmgError if it was cut short, or past a limit."""
        if self._ended:
            return b""
        try:
            piece = await self._answer.read()
        except TransportError as error:
            raise self._why(error) from error
        if self._watch.bitten is not None:
            raise self._late(self._watch.bitten)
        if piece:
            self._watch.seen()
        else:
            self._ended = True
        return piece

    def close(self) -> None:
        """Let go of it; harmless the second time."""
        self._watch.stop()
        self._answer.close()

    def _why(self, error: TransportError) -> SmgError:
        bitten = self._watch.bitten
        return self._broken(error) if bitten is None else self._late(bitten)

    def _late(self, limit: Limit) -> SmgError:
        return silent(limit, self._stall_s)


def silent(limit: Limit, limit_s: float) -> SmgError:
    """Return the error of a call that passed a limit."""
    said, code = {
        Limit.DEADLINE: ("the answer was not complete in time", DEADLINE_CODE),
        Limit.FIRST_EVENT: ("the worker said nothing for too long", FIRST_EVENT_CODE),
        Limit.STALL: (f"the worker fell silent for {limit_s:g} s", STALLED_CODE),
    }[limit]
    return SmgError(ErrorKind.UPSTREAM_TIMEOUT, said, code=code)
