"""Large conversations are read in steps of a block, so that whoever reads them can let others go on."""

from typing import Any

import pytest

from smg_node.core.cooperative_steps import ITEM_WEIGHT, Steps, whole
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.dialect import UNKNOWN, reading_steps
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

SEALS = ThoughtSeals(PlainVault())
DIALECT = MessagesDialect(ReaderOptions(), SEALS, lambda: 0.0)
THOUGHT = "Hm. " * 500


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(name: str, given: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {"a": given}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "r" * 10_000}


def body(*messages: tuple[str, Any]) -> dict[str, Any]:
    return {
        "model": "m",
        "max_tokens": 9,
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
        "messages": [{"role": role, "content": content} for role, content in messages],
    }


def weights(steps: Steps[Any]) -> list[int]:
    found: list[int] = []
    while True:
        try:
            found.append(next(steps))
        except StopIteration:
            return found


SEALED = {
    "type": "thinking",
    "thinking": "",
    "signature": SEALS.seal(THOUGHT, tenant="", model="m"),
}
# Each with its steps besides those of one weight, and the number of those: a message, a block, a text that is
# shown, a result when its turn is made.
CASES: list[tuple[str, dict[str, Any], list[int], int]] = [
    ("a string", body(("user", "x")), [], 2),
    ("many blocks of one message", body(("user", [text("x")] * 500)), [], 1 + 500 + 500),
    ("many messages of one role", body(*[("user", "x")] * 500), [], 500 + 500),
    (
        "a call weighs what its arguments do",
        body(
            ("user", "x"),
            ("assistant", [text("So."), call("a", "y" * 5_000)]),
            ("user", [result("a")]),
        ),
        [len('{"a":""}') + 5_000],
        2 + 3 + 3,
    ),
    (
        "results are read when their turn is made",
        body(
            ("user", "x"),
            ("assistant", [call(str(at), "") for at in range(100)]),
            ("user", [result(str(at)) for at in reversed(range(100))]),
        ),
        [len('{"a":""}')] * 100,
        2 + 101 + 101 + 100,
    ),
    (
        "a thought weighs what was opened",
        body(("user", "x"), ("assistant", [SEALED, text("So.")]), ("assistant", "x")),
        [len(THOUGHT)],
        2 + 3 + 1,
    ),
]


@pytest.mark.parametrize(
    ("asked", "heavy", "plain"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_step_of_reading_is_one_message_block_or_result(
    asked: dict[str, Any], heavy: list[int], plain: int
) -> None:
    found = weights(DIALECT.read_steps(asked))
    assert [weight for weight in found if weight != ITEM_WEIGHT] == heavy
    assert found.count(ITEM_WEIGHT) == plain
    assert weights(DIALECT.count_steps(asked)) == found


def test_what_is_read_in_steps_is_what_is_read_at_once() -> None:
    for _, asked, _, _ in CASES:
        assert whole(DIALECT.read_steps(asked)) == DIALECT.read(asked)
        assert whole(reading_steps(DIALECT, asked, UNKNOWN)) == DIALECT.read(asked)


def test_a_dialect_without_steps_reads_a_body_in_one() -> None:
    chat = ChatDialect(ReaderOptions())
    asked = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    steps = reading_steps(chat, asked, UNKNOWN)
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == chat.read(asked)
