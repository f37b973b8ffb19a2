"""Whatever a client of a realtime session sends, and whenever: it is answered, and what it is told is whole and in order."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.events import Event
from smg_node.dialects.realtime.effects import Close, Effect, RateLimit, Send, Start
from smg_node.dialects.realtime.session_options import SessionOptions
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.dialects.responses.request.items_to_turns import turns_of
from support.answers.grammatical_streams import streams
from support.answers.realtime_client import RealtimeClient, types
from support.answers.responses import json_values, teller_of

OPTIONS: Final = SessionOptions(age_max_s=100, idle_max_s=30, items_max=12, beside_max=2)
RATE: Final = RateLimit("tokens", 5, 4, 0.5)

ids = st.sampled_from(["a", "b", "c", "root", "a b", "$0", "$1", "$2", "$9"])
"""`$2` stands for the third item of the conversation, as far as there is one."""
words = st.text(max_size=4)
texts = st.one_of(words, st.none(), st.just(5))


def fields(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of these fields."""
    return st.fixed_dictionaries({}, optional=values)


parts = fields(
    type=st.sampled_from(["input_text", "output_text", "input_audio", "input_image", "text"]),
    text=texts,
    transcript=texts,
    image_url=st.sampled_from(["data:image/png;base64,AA==", "https://a/b"]),
)


def message(text: str, item_id: str | None) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content, "id": item_id}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


items = st.one_of(
    st.builds(message, words, st.none() | ids),
    st.builds(message, words, st.none()),
    st.builds(call, st.sampled_from(["a", "b"])),
    st.builds(
        lambda call_id: {"type": "function_call_output", "call_id": call_id, "output": ""},
        st.sampled_from(["a", "b", "call_0_0"]),
    ),
    fields(
        id=ids,
        type=st.sampled_from(["message", "function_call", "function_call_output", "reasoning"]),
        role=st.sampled_from(["user", "assistant", "system", "tool"]),
        content=st.lists(parts, max_size=2) | texts,
        call_id=ids,
        name=texts,
        arguments=texts,
        output=texts,
        status=st.sampled_from(["completed", "incomplete", "in_progress", "lost"]),
    ),
)
tools = st.lists(fields(type=st.sampled_from(["function", "mcp"]), name=texts), max_size=2)
GENERATION: Final[dict[str, st.SearchStrategy[Any]]] = {
    "instructions": texts,
    "tools": tools | json_values,
    "tool_choice": st.sampled_from(["auto", "none", "required", {"type": "function"}, 5]),
    "max_output_tokens": st.sampled_from([1, "inf", 0, "x", 1.5, None]),
    "output_modalities": st.sampled_from([[], ["text"], ["audio"], "text", [5]]),
    "reasoning": st.sampled_from([None, {}, {"effort": "low"}, {"effort": "none"}]),
    "temperature": st.sampled_from([None, 0, 1.5, 9, "hot"]),
}
sessions = fields(
    **GENERATION,
    type=st.sampled_from(["realtime", "realtime", "realtime", "transcription"]),
    truncation=st.sampled_from(
        ["auto", "disabled", 5, {"type": "retention_ratio", "retention_ratio": 0.5}]
    ),
    audio=json_values,
    tracing=json_values,
)
responses = fields(
    **GENERATION,
    conversation=st.sampled_from(["auto", "none", "none", "conv", None]),
    input=st.lists(
        items | st.builds(lambda i: {"type": "item_reference", "id": i}, ids), max_size=3
    ),
    metadata=st.sampled_from([{}, {"a": "b"}, {"a": 5}, []]),
)
KINDS: Final[Mapping[str, dict[str, st.SearchStrategy[Any]]]] = {
    "session.update": {"session": sessions},
    "conversation.item.create": {"item": items, "previous_item_id": ids},
    "conversation.item.retrieve": {"item_id": ids},
    "conversation.item.delete": {"item_id": ids},
    "conversation.item.truncate": {
        "item_id": ids,
        "content_index": st.integers(-1, 1),
        "audio_end_ms": st.integers(-1, 1),
    },
    "input_audio_buffer.append": {"audio": texts},
    "input_audio_buffer.commit": {},
    "input_audio_buffer.clear": {},
    "output_audio_buffer.clear": {},
    "response.create": {"response": responses},
    "response.cancel": {"response_id": ids},
    "no.such.event": {},
}


@st.composite
def client_events(draw: st.DrawFn) -> bytes:
    """A client's event, nearly right: a field may be missing, or be anything."""
    kind = draw(st.sampled_from([*KINDS]))
    event = {"type": kind, **draw(fields(**KINDS[kind], event_id=st.sampled_from(["e1", "e2"])))}
    if draw(st.integers(0, 9)) == 0:
        event[draw(st.sampled_from(["type", "event_id", *KINDS[kind]]))] = draw(json_values)
    return json.dumps(event).encode()


