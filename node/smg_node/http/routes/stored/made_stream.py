"""Made stream: SSE of an answer whose generation its own request reads, for any API that stores.

No more is read from the engine while the client has unread output, and the last event goes out after
the answer was stored.
"""

import asyncio
import logging
from collections.abc import Mapping

from smg_node.core.errors import SmgError
from smg_node.dialects.responses.events.numbered_events import DONE, frame
from smg_node.http.message.event_stream import EventStream
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import Streamed
from smg_node.http.middleware.error_replies import internal
from smg_node.http.ports.history import MadeResponse
from smg_node.http.routes.inference.answer_headers import Answering, close_events, uncancel

_log = logging.getLogger("smg_node.http")


async def stream_made(answering: Answering, run: MadeResponse, pulse: KeepaliveTimer) -> Streamed:
    """Write the events of an answer, to its end; raise errors before the first byte."""
    request = answering.request
    stream = EventStream(request.wire, answering.note)
    pulse.add(stream)
    try:
        await _pump(run, stream)
        request.error_code = "" if run.failure is None else run.failure.code
    except asyncio.CancelledError:
        if request.cut is None:
            raise
        uncancel()
        _end(request, stream, run, request.cut)
    except SmgError as error:
        _end(request, stream, run, error)
    except Exception:
        if request.wire.gone:
            raise
        # A door: the status may be sent already, so the stream itself must say what happened.
        _log.exception("a response broke because of a mistake of ours")
        _end(request, stream, run, internal())
    finally:
        pulse.remove(stream)
        answering.over()
    return Streamed()


def history_headers(run: MadeResponse) -> Mapping[str, str]:
    """Return the headers that tell of its history and of its store."""
    more = "" if run.complete else "+"
    # Who is answered before his response begins is not told the length of a prompt that is not rendered yet.
    tokens = f"; tokens={run.prompt_tokens}" if run.prompt_tokens else ""
    headers = {"x-smg-history": f"items={run.used}/{run.known}{more}{tokens}"}
    if run.spooled:
        headers["x-smg-store"] = "spooled"
    return headers


async def _pump(run: MadeResponse, stream: EventStream) -> None:
    """Write events to the client until their end. Raises the run's error while nothing has been
    written.
    """
    batches = run.told()
    try:
        async for told in batches:
            if run.failure is not None and not stream.committed:
                raise run.failure
            frames = b"".join([frame(one) for one in told])
            if run.over:
                stream.end(frames + DONE)
            else:
                await stream.send(frames)
    finally:
        await close_events(batches)


def _end(request: HttpRequest, stream: EventStream, run: MadeResponse, error: SmgError) -> None:
    """End a stream with an error, by whichever means is left."""
    request.error_code = error.code
    if not stream.committed:
        raise error
    if not run.last_words:
        # Without words of its own the only honest end is a broken connection.
        stream.break_off()
        return
    stream.end(b"".join([frame(one) for one in run.last_words]) + DONE)
