"""Sample turns as nodes write them, of the size of a short chat, for calling a store directly."""

from random import Random
from typing import Final

from smg_storage.ids import new_id, new_thread
from smg_storage.records import Item, Location, Side, Status, StoredResponse, Turn

_ASKED: Final = "what does it cost to remember this? " * 14
_SAID: Final = "It costs a row, two places and a little time. " * 30


class TurnMaker:
    """Makes new turns. `now_us` is the wall clock's time."""

    def __init__(self, seed: int = 1) -> None:
        self._chance = Random(seed)

    def thread(self) -> str:
        """Begin a thread."""
        return new_thread(self._chance)

    def id(self, prefix: str, thread: str, now_us: int) -> str:
        """Return an unused id."""
        return new_id(prefix, thread, now_ms=now_us // 1_000, chance=self._chance)

    def turn(
        self,
        now_us: int,
        *,
        thread: str = "",
        conversation_id: str = "",
        previous: StoredResponse | None = None,
    ) -> Turn:
        """Return a turn of half a kilobyte of question and two of answer, with all the fields a
        node writes.
        """
        thread = thread or self.thread()
        asked = _message(self.id("msg", thread, now_us), "user", _ASKED)
        said = _message(self.id("msg", thread, now_us), "assistant", _SAID)
        response = StoredResponse(
            id=self.id("resp", thread, now_us),
            status=Status.COMPLETED,
            model="simulated",
            created_us=now_us,
            completed_us=now_us,
            input=b"[" + asked[1] + b"]",
            response=b'{"object":"response","output":[' + said[1] + b"]}",
            conversation_id=conversation_id,
            previous_response_id=previous.id if previous is not None else "",
            depth=previous.depth + 1 if previous is not None else 0,
        )
        items = [
            Item(one, "message", document, now_us, "user", "completed", response.id)
            for one, document in (asked, said)
        ]
        if conversation_id:
            return Turn(response, items=items, links=[item.id for item in items])
        places = [(asked[0], Side.INPUT), (said[0], Side.OUTPUT)]
        return Turn(
            response, locations=[Location(one, response.id, side, 0) for one, side in places]
        )


def _message(item_id: str, role: str, text: str) -> tuple[str, bytes]:
    document = f'{{"id":"{item_id}","type":"message","role":"{role}","content":"{text}"}}'
    return item_id, document.encode()