def event(kind: str, **values: Any) -> bytes:
    return json.dumps({"type": kind, **values}).encode()


def added(item: Any, previous: str | None) -> bytes:
    return event("conversation.item.create", item=item, previous_item_id=previous, event_id="e4")


known_ids = st.sampled_from(["$0", "$1", "$2"])
updates = st.sampled_from(
    [
        {"instructions": "brief"},
        {"tools": [{"type": "function", "name": "f"}]},
        {"output_modalities": ["text"]},
        {"output_modalities": ["audio"]},
        {"audio": None, "tracing": {"metadata": {"a": 1}}},
    ]
)
BESIDE_WISH: Final = {"conversation": "none", "metadata": {"a": "b"}}
right_events = st.one_of(
    st.builds(added, items, st.none() | ids),
    st.builds(lambda c: event("session.update", session={"type": "realtime", **c}), updates),
    st.builds(lambda i: event("conversation.item.delete", item_id=i), known_ids),
    st.builds(lambda i: event("conversation.item.retrieve", item_id=i), known_ids),
    st.builds(
        lambda i: event(
            "response.create",
            response={**BESIDE_WISH, "input": [{"type": "item_reference", "id": i}]},
        ),
        known_ids,
    ),
    st.sampled_from(
        [
            event("response.create", event_id="e3"),
            event("response.create", response=BESIDE_WISH),
            event("response.cancel"),
        ]
    ),
)
"""Events of a client that knows what it does, if not always when."""

actions = st.one_of(
    st.tuples(st.just("client"), right_events),
    st.tuples(st.just("client"), right_events),
    st.tuples(st.just("client"), right_events),
    st.tuples(st.just("client"), client_events()),
    st.tuples(st.just("client"), st.binary(max_size=8)),
    st.tuples(st.just("told"), st.tuples(st.integers(0, 2), st.integers(1, 30))),
    st.tuples(st.just("told"), st.tuples(st.integers(0, 2), st.integers(1, 6))),
    st.tuples(st.just("told"), st.tuples(st.integers(0, 2), st.integers(1, 6))),
    st.tuples(st.just("started"), st.integers(0, 2)),
    st.tuples(st.just("left out"), st.integers(0, 2)),
    st.tuples(st.just("time"), st.sampled_from([0, 1, 999, 20_000])),
    st.tuples(st.just("binary"), st.just(0)),
    st.tuples(st.just("drain"), st.sampled_from([0, 0, 0, 0, 0, 1])),
)


