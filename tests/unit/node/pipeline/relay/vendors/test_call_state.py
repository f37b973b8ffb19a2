"""The state of one call is looked up once, told under the client's own ids, and kept of whole answers only."""

from collections.abc import Mapping, Sequence

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Begin, BlockEnd, End, Event
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    ToolCall,
    Turn,
    TurnBlock,
)
from smg_node.dialects.messages.message_object import tool_use_id
from smg_node.pipeline.relay.vendors.call_state import CallState

PROOF = Opaque("google", SIGNATURE, "c2lnbmVk")
BEGIN = Begin("0123456789abcdef" * 2, "m", 5, 30)
CALL = BlockEnd(0, 1, "call", "{}", "weather", "call_0123456789abcdef", (PROOF,))
USER = Turn("user", "Hi")


class Kept:
    """A cache in memory that counts its reads."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}
        self.reads = 0

    async def keep(self, tenant: str, key: str, row: bytes) -> None:
        self.rows.setdefault((tenant, key), row)

    async def find(self, tenant: str, keys: Sequence[str]) -> Mapping[str, bytes]:
        self.reads += 1
        return {key: self.rows[tenant, key] for key in keys if (tenant, key) in self.rows}


class Script:
    """A listener that emits what it is told to."""

    finished = True
    spent = None
    deltas = 0

    def feed(self, piece: bytes, out: list[Event]) -> None:
        out.append(CALL)

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        out.append(CALL)

    def end(self, out: list[Event]) -> None:
        out.append(End())

    def fail(self, error: SmgError, out: list[Event]) -> None:
        out.append(CALL)


def request(*turns: Turn) -> GenerateRequest:
    return GenerateRequest("m", (ChatPrompt(turns),), Sampling(), stream=False)


async def answered(cache: Kept, dialect: str, tenant: str = "acme", *, whole: bool = False) -> None:
    """Let a call answer, and keep its state."""
    state = CallState(cache, tenant, dialect)
    await state.restored(request(USER), "messages", frozenset())
    listener, out = state.heard(Script(), BEGIN), list[Event]()
    if whole:
        listener.feed_whole(b"", out)
    else:
        listener.feed(b"", out)
    listener.end(out)
    assert listener.finished
    assert out == [CALL, End()]
    await state.keep()


def continued(call_id: str) -> GenerateRequest:
    return request(USER, Turn("assistant", None, calls=(ToolCall(call_id, "weather", "{}"),)))


def found_in(asked: GenerateRequest) -> tuple[TurnBlock, ...]:
    prompt = asked.prompts[0]
    assert isinstance(prompt, ChatPrompt)
    return prompt.turns[1].blocks


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("dialect", "call_id"),
    [("chat", CALL.call_id), ("responses", CALL.call_id), ("messages", tool_use_id(BEGIN, 0))],
)
async def test_state_is_found_under_the_id_that_the_client_saw(
    dialect: str, call_id: str, whole: bool
) -> None:
    cache = Kept()
    await answered(cache, dialect, whole=whole)
    state = CallState(cache, "acme", dialect)
    found = await state.restored(continued(call_id), "messages", frozenset())
    assert found_in(found) == (TurnBlock("call", "{}", "weather", call_id, (PROOF,)),)
    other = await CallState(cache, "other", dialect).restored(
        continued(call_id), "messages", frozenset()
    )
    assert found_in(other) == ()


async def test_all_attempts_of_a_call_read_once() -> None:
    cache = Kept()
    await answered(cache, "chat")
    assert cache.reads == 0
    state = CallState(cache, "acme", "chat")
    for _ in range(3):
        found = await state.restored(continued(CALL.call_id), "converse", frozenset())
        assert found_in(found) != ()
    assert cache.reads == 1


async def test_a_vendor_without_state_is_not_looked_up_for() -> None:
    cache = Kept()
    await answered(cache, "chat")
    asked = continued(CALL.call_id)
    state = CallState(cache, "acme", "chat")
    assert await state.restored(asked, "chat", frozenset()) is asked
    assert cache.reads == 0
    found = await state.restored(asked, "chat", frozenset({"thought_signatures"}))
    assert found_in(found) != ()


async def test_an_answer_that_failed_leaves_nothing() -> None:
    cache = Kept()
    state = CallState(cache, "acme", "chat")
    await state.keep()
    listener = state.heard(Script(), BEGIN)
    listener.fail(SmgError(ErrorKind.UPSTREAM_FAILED, "cut"), [])
    await state.keep()
    assert cache.rows == {}


async def test_the_attempt_before_leaves_nothing() -> None:
    cache = Kept()
    state = CallState(cache, "acme", "chat")
    state.heard(Script(), BEGIN).feed(b"", [])
    state.heard(Script(), BEGIN).end([])
    await state.keep()
    assert cache.rows == {}


async def test_without_a_cache_nothing_is_wrapped_or_asked() -> None:
    state, asked, listener = CallState(None, "", "chat"), continued("a"), Script()
    assert await state.restored(asked, "messages", frozenset()) is asked
    assert state.heard(listener, BEGIN) is listener
    await state.keep()
