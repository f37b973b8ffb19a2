"""Generation routes: body to dialect to run, and back as one answer or as a stream.

No more is read from the engine while the client has unread output, and whatever ends the route (the
client, the deadline, a bug) ends the run, which cancels the engine's calls. Every failure before
the first byte has its own status; every later one is the last event of the stream, and if even that
cannot be written, the connection is reset.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Fail
from smg_node.core.tool_switch import is_switched_on
from smg_node.dialects.dialect import (
    PLAIN_LEVELS,
    Dialect,
    ParsedBody,
    Presenter,
    reading_steps,
)
from smg_node.dialects.json_body import LARGE_BYTES
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.delta_coalescing import DeltaCoalescer
from smg_node.http.message.event_stream import EventStream, Holding
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import Reply, Streamed
from smg_node.http.middleware.caller_context import context_of, routing_key
from smg_node.http.middleware.error_replies import internal
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.routes.inference.answer_headers import Answering, uncancel
from smg_node.http.routes.inference.direct_answer import DirectAnswers
from smg_node.http.routes.inference.relay_answers import Relaying
from smg_node.http.routes.inference.shown_run import ShownRun, answer_size
from smg_node.http.routes.inference.translation import (
    asks_of,
    model_asked,
    names_own_servers,
    streams_asked,
)
from smg_node.pipeline.generation.run_interface import Run
from smg_node.pipeline.relay.relay_request import APIS, NATIVE, Api, relayable

StreamHead: TypeAlias = Callable[[], Mapping[str, str] | Reply]
ROUNDS_HEADER: Final = "x-smg-tool-rounds"
"""Header of whole answers that ended only because tools of this side have had all their rounds."""
_WITHOUT_TOOLS: Final = "completions"

_log = logging.getLogger("smg_node.http")


class StreamForm(msgspec.Struct, frozen=True):
    """Form of a stream: the headers in which it differs, and what is written into a silent one."""

    headers: Mapping[str, str]
    keepalive: bytes


class GenerationRoutes:
    """Serves every dialect that generates."""

    def __init__(
        self, parts: HttpParts, bodies: BodyReader, pulse: KeepaliveTimer, joining: DeltaCoalescer
    ) -> None:
        self._parts = parts
        self._bodies = bodies
        self._pulse = pulse
        self._joining = joining
        self._holding = Holding()
        direct = DirectAnswers(bodies.large, pulse, joining, self._holding)
        self._relaying = Relaying(parts, pulse, direct)

    async def serve(
        self, dialect_name: str, request: HttpRequest, form: StreamForm | None = None
    ) -> Reply | Streamed:
        """Answer one generation in a dialect; `form` is that of its stream where it is none of events."""
        parts = self._parts
        dialect = parts.dialects[dialect_name]
        raw = self._bodies.arrived(request) or await self._bodies.json(request)
        plain = parts.options.nesting_max >= PLAIN_LEVELS and len(raw) <= LARGE_BYTES
        reading = dialect.read_plain(raw) if plain else None
        if (
            reading is None
            or self._passed_on(dialect_name, reading.request.model, form, request) is not None
        ):
            found = await self._read(dialect, raw, request, form)
            if not isinstance(found, ParsedBody):
                return found
            reading = found
        wish, standing = reading.request, request.standing
        key = standing.routing_key
        if key is None:
            key = standing.routing_key = routing_key(request.headers, parts.options.key_headers)
        if key:
            wish = replace(wish, routing_key=key)
        request.model = wish.model
        if standing.identity.restrictions is not None:
            allow_model(request)
        if request.trace.sampled:
            request.trace.set("gen_ai.request.model", wish.model)
        # Workers that do not speak this API themselves, or do not run our tools, answer as chats. What else comes here
        # is for engines: it was looked up before.
        read = dialect_name not in APIS or is_switched_on(request.headers)
        translated = read and parts.relays.takes(wish.model)
        run = (parts.translating if translated else parts.generations).start(
            dialect_name, wish, context_of(request, parts.options, streamed=wish.stream)
        )
        presenter = dialect.presenter(reading, request)
        answering = Answering(parts, request, wish, run)
        if wish.serving is not None:
            answering.more = partial(_rounds, run)
        if wish.stream:
            head: StreamHead = answering.head
            keepalive = dialect.keepalive
            if form is not None:
                head, keepalive = partial(_formed, answering, form), form.keepalive
            return await self._stream(answering, presenter, head, keepalive)
        try:
            answer = await run.answer()
            sampling = wish.sampling
            if sampling.logprobs is None and sampling.prompt_logprobs is None:
                said = presenter.answer(answer)
            else:
                size = answer_size(answer, sampling)
                said = await self._bodies.large.made(size, lambda: presenter.answer(answer))
        except BaseException:
            # Whatever it is answered with says how far it came.
            answering.over()
            raise
        return answering.shaped(said) or answering.noted(said)

    async def _read(
        self, dialect: Dialect, raw: bytes, request: HttpRequest, form: StreamForm | None
    ) -> "ParsedBody[Any] | Reply | Streamed":
        """Return the parsed body of a request; the reply to one whose own bytes were passed on."""
        parts, large = self._parts, self._bodies.large
        body = await large.decoded(raw, nesting_max=parts.options.nesting_max)
        model = model_asked(dialect.name, body, request)
        relayed = self._passed_on(dialect.name, model, form, request)
        if relayed is None or (
            names_own_servers(dialect.name, body) and parts.reading.tool_servers
        ):
            return await large.read_in_steps(
                raw, body, lambda body: reading_steps(dialect, body, request)
            )
        streamed = streams_asked(dialect.name, body, request)
        make = partial(relayable, relayed, raw, body, model=model, streamed=streamed)
        asked = await large.made(len(raw), make)
        asks = None
        if parts.relays.has_targets(asked.model):
            asks = asks_of(parts, dialect, request, body, streamed=asked.streamed)
        return await self._relaying.answer(asked, request, asks)

    def _passed_on(
        self, dialect: str, model: object, form: StreamForm | None, request: HttpRequest
    ) -> Api | None:
        """Return the API in which a client's own bytes are passed on for that model; None where they are read here.

        A request that asks for tools of this side is read, whoever answers it.
        """
        relays = self._parts.relays
        api = APIS.get(dialect)
        if api is not None:
            takes = relays.takes(model)
        else:
            api = NATIVE.get(dialect)
            takes = api is not None and form is None and relays.speaks(model, api)
        if takes and dialect != _WITHOUT_TOOLS and is_switched_on(request.headers):
            return None
        return api if takes else None

    async def _stream(
        self, answering: Answering, presenter: Presenter, head: StreamHead, keepalive: bytes
    ) -> Streamed:
        request = answering.request
        stream = EventStream(request.wire, head, keepalive=keepalive)
        self._pulse.add(stream)
        if self._joining.on:
            presenter = self._joining.over(presenter, stream)
        try:
            shown = ShownRun(
                stream, presenter, self._pulse, self._holding, presenter.around, stream.put
            )
            await answering.run.tell(shown.receive, stream.drained, shown)
            failed = shown.failure()
            request.error_code = "" if failed is None else failed.code
        except asyncio.CancelledError:
            if request.cut is None:
                raise
            uncancel()
            self._fail(request, stream, presenter, request.cut)
        except SmgError as error:
            self._fail(request, stream, presenter, error)
        except Exception:
            if request.wire.gone:
                raise
            # A door: the status may be sent already, so the stream itself must say what happened.
            _log.exception("a generation broke because of a mistake of ours")
            self._fail(request, stream, presenter, internal())
        finally:
            stream.let_go()
            self._pulse.remove(stream)
            answering.over()
        return Streamed()

    def _fail(
        self, request: HttpRequest, stream: EventStream, presenter: Presenter, error: SmgError
    ) -> None:
        """End a stream with an error, by whichever means is left."""
        request.error_code = error.code
        if not stream.committed:
            raise error
        try:
            frames = presenter.frames((Fail(error),))
        except Exception:
            # A door: without words of our own the only honest end is a broken connection.
            _log.exception("a failure could not be presented")
            stream.break_off()
            return
        stream.end(frames)


def _formed(answering: Answering, form: StreamForm) -> Mapping[str, str]:
    """Return the headers of a stream in this form."""
    return {**answering.note(), **form.headers}


def _rounds(run: Run) -> Mapping[str, str]:
    """Return the header of an answer whose tools have had as many rounds as one answer may have."""
    from smg_node.pipeline.tool_loop.loop_run import ToolLoopRun

    spent = run.rounds_spent if isinstance(run, ToolLoopRun) else 0
    return {ROUNDS_HEADER: str(spent)} if spent else {}
