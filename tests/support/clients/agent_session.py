"""A long session of an agent through the official client: everything the API has, in an order that depends on itself.

Each call is made with a client of its own, which may be that of any node. What calls of functions a model would make
out of its text is sent as input here: the engines of the tests only say their prompt again.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response, ResponseInputItemParam

MODEL: Final = "parrot"
WHOLE: Final = {"ignore_eos": True}
"""The engine ends where its prompt's first turn does, unless it is told to go on."""
WEATHER: Final[dict[str, Any]] = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
    "strict": False,
}
SHELL: Final[dict[str, Any]] = {"type": "custom", "name": "shell", "description": "Runs a command."}
_LONG: Final = 48

Item = ResponseInputItemParam


class Agent:
    """One session. `clients` yields whom the next call is made with."""

    def __init__(self, clients: Iterator[OpenAI]) -> None:
        self._clients = clients

    @property
    def client(self) -> OpenAI:
        """Somebody else each time."""
        return next(self._clients)

    def work(self) -> None:
        """Do all of it."""
        last = self.chain()
        self.shown_again(last)
        self.forks(last)
        self.not_kept()
        self.compacted(last)
        self.room()
        self.refused()

    # ── A chain ──────────────────────────────────────────────────────────────

    def say(self, asked: Any, previous: str = "", **more: Any) -> Response:
        """Return an answer that was not streamed."""
        more = {"max_output_tokens": _LONG, **more}
        if previous:
            more["previous_response_id"] = previous
        made: Response = self.client.responses.create(
            model=MODEL, input=asked, extra_body=WHOLE, **more
        )
        return made

    def stream(self, asked: Any, previous: str = "", **more: Any) -> Response:
        """Return an answer that was streamed, as the SDK has put it together."""
        more = {"max_output_tokens": _LONG, **more}
        if previous:
            more["previous_response_id"] = previous
        final: Any = None
        with self.client.responses.create(
            model=MODEL, input=asked, extra_body=WHOLE, stream=True, **more
        ) as events:
            for event in events:
                final = event
        response: Response = final.response
        return response

    def chain(self) -> list[Response]:
        """Talk, call functions and think, each turn on top of the last; return all turns."""
        turns = [self.say("I am Ada.", instructions="Be brief.", metadata={"who": "ada"})]
        for number, ask in enumerate(_TURNS):
            speak = self.stream if number % 2 else self.say
            turns.append(speak(ask, turns[-1].id, tools=[WEATHER, SHELL]))
        turns.append(
            self.say("And now?", turns[-1].id, reasoning={"context": "all_turns", "effort": "low"})
        )
        return turns

    def shown_again(self, turns: list[Response]) -> None:
        """Look at every turn again, and page through what it was given."""
        for turn in turns:
            shown = self.client.responses.retrieve(turn.id)
            assert shown.status == turn.status
            assert shown.output == turn.output
            assert shown.usage == turn.usage
        for order in ("asc", "desc"):
            listed = [
                item.id
                for item in self.client.responses.input_items.list(
                    turns[3].id, order=order, limit=1
                )
            ]
            assert len(listed) == len(_TURNS[2])
        counted = self.client.responses.input_tokens.count(
            model=MODEL, input="How many?", previous_response_id=turns[-1].id
        )
        real = self.say("How many?", turns[-1].id, max_output_tokens=1)
        assert real.usage is not None
        assert counted.input_tokens == real.usage.input_tokens

    def forks(self, turns: list[Response]) -> None:
        """Go on from every turn but the last; then take one out, and see who misses it."""
        for turn in turns[:-1]:
            self.say("Another way.", turn.id, max_output_tokens=8)
        gone = turns[2].id
        self.client.responses.delete(gone)
        with pytest.raises(openai.NotFoundError):
            self.client.responses.retrieve(gone)
        with pytest.raises(openai.NotFoundError):
            self.client.responses.delete(gone)
        with pytest.raises(openai.BadRequestError) as found:
            self.say("Still there?", turns[4].id)
        assert found.value.code == "previous_response_not_found"
        assert gone in found.value.message
        with pytest.raises(openai.BadRequestError):
            self.client.responses.cancel(turns[0].id)

    # ── Beside it ────────────────────────────────────────────────────────────

    def not_kept(self) -> None:
        """Answers of other forms, and one that nobody can come back to."""
        quiet = self.stream("Hush.", store=False, include=["reasoning.encrypted_content"])
        with pytest.raises(openai.NotFoundError):
            self.client.responses.retrieve(quiet.id)
        with pytest.raises(openai.BadRequestError):
            self.say("Go on.", quiet.id)
        rows = self.say(
            "Count.", top_logprobs=2, include=["message.output_text.logprobs"], max_output_tokens=4
        )
        again = self.client.responses.retrieve(rows.id)
        assert again.output == rows.output
        self.stream(
            "Count.", top_logprobs=1, include=["message.output_text.logprobs"], max_output_tokens=4
        )
        cut = self.say("Cut.", max_output_tokens=3, temperature=0.5, top_p=0.9, user="ada")
        assert cut.status == "incomplete"
        self.say("On.", cut.id, truncation="auto", safety_identifier="p1", prompt_cache_key="k")

    def compacted(self, turns: list[Response]) -> None:
        """Have the history summed up, and go on from the summary."""
        short = self.client.responses.with_raw_response.compact(
            model=MODEL, previous_response_id=turns[1].id
        )
        carried: list[Any] = json.loads(short.text)["output"]
        assert carried[-1]["type"] == "compaction"
        self.say([*carried, {"role": "user", "content": "Go on."}], store=False)
        kept = self.stream([*carried, {"role": "user", "content": "Go on."}])
        self.say("And on.", kept.id)

    def room(self) -> None:
        """Talk in a conversation, and see to what is in it."""
        first: list[Item] = [{"role": "user", "content": "I am Bob."}]
        room = self.client.conversations.create(items=first, metadata={"topic": "birds"}).id
        for number in range(3):
            speak = self.say if number % 2 else self.stream
            speak(f"Line {number}.", conversation=room)
        self.client.conversations.items.create(room, items=_TOOLS_USED)
        self.client.conversations.items.create(room, items=_KEPT, include=[])
        listed = [item.to_dict() for item in self._listed(room, order="asc", limit=4)]
        assert len(listed) == 1 + 3 * 2 + len(_TOOLS_USED) + len(_KEPT)
        backwards = [item.to_dict() for item in self._listed(room, limit=3)]
        assert backwards == listed[::-1]
        item_id = str(listed[3]["id"])
        one = self.client.conversations.items.retrieve(item_id, conversation_id=room)
        assert one.to_dict() == listed[3]
        # A reference is the item itself, wherever it stands.
        self.say([{"type": "item_reference", "id": item_id}, {"role": "user", "content": "That."}])
        self.client.conversations.items.delete(item_id, conversation_id=room)
        with pytest.raises(openai.NotFoundError):
            self.client.conversations.items.retrieve(item_id, conversation_id=room)
        self.client.conversations.update(room, metadata={"topic": "fish"})
        assert self.client.conversations.retrieve(room).metadata == {"topic": "fish"}
        quiet = self.say("Unheard.", conversation=room, store=False)
        assert quiet.status == "incomplete"
        last = self.say("Last.", conversation=room)
        assert len(list(self._listed(room, limit=100))) == len(listed) - 1 + 2
        self.client.conversations.delete(room)
        for gone in (
            lambda: self.client.conversations.retrieve(room),
            lambda: self._listed(room),
            lambda: self.say("Anybody?", conversation=room),
        ):
            with pytest.raises(openai.NotFoundError):
                gone()
        assert self.client.responses.retrieve(last.id).output == last.output

    def refused(self) -> None:
        """Ask for what cannot be."""
        for body in _REFUSED:
            with pytest.raises(openai.APIStatusError):
                self.client.post("/responses", body=body, cast_to=object)

    def _listed(self, room: str, **more: Any) -> Any:
        return self.client.conversations.items.list(room, **more)


