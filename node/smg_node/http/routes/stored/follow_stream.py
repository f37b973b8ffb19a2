"""Follow stream: SSE of a background response for an additional client; neither ends the other.

No more events are read before the client has taken the previous ones. A failure after the first
byte resets the connection: a stream that just ended would pass for whole, and a client that was cut
off can come back for the rest. One with checkpoints ends in order where its node drains: behind a
checkpoint, also while nothing is said.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from typing import TypeAlias

from smg_node.core.errors import SmgError
from smg_node.dialects.responses.events.numbered_events import DONE, NumberedEvent, frame
from smg_node.http.message.event_stream import EventStream
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import Streamed
from smg_node.http.middleware.error_replies import internal
from smg_node.http.routes.inference.answer_headers import close_events, uncancel
from smg_node.http.routes.stored.checkpoints import Checkpoints

Events: TypeAlias = AsyncIterator[Sequence[NumberedEvent]]

_log = logging.getLogger("smg_node.http")


def _none() -> SmgError | None:
    return None


class FollowStreams:
    """Streams without a generation of their own. `failure` of a stream is the error of its
    response, once known. `movable` are those that may be stopped to go on at another node.
    """

    def __init__(
        self,
        pulse: KeepaliveTimer,
        movable: MutableMapping[HttpRequest, Callable[[], bool]] | None = None,
    ) -> None:
        self._pulse = pulse
        self._movable = {} if movable is None else movable

    async def show(
        self,
        request: HttpRequest,
        events: Events,
        headers: Callable[[], Mapping[str, str]],
        *,
        failure: Callable[[], SmgError | None] = _none,
        checkpoints: Checkpoints | None = None,
    ) -> Streamed:
        """Write events up to their end, and the end of the stream; raise errors before the first
        byte. With `checkpoints` it may end before, where its client goes on elsewhere.
        """
        stream = EventStream(request.wire, headers)
        self._pulse.add(stream)
        if checkpoints is not None:
            self._movable[request] = checkpoints.can_leave
        try:
            await _carry(events, stream, failure, checkpoints)
            failed = failure()
            request.error_code = "" if failed is None else failed.code
        except asyncio.CancelledError:
            if request.cut is None:
                raise
            uncancel()
            farewell = b"" if checkpoints is None else checkpoints.farewell()
            if farewell:
                stream.end(farewell + DONE)
            else:
                _break_off(request, stream, request.cut)
        except SmgError as error:
            _break_off(request, stream, error)
        except Exception:
            if request.wire.gone:
                raise
            # A door: the status may be sent already, so the broken stream itself must say that something happened.
            _log.exception("a response could not be shown because of a mistake of ours")
            _break_off(request, stream, internal())
        finally:
            self._pulse.remove(stream)
            self._movable.pop(request, None)
        return Streamed()


async def _carry(
    events: Events,
    stream: EventStream,
    failure: Callable[[], SmgError | None],
    checkpoints: Checkpoints | None,
) -> None:
    try:
        async for told in events:
            failed = None if stream.committed else failure()
            if failed is not None:
                raise failed
            frames = b"".join([frame(one) for one in told])
            if checkpoints is not None:
                frames += checkpoints.behind(told)
            if stream.put(frames):
                await stream.drained()
            if checkpoints is not None and checkpoints.leaves:
                break
        stream.end(DONE)
    finally:
        await close_events(events)


def _break_off(request: HttpRequest, stream: EventStream, error: SmgError) -> None:
    request.error_code = error.code
    if not stream.committed:
        raise error
    stream.break_off()