class Driver:
    """What stands between a session, its client and the engines: it does as it is told."""

    def __init__(self, generations: Sequence[list[Event]]) -> None:
        self.client = RealtimeClient(OPTIONS)
        self.starts: dict[str, Start] = {}
        self._generations = generations
        self._left: dict[str, list[Event]] = {}

    @property
    def closed(self) -> bool:
        return any(isinstance(one, Close) for one in self.client.effects)

    def do(self, action: tuple[str, Any]) -> None:
        """Do one thing, and start what is to be started."""
        before, closed = len(self.client.effects), self.closed
        self._do(*action)
        effects = self.client.effects[before:]
        assert not (closed and effects), "nothing is said behind a close"
        for effect in effects:
            if isinstance(effect, Start):
                self._start(effect)

    def _start(self, start: Start) -> None:
        number = len(self.starts) % len(self._generations)
        self.starts[start.response_id] = start
        self._left[start.response_id] = list(self._generations[number])
        # Its prompt can be made, and is of items in their order.
        generate_request(start.ask, (*start.history, *start.ask.items))
        known = [doc.id for doc in start.history if doc.id in self.client.order]
        assert known == sorted(known, key=self.client.order.index)

    def _do(self, what: str, value: Any) -> None:
        client, session = self.client, self.client.session
        match what:
            case "client":
                self._send(self._named(value))
            case "told":
                response_id = self._running(value[0])
                left = self._left.get(response_id, [])
                told, left[: value[1]] = left[: value[1]], []
                client.feed(response_id, told)
            case "started":
                client.start(self._running(value), RATE)
            case "left out":
                response_id = self._running(value)
                start = self.starts.get(response_id)
                session.left_out(response_id, range(len(start.history) // 2) if start else ())
            case "time":
                client.now_ms += value
                client.take(session.time(client.now_ms))
            case "binary":
                client.take(session.binary(now_ms=client.now_ms))
            case "drain" if value:
                client.take(session.drain())

    def _running(self, number: int) -> str:
        running = self.client.session.running
        return running[number] if number < len(running) else "resp_none"

    def _named(self, frame: bytes) -> bytes:
        for place in range(10):
            item_id = self.client.order[place] if place < len(self.client.order) else "gone"
            frame = frame.replace(b"$%d" % place, item_id.encode())
        return frame

    def _send(self, frame: bytes) -> None:
        closed, before = self.closed, len(self.client.effects)
        told = self.client.send_raw(frame)
        effects = self.client.effects[before:]
        if not closed and b'"input_audio_buffer.append"' not in frame:
            assert any(isinstance(one, Send | Start | Close) for one in effects)
        errors = [one for one in told if one["type"] == "error"]
        assert len(errors) <= 1
        assert not errors or told == errors
        for one in errors:
            assert one["error"]["event_id"] == _event_id(frame)

    def finish(self) -> None:
        """End what goes on."""
        for response_id in self.client.session.running:
            self.client.send("response.cancel", response_id=response_id)


def _event_id(frame: bytes) -> str | None:
    try:
        event_id = json.loads(frame).get("event_id")
    except (ValueError, AttributeError):
        return None
    return event_id if isinstance(event_id, str) else None


CODES: Final = {
    "response.created": "B", "response.output_item.added": "A", "conversation.item.added": "a",
    "response.content_part.added": "P", "response.output_text.delta": "d",
    "response.output_text.done": "t", "response.content_part.done": "p",
    "response.output_item.done": "D", "conversation.item.done": "c",
    "response.function_call_arguments.delta": "g",
    "response.function_call_arguments.done": "G", "response.done": "Z",
}  # fmt: skip
IN_CONVERSATION: Final = re.compile("B(AaPd*tpDc|Aag+GDc)*Z")
BESIDE: Final = re.compile("B(APd*tpD|Ag+GD)*Z")


def check_responses(client: RealtimeClient) -> None:
    """Every response is told in the order of the API, by itself, and its object is what was told of it."""
    owners: dict[str, str] = {}
    spelled: dict[str, str] = {}
    output: dict[str, list[Any]] = {}
    for event in client.events:
        code = CODES.get(event["type"])
        response = event.get("response_id") or event.get("response", {}).get("id")
        item = event.get("item", {}).get("id")
        if code in ("A", "D"):
            owners[item] = response
        response = response or owners.get(item)
        if code is None or response is None:
            continue
        spelled[response] = spelled.get(response, "") + code
        if code == "D":
            output.setdefault(response, []).append(event["item"])
        if code == "Z":
            told = event["response"]
            assert told["output"] == output.get(response, [])
            beside = told["conversation_id"] is None
            grammar = BESIDE if beside else IN_CONVERSATION
            assert grammar.fullmatch(spelled[response]), spelled[response]
    if not any(isinstance(one, Close) for one in client.effects):
        assert all(spelling.endswith("Z") for spelling in spelled.values())


@given(
    st.lists(actions, min_size=8, max_size=50),
    st.lists(streams(failing=False) | streams(failing=True), min_size=1, max_size=3),
)
def test_whatever_happens_is_answered_in_order(
    happening: list[tuple[str, Any]], generations: list[list[Event]]
) -> None:
    driver = Driver(generations)
    for action in happening:
        driver.do(action)
    driver.finish()
    check_responses(driver.client)
    assert driver.client.session.running == ()
    check_timers(driver.client.effects)


def check_timers(effects: Sequence[Effect]) -> None:
    """Nothing is asked for behind a close."""
    closes = [place for place, one in enumerate(effects) if isinstance(one, Close)]
    assert not closes or closes == [len(effects) - 1]


@given(st.lists(client_events(), max_size=12), streams())
def test_the_same_happening_is_told_the_same(frames: list[bytes], events: list[Event]) -> None:
    def told() -> list[str]:
        driver = Driver([events])
        for frame in frames:
            driver.do(("client", frame))
            driver.do(("told", (0, 3)))
        return [json.dumps(event) for event in driver.client.events]

    first = told()
    assert first == told()
    assert len(set(first)) == len(first)
    assert types([json.loads(first[0])]) == ["session.created"]


@given(streams())
def test_an_answer_comes_back_in_prompts_as_one_of_responses_does(events: list[Event]) -> None:
    client = RealtimeClient()
    client.say("hi")
    client.feed(client.ask().response_id, events)
    ours = client.ask().history
    theirs = [item for item in _output_of(events) if not _cut_call(item)]
    assert turns_of(ours, reasoning="current_turn") == turns_of(
        [ours[0], *theirs], reasoning="current_turn"
    )


def _output_of(events: list[Event]) -> tuple[ItemDoc, ...]:
    presenter = teller_of()
    presenter.begin()
    presenter.tell(events)
    assert presenter.outcome is not None
    presenter.close(presenter.outcome)
    items = presenter.output()
    # A thought that led to nothing more stays with a response of Responses; here it is nobody's.
    last = [
        number for number, item in enumerate(items) if item.type != "reasoning" or _carries(item)
    ]
    return items[: last[-1] + 1] if last else ()


def _carries(item: ItemDoc) -> bool:
    """Whether it is no thought, but the state of the item before it."""
    return not item.values()["content"] and bool(item.values().get("encrypted_content"))


def _cut_call(item: ItemDoc) -> bool:
    return item.type == "function_call" and item.status == "incomplete"