def _said(role: str, text: str, **more: Any) -> Any:
    return {"type": "message", "role": role, "content": text, **more}


_TURNS: Final[tuple[Any, ...]] = (
    "What is the weather in Paris?",
    [_said("developer", "Use the tools."), _said("user", "Look it up, in Rome too.")],
    [
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Paris"}'},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": '{"city":"Rome"}'},
        {"type": "function_call_output", "call_id": "c2", "output": "sun"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "rain"}]},
    ],
    [
        _said("user", "List the files."),
        {"type": "custom_tool_call", "call_id": "c3", "name": "shell", "input": "ls -l"},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "a.txt"},
    ],
    [
        {
            "type": "reasoning",
            "id": "rs_of_another_server",
            "summary": [{"type": "summary_text", "text": "Files."}],
            "content": [{"type": "reasoning_text", "text": "There is one file."}],
        },
        _said("assistant", "Only one.", phase="commentary"),
        _said("assistant", "It is a.txt.", phase="final_answer"),
        _said("user", "Thanks: ä€😀."),
    ],
    json.loads('[{"role": "user", "content": [{"type": "input_text", "text": "In parts, "},'
               ' {"type": "input_text", "text": "as well."}]}]'),
    "Sum up.",
)  # fmt: skip
_TOOLS_USED: Final[list[Any]] = [
    _said("user", "Weather?"),
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Ask."}]},
    {"type": "function_call", "call_id": "k1", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "k1", "output": "wind"},
    _said("assistant", "It is windy.", phase="final_answer"),
]
# Types that no prompt shows, and that come back as they went in.
_KEPT: Final[list[Any]] = [
    {"type": "mcp_call", "server_label": "s", "name": "t", "arguments": "{}", "output": "o", "status": "completed"},
    {"type": "web_search_call", "action": {"type": "search", "query": "q", "queries": ["q"]}, "status": "completed"},
    {"type": "code_interpreter_call", "code": "1", "container_id": "c", "outputs": None, "status": "completed"},
]  # fmt: skip
_REFUSED: Final[tuple[dict[str, Any], ...]] = (
    {"model": "nobody", "input": "a"},
    {"model": MODEL},
    {"model": MODEL, "input": [{"type": "function_call_output", "call_id": "c", "output": "1"}]},
    {"model": MODEL, "input": [{"type": "no_such_item"}]},
    {"model": MODEL, "input": "a", "conversation": "conv_none"},
    {"model": MODEL, "input": "a", "previous_response_id": "resp_none"},
    {"model": MODEL, "input": "a", "previous_response_id": "resp_a", "conversation": "conv_a"},
    {"model": MODEL, "input": [{"role": "user", "content": [{"type": "input_video"}]}]},
    {"model": MODEL, "input": "a", "stream": True, "include": ["everything"]},
)


def picking(clients: list[OpenAI], choose: Callable[[int], int]) -> Iterator[OpenAI]:
    """Yield any of these clients, for ever."""
    while True:
        yield clients[choose(len(clients))]
