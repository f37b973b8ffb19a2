"""Session of the Realtime API in front of any text engine: a machine of client events, generation events and time. Pure.

    client event | generation event | time  ->  effects: Send, Start, Cancel, Timer, Close

Whoever drives it (one task a session) does the effects in their order, and feeds everything in the order it happened:

    opened = session.open(now_ms=…)                    once, when the socket is there
    session.client(frame, now_ms=…)                    a text frame; `binary` for any other
    Start(response_id, ask, history, truncation)       admit it, then `started`; make its request with
                                                       `history/context/fitted_conversation`, generate
    session.left_out(response_id, places)              what of `history` had no room, where truncation is by a ratio
    session.started(response_id)                       says response.created; events of the generation imply it
    session.generation(response_id, events, now_ms=…)  as they come; whatever breaks is `(Fail(error),)`
    session.time(now_ms)                               when the last Timer says
    session.drain()                                    the node leaves: Close 1012 after the running answers
    session.running                                    answers to be ended when the socket is lost

A Fail before `started` becomes an error that names the client's event, and there never was a response: that is how limits
and unknown models refuse one. After `started` it becomes a response that failed, as one does whose conversation is too long.
Between a Start and its `started` the
answer counts as running. A cancelled answer is over at once; what its generation still says is ignored. `now_ms` is Unix
time in milliseconds, ids are made with `chance`. After Close nothing is said, whatever comes.

Whatever a client sends is answered: by the events of the API, or by one error that names its `event_id`. Only sound that
is appended is answered by errors at most once a second.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeGuard

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.events import Event, Fail
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.core.ports import Rng
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.openai.request_draft import problems_for
from smg_node.dialects.realtime.client_event import (
    HEAD,
    event_id_of,
    named_item,
    object_in,
    type_of,
    unknown_event,
)
from smg_node.dialects.realtime.config.refused_updates import RefusedUpdates
from smg_node.dialects.realtime.config.session_config import first_config, updated
from smg_node.dialects.realtime.conversation import Conversation, check_output
from smg_node.dialects.realtime.effects import Cancel, Close, Effect, RateLimit, Send, Start, Timer
from smg_node.dialects.realtime.event_rate import EventRate
from smg_node.dialects.realtime.event_script import EventScript
from smg_node.dialects.realtime.items import read_item
from smg_node.dialects.realtime.response.response_object import ResponseHead
from smg_node.dialects.realtime.response.response_parameters import nothing_asked, read_response
from smg_node.dialects.realtime.response.response_presenter import ResponsePresenter
from smg_node.dialects.realtime.response.running_answers import RunningAnswer, RunningAnswers
from smg_node.dialects.realtime.session_options import SessionOptions
from smg_storage.ids import new_id, thread_of

_SECOND_MS: Final = 1_000
_NO_VOICE: Final = "this session has no voice: it hears and says text only"


class Session:
    """One session. See the module's docstring for what is fed and in which order."""

    def __init__(
        self,
        model: str,
        *,
        session_id: str,
        conversation_id: str,
        now_ms: int,
        chance: Rng,
        options: SessionOptions,
    ) -> None:
        """Take the model of the URL, and ids that were made for this session: all others are of the thread of the first."""
        self.id = session_id
        self._conversation_id = conversation_id
        self._thread = thread_of(session_id)
        self._chance = chance
        self._options = options
        self._expires_ms = now_ms + options.age_max_s * _SECOND_MS
        self._seen_ms = now_ms
        self._script = EventScript(chance)
        self._config = first_config(model, options.reader, routing_key=session_id)
        self._refused = RefusedUpdates()
        self._conversation = Conversation(
            items_max=options.items_max, bytes_max=options.items_bytes_max
        )
        self._answers = RunningAnswers(beside_max=options.beside_max)
        self._rate = EventRate(per_second=options.events_per_s, seconds_max=options.events_over_s)
        self._sound_refused_ms = now_ms - _SECOND_MS
        self._drains = False
        self._closed = False
        self._now_ms = now_ms

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of the answers whose generation goes on, or is about to start."""
        return self._answers.ids

    @property
    def expires_s(self) -> int:
        """When it ends at the latest, Unix time in seconds."""
        return self._expires_ms // _SECOND_MS

    # ── What happens ─────────────────────────────────────────────────────────

    def open(self, *, now_ms: int) -> list[Effect]:
        """Return the first effects: session.created, conversation.created, the timer."""
        self._now_ms = self._seen_ms = now_ms
        named = {"id": self._conversation_id, "object": "realtime.conversation"}
        return [
            self._say("session.created", session=self._shown()),
            self._say("conversation.created", conversation=named),
            Timer(self._deadline()),
        ]

    def client(self, frame: bytes, *, now_ms: int) -> list[Effect]:
        """Return what follows from a text frame of the client."""
        if self._closed:
            return []
        self._now_ms = self._seen_ms = now_ms
        event_id: str | None = None
        try:
            event = Cursor(object_in(frame), problems_for(self._options.reader))
            event_id = event_id_of(event)
            kind = type_of(event)
            if kind != "input_audio_buffer.append" and self._rate.is_exceeded(now_ms):
                return self._close(Close(1008, "too many events"))
            answer = _CLIENT_EVENTS.get(kind)
            if answer is None:
                raise unknown_event(kind)
            return answer(self, event, event_id)
        except SmgError as error:
            return [Send(self._script.error(error, event_id))]

    def binary(self, *, now_ms: int) -> list[Effect]:
        """Return what follows from a frame that is not text."""
        if self._closed:
            return []
        self._now_ms = self._seen_ms = now_ms
        if self._rate.is_exceeded(now_ms):
            return self._close(Close(1008, "too many events"))
        why = "events are JSON in text frames; sound is sent in them, as base64"
        return [Send(self._script.error(invalid(why, None, "invalid_payload"), None))]

    def started(self, response_id: str, *, rate_limits: Sequence[RateLimit] = ()) -> list[Effect]:
        """Return response.created of an answer that was admitted, and what its limits leave; nothing for one that is over."""
        answer = self._answers.get(response_id)
        if answer is None or answer.presenter.is_begun:
            return []
        said: list[Effect] = [Send(answer.presenter.begin())]
        if rate_limits:
            rows = [limit.shown() for limit in rate_limits]
            said.append(self._say("rate_limits.updated", rate_limits=rows))
        return said

    def left_out(self, response_id: str, places: Collection[int]) -> None:
        """Note which places of an answer's `history` its prompt had no room for: no later prompt has those items.

        Tell it where truncation is by a ratio. Where it is `auto`, each answer may look anew for what fits.
        """
        answer = self._answers.get(response_id)
        if answer is not None:
            self._conversation.leave_out({answer.owners[place] for place in places})

    def generation(self, response_id: str, events: Sequence[Event], *, now_ms: int) -> list[Effect]:
        """Return what follows from events of an answer's generation; nothing if the answer is over."""
        answer = self._answers.get(response_id)
        if answer is None or not events or self._closed:
            return []
        self._now_ms = now_ms
        first = events[0]
        if _is_refusal(first) and not answer.presenter.is_begun:
            self._answers.end(response_id)
            self._seen_ms = now_ms
            return [Send(self._script.error(first.error, answer.event_id)), *self._drained()]
        said = self.started(response_id)
        said += map(Send, answer.presenter.tell(events, now_ms=now_ms))
        if answer.presenter.ended:
            self._answers.end(response_id)
            self._seen_ms = now_ms
            said += self._drained()
        return said

    def time(self, now_ms: int) -> list[Effect]:
        """Return what follows from the time: the end of a session that is too old or idle, else the next timer."""
        if self._closed:
            return []
        self._now_ms = now_ms
        if now_ms >= self._expires_ms:
            minutes = self._options.age_max_s / 60
            return self._expire(f"Your session hit the maximum duration of {minutes:g} minutes.")
        if now_ms >= self._deadline():
            return self._expire(f"Your session was idle for {self._options.idle_max_s} seconds.")
        return [Timer(self._deadline())]

    def drain(self) -> list[Effect]:
        """Return what follows from the node's leaving: no answer begins any more, and after the last one it closes."""
        self._drains = True
        return self._drained()

    # ── Client events ────────────────────────────────────────────────────────

    def _update(self, event: Cursor, _event_id: str | None) -> list[Effect]:
        event.only((*HEAD, "session"))
        change = event.object("session", required=True)
        try:
            event.problems.check()
            assert change is not None, "what is missing was noted"
            self._config = updated(self._config, change, self._options.reader)
        except SmgError as error:
            self._refused.refused(() if change is None else change.values, error.message)
            raise
        self._refused.accepted(change.values)
        return [self._say("session.updated", session=self._shown())]

    def _create_item(self, event: Cursor, _event_id: str | None) -> list[Effect]:
        event.only((*HEAD, "item", "previous_item_id"))
        after = event.text("previous_item_id")
        given = event.object("item", required=True)
        counter = PartCounter(self._options.reader)
        item = None if given is None else read_item(given, counter, self._new_id)
        event.problems.check()
        assert item is not None, "what is wrong with it was noted"
        self._conversation.check_room(item)
        check_output(self._conversation, item, after)
        previous = self._conversation.add(item, after=after)
        return [
            self._say(kind, previous_item_id=previous, item=item.shown)
            for kind in ("conversation.item.added", "conversation.item.done")
        ]

    def _retrieve_item(self, event: Cursor, _event_id: str | None) -> list[Effect]:
        item_id = named_item(event)
        item = self._conversation.item(item_id, "item_id")
        shown = self._answers.so_far(item_id) or item.shown
        return [self._say("conversation.item.retrieved", item=shown)]

    def _delete_item(self, event: Cursor, _event_id: str | None) -> list[Effect]:
        item_id = named_item(event)
        self._conversation.remove(item_id)
        return [self._say("conversation.item.deleted", item_id=item_id)]

    def _truncate_item(self, event: Cursor, _event_id: str | None) -> list[Effect]:
        event.only((*HEAD, "item_id", "content_index", "audio_end_ms"))
        item_id = event.text("item_id", required=True)
        event.integer("content_index", low=0, required=True)
        event.integer("audio_end_ms", low=0, required=True)
        event.problems.check()
        assert item_id is not None, "it is required"
        why = f"there is no sound of an answer in the item {quoted(item_id)}"
        raise invalid(why, "item_id", "item_truncate_invalid_item_id")

    def _append_sound(self, _event: Cursor, _event_id: str | None) -> list[Effect]:
        if self._now_ms - self._sound_refused_ms < _SECOND_MS:
            return []
        self._sound_refused_ms = self._now_ms
        raise invalid(_NO_VOICE, "type", "invalid_state")

    def _commit_sound(self, _event: Cursor, _event_id: str | None) -> list[Effect]:
        why = f"there is nothing to commit: {_NO_VOICE}"
        raise invalid(why, "type", "input_audio_buffer_commit_empty")

    def _clear_sound(self, _event: Cursor, _event_id: str | None) -> list[Effect]:
        return [self._say("input_audio_buffer.cleared")]

    def _clear_spoken(self, _event: Cursor, _event_id: str | None) -> list[Effect]:
        raise invalid(_NO_VOICE, "type", "invalid_state")

    def _create_response(self, event: Cursor, event_id: str | None) -> list[Effect]:
        event.only((*HEAD, "response"))
        wish = event.object("response")
        event.problems.check()
        self._refused.check()
        if self._drains:
            why = "this node is about to leave: connect again"
            raise SmgError(ErrorKind.OVERLOADED, why)
        read = read_response(
            nothing_asked() if wish is None else wish,
            self._config,
            self._conversation,
            options=self._options.reader,
            items_max=self._options.items_max,
            new_id=self._new_id,
        )
        self._answers.check_free(is_beside=read.is_beside)
        if not read.is_beside:
            self._conversation.check_room()
        response_id = self._new_id("resp")
        head = ResponseHead(
            response_id,
            None if read.is_beside else self._conversation_id,
            read.max_output_tokens,
            read.output,
            read.metadata,
        )
        presenter = ResponsePresenter(
            head,
            self._script,
            None if read.is_beside else self._conversation,
            thread=self._thread,
            chance=self._chance,
        )
        self._answers.begin(
            response_id,
            RunningAnswer(presenter, read.context.owners, event_id, read.is_beside),
        )
        return [Start(response_id, read.ask, read.context.docs, self._config.truncation)]

    def _cancel_response(self, event: Cursor, _event_id: str | None) -> list[Effect]:
        event.only((*HEAD, "response_id"))
        wanted = event.text("response_id")
        event.problems.check()
        response_id = self._answers.to_cancel(wanted)
        said: list[Effect] = [Cancel(response_id), *self.started(response_id)]
        said += map(Send, self._answers.end(response_id).presenter.cancel("client_cancelled"))
        return [*said, *self._drained()]

    # ── Step by step ─────────────────────────────────────────────────────────

    def _say(self, kind: str, **fields: Any) -> Send:
        return Send(self._script.say(kind, fields))

    def _shown(self) -> Mapping[str, Any]:
        return self._config.shown(session_id=self.id, expires_s=self.expires_s)

    def _new_id(self, prefix: str) -> str:
        if prefix == "call":
            return f"call_{self._chance.getrandbits(96):024x}"
        return new_id(prefix, self._thread, now_ms=self._now_ms, chance=self._chance)

    def _deadline(self) -> int:
        """Return when time next ends anything; a session with an answer under way is not idle."""
        last = self._now_ms if self._answers.ids else self._seen_ms
        return min(self._expires_ms, last + self._options.idle_max_s * _SECOND_MS)

    def _expire(self, why: str) -> list[Effect]:
        error = invalid(why, None, "session_expired")
        return [Send(self._script.error(error, None)), *self._close(Close(1001, why))]

    def _drained(self) -> list[Effect]:
        if not self._drains or self._answers.ids or self._closed:
            return []
        return self._close(Close(1012, "this node is about to leave"))

    def _close(self, close: Close) -> list[Effect]:
        self._closed = True
        ended: list[Effect] = [Cancel(response_id) for response_id in self._answers.ids]
        for response_id in self._answers.ids:
            self._answers.end(response_id)
        return [*ended, close]


def _is_refusal(event: Event) -> TypeGuard[Fail]:
    """Whether this is the refusal of an answer; a prompt that is too long is the fault of the conversation."""
    return type(event) is Fail and event.error.code != TOO_LONG_CODE


_CLIENT_EVENTS: Final[Mapping[str, Callable[[Session, Cursor, str | None], list[Effect]]]] = {
    "session.update": Session._update,
    "conversation.item.create": Session._create_item,
    "conversation.item.retrieve": Session._retrieve_item,
    "conversation.item.delete": Session._delete_item,
    "conversation.item.truncate": Session._truncate_item,
    "input_audio_buffer.append": Session._append_sound,
    "input_audio_buffer.commit": Session._commit_sound,
    "input_audio_buffer.clear": Session._clear_sound,
    "output_audio_buffer.clear": Session._clear_spoken,
    "response.create": Session._create_response,
    "response.cancel": Session._cancel_response,
}
