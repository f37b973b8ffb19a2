"""A session with responses that are made in the background: left, looked for, picked up again, cancelled.

Each call is made with a client of its own, which may be that of any node.
"""

import time
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response

from support.clients.agent_session import WHOLE

SLOW: Final = "slow"
"""A model that takes its time: what is made by it can be met on its way."""
WAIT_S: Final = 30.0
_POLL_S: Final = 0.02
_TOKENS: Final = 20
_LONG: Final = 2_000
"""Half a minute's worth: nobody waits for the end of these."""


class Absent:
    """One session. `clients` yields whom the next call is made with, `chance` decides when who looks."""

    def __init__(self, clients: Iterator[OpenAI], chance: Random) -> None:
        self._clients = clients
        self._chance = chance

    @property
    def client(self) -> OpenAI:
        """Somebody else each time."""
        return next(self._clients)

    def start(self, asked: Any, previous: str = "", **more: Any) -> Response:
        """Return a response that has been accepted, and no more."""
        if previous:
            more["previous_response_id"] = previous
        more = {"max_output_tokens": _TOKENS, **more}
        made: Response = self.client.responses.create(
            model=SLOW, input=asked, background=True, extra_body=WHOLE, **more
        )
        assert made.background
        assert made.status in ("queued", "in_progress")
        return made

    def left(self, asked: Any, after: int, **more: Any) -> str:
        """Start a response, hear of it up to this event, and leave; return its id."""
        response_id = ""
        more = {"max_output_tokens": _TOKENS, **more}
        with self.client.responses.create(
            model=SLOW, input=asked, background=True, stream=True, extra_body=WHOLE, **more
        ) as events:
            for event in events:
                if event.type == "response.created":
                    response_id = event.response.id
                if event.sequence_number >= after:
                    break
        return response_id

    def over(self, response_id: str) -> Response:
        """Return a response once it is over, looking here and there."""
        give_up_s = time.monotonic() + WAIT_S
        while True:
            shown: Response = self.client.responses.retrieve(response_id)
            if shown.status not in ("queued", "in_progress"):
                return shown
            assert time.monotonic() < give_up_s, f"{response_id} is {shown.status} for too long"
            time.sleep(_POLL_S)

    def followed(self, response_id: str, after: int | None = None) -> list[dict[str, Any]]:
        """Return all events after this one, up to the end."""
        if after is None:
            stream = self.client.responses.retrieve(response_id, stream=True)
        else:
            stream = self.client.responses.retrieve(response_id, stream=True, starting_after=after)
        with stream:
            return [event.to_dict() for event in stream]

    def picked_up(self, response_id: str, after: int) -> list[int]:
        """Return the numbers of the events that the SDK's own accumulator yields after this one."""
        with self.client.responses.stream(response_id=response_id, starting_after=after) as stream:
            return [event.sequence_number for event in stream]

    def work(self) -> list[Any]:
        """Do all of it; return what came of it: objects, and streams from their beginning."""
        facts: list[Any] = []
        first = self.start("I am Ada.", instructions="Be brief.", metadata={"who": "ada"})
        facts += self._seen(first.id)
        second = self.left("And you?", self._chance.randrange(12), previous_response_id=first.id)
        facts += self._seen(second)
        room = self.client.conversations.create().id
        third = self.start("In a room.", conversation=room)
        items = self.client.responses.input_items.list(third.id)
        assert [item.type for item in items] == ["message"]
        facts += self._seen(third.id)
        said = [item.to_dict() for item in self.client.conversations.items.list(room, order="asc")]
        assert len(said) == 2
        fourth = self.client.responses.create(model=SLOW, input="Now.", previous_response_id=second)
        facts += [said, fourth.to_dict()]
        self._refused(fourth.id)
        self._cancelled()
        self._gone()
        return facts

    def _seen(self, response_id: str) -> list[Any]:
        """Follow it on its way from anywhere, and then again; return its object and its events."""
        some = self._chance.randrange(8)
        live = self.followed(response_id, some)
        whole = self.followed(response_id)
        assert whole[some + 1 :] == live
        after = self._chance.randrange(len(whole) - 1)
        assert self.picked_up(response_id, after) == [*range(after + 1, len(whole))]
        final = self.over(response_id)
        assert whole[-1]["response"] == final.to_dict()
        assert self.followed(response_id, len(whole) - 1) == []
        assert self.followed(response_id, 10**9) == []
        return [final.to_dict(), whole]

    def _refused(self, foreground: str) -> None:
        with pytest.raises(openai.BadRequestError):
            self.client.responses.cancel(foreground)
        with pytest.raises(openai.NotFoundError):
            self.client.responses.cancel(f"{foreground[:-4]}0000")
        with pytest.raises(openai.BadRequestError):
            self.start("Not kept.", store=False)
        for after in ("-1", "x", "1.5"):
            with pytest.raises(openai.BadRequestError):
                self.client.get(
                    f"/responses/{foreground}?stream=true&starting_after={after}", cast_to=object
                )

    def _cancelled(self) -> None:
        """Cancel one on its way, which nobody can go on from before it is over; it stays as it was left."""
        made = self.start("Tell me everything.", max_output_tokens=_LONG)
        with pytest.raises(openai.BadRequestError):
            self.start("Too early.", made.id)
        ended = self.client.responses.cancel(made.id)
        assert ended.status == "cancelled"
        for _ in range(3):
            assert self.client.responses.cancel(made.id).to_dict() == ended.to_dict()
            assert self.over(made.id).to_dict() == ended.to_dict()
        told = self.followed(made.id)
        assert told[-1]["type"] == "response.incomplete"
        assert told[-1]["response"] == ended.to_dict()

    def _gone(self) -> None:
        """Delete one on its way: it is gone everywhere, and stays so."""
        made = self.start("Forget this.", max_output_tokens=_LONG)
        self.client.responses.delete(made.id)
        for _ in range(12):
            with pytest.raises(openai.NotFoundError):
                self.client.responses.retrieve(made.id)
