"""Large bodies are decoded and read beside the loop; small ones at once."""

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from smg_node.core.cooperative_steps import Steps
from smg_node.core.errors import SmgError, invalid
from smg_node.dialects.embeddings.reader import EmbeddingsBody, read_embeddings
from smg_node.dialects.json_body import (
    LARGE_BYTES,
    LIGHT_BYTES,
    is_light,
    read_json,
    read_large_json,
)
from smg_node.dialects.options import ReaderOptions
from smg_node.http.message.large_bodies import (
    SLICE_WEIGHT,
    LargeBodies,
    release_messages,
    release_numbers,
    with_rests,
)
from smg_node.pipeline.prompt.preparation import token_count


def thread_of(_body: Any) -> str:
    return threading.current_thread().name


async def test_a_small_body_needs_no_thread() -> None:
    before = threading.enumerate()
    large, raw = LargeBodies(), b'{"a":1}'
    here = threading.current_thread().name
    body = await large.decoded(raw)
    assert body == {"a": 1}
    assert await large.read(raw, body, thread_of) == here
    assert await large.made(LARGE_BYTES, lambda: thread_of(None)) == here
    assert threading.enumerate() == before


async def test_large_bodies_are_read_in_one_thread_one_after_the_other() -> None:
    large, raw = LargeBodies(), json.dumps({"a": [1] * LARGE_BYTES}).encode()
    open_, most = 0, 0

    def reader(_body: Any) -> str:
        nonlocal open_, most
        open_ += 1
        most = max(most, open_)
        time.sleep(0.01)
        open_ -= 1
        return threading.current_thread().name

    body = await large.decoded(raw)
    assert body["a"][-1] == 1
    names = await asyncio.gather(*(large.read(raw, dict(body), reader) for _ in range(4)))
    assert (set(names), most) == ({"smg-bodies_0"}, 1)


async def test_what_is_wrong_with_a_large_body_is_told_as_with_a_small_one() -> None:
    large, pad = LargeBodies(), b" " * LARGE_BYTES
    with pytest.raises(SmgError, match="not valid JSON"):
        await large.decoded(b'{"a":' + pad)
    with pytest.raises(SmgError, match="nests deeper than 2 levels"):
        await large.decoded(b'{"a":[[1]]}' + pad, nesting_max=2)

    def refuse(_body: Any) -> None:
        raise invalid("odd", "a")

    with pytest.raises(SmgError, match="odd"):
        await large.read(b'{"a":1}' + pad, {"a": 1}, refuse)


def test_lists_of_numbers_are_emptied_and_nothing_else() -> None:
    texts, rows, ids, mixed = ["a"], [[1, 2], [3], []], [1] * 50_000, [{"a": [1]}]
    body = {"texts": texts, "rows": rows, "ids": ids, "mixed": mixed, "none": [], "n": 1}
    release_numbers(body)
    assert (texts, rows, ids, mixed) == (["a"], [[], [], []], [], [{"a": [1]}])


async def test_the_loop_does_next_to_nothing_of_the_work_of_a_large_body() -> None:
    large = LargeBodies()
    raw = json.dumps({"model": "m", "input": [list(range(2_000))] * 200}).encode()
    spent: list[float] = []

    def reader(body: dict[str, Any]) -> EmbeddingsBody:
        found = read_embeddings(body, ReaderOptions())
        spent.append(time.thread_time())
        return found

    began = time.thread_time()
    body = await large.decoded(raw)
    found = await large.read(raw, body, reader)
    here = time.thread_time() - began
    assert [token_count(prompt) for prompt in found.prompts] == [2_000] * 200
    assert body["input"] == [[]] * 200
    # Processor time, which does not depend on who else is on the machine.
    assert here < spent[0] / 4


def test_messages_are_let_go_of_with_their_parts_and_nothing_else() -> None:
    parts: list[Any] = [{"type": "text", "text": "x"}] * 1_000
    schema: dict[str, Any] = {"required": ["a"]}
    messages = [{"role": "user", "content": parts}, {"role": "user", "content": "x"}, 5]
    body = {"messages": messages, "tools": [schema], "other": [1.5]}
    # The number, the message of a string, then the parts of the first message, 256 at once, and that message.
    assert list(release_messages(body)) == [1_024, 1_024, *[16_384] * 3, 14_848, 1_024]
    assert (messages, parts) == ([], [])
    assert body == {"messages": [], "tools": [{"required": ["a"]}], "other": [1.5]}
    assert list(release_messages({"messages": "x"})) == []


@pytest.mark.parametrize(
    ("weights", "rests"),
    [
        ([], 0),
        ([SLICE_WEIGHT - 1], 0),
        ([SLICE_WEIGHT], 1),
        ([SLICE_WEIGHT - 1, 1, SLICE_WEIGHT - 1], 1),
        ([SLICE_WEIGHT * 9] * 3, 3),
        ([SLICE_WEIGHT // 4] * 40, 10),
        ([0] * 1_000, 0),
    ],
)
def test_a_thread_rests_when_it_has_done_a_slice_of_work(weights: list[int], rests: int) -> None:
    def steps() -> Steps[str]:
        yield from weights
        return "done"

    taken: list[float] = []
    assert with_rests(steps(), taken.append) == "done"
    assert len(taken) == rests
    # A sleep of nothing would not let anybody else have the interpreter.
    assert all(pause_s > 0 for pause_s in taken)


def test_a_large_body_is_decoded_with_a_rest_after_every_two_pieces() -> None:
    raw = json.dumps({"messages": [{"role": "user", "content": "x" * 1_000}] * 2_000}).encode()
    taken: list[float] = []
    body = read_large_json(raw, run=lambda steps: with_rests(steps, taken.append))
    assert body == read_json(raw)
    assert len(taken) == 62
    assert len(raw) / len(taken) < SLICE_WEIGHT + 2 * 1_100


async def test_steps_of_a_large_body_are_done_in_the_thread_and_of_a_small_one_at_once() -> None:
    large, here = LargeBodies(), threading.current_thread().name

    def reader(_body: Any) -> Steps[str]:
        yield SLICE_WEIGHT
        return threading.current_thread().name

    assert await large.read_in_steps(b"{}", {}, reader) == here
    messages = [{"role": "user", "content": "x"}]
    body = {"messages": messages}
    assert await large.read_in_steps(b" " * (LARGE_BYTES + 1), body, reader) == "smg-bodies_0"
    assert messages == []


def with_files(count: int, size: int, more: int = 0, escaped: str = "") -> bytes:
    """Return a body of so many files of `size` characters each, and of `more` other bytes."""
    files = [{"url": f"data:image/jpeg;base64,{escaped}{'A' * size}"}] * count
    return json.dumps({"files": files, "more": "x" * more}).encode()


@pytest.mark.parametrize(
    ("raw", "light"),
    [
        (b" " * LARGE_BYTES, True),
        (b" " * (LARGE_BYTES + 1), False),
        (with_files(1, LARGE_BYTES), True),
        (with_files(9, 100_000), True),
        (with_files(9, 100_000, LARGE_BYTES), False),
        (with_files(9, 100_000, LARGE_BYTES - 1_000), True),
        (with_files(1, 100_000, escaped="\\"), False),
        (with_files(1, LIGHT_BYTES), False),
        # The string has no end, or is none: it cannot be told what is in it.
        (b'{"a":"data:;base64,' + b"A" * LARGE_BYTES, False),
        (b";base64," * 100_000, False),
        (b';base64,"' * 100_000, False),
        (b" " * LARGE_BYTES + with_files(1, LARGE_BYTES), False),
    ],
)
def test_a_body_is_light_where_all_but_its_files_is_small(raw: bytes, light: bool) -> None:
    assert is_light(raw) == light


async def test_a_light_body_is_decoded_and_read_at_once_as_in_the_thread() -> None:
    before = threading.enumerate()
    large, raw = LargeBodies(), with_files(3, 200_000)
    body = await large.decoded(raw)
    assert body == read_large_json(raw)
    assert await large.read(raw, body, thread_of) == threading.current_thread().name
    assert threading.enumerate() == before
    # What is wrong with it is told as ever.
    with pytest.raises(SmgError, match="cut off"):
        await large.decoded(raw[:-1])


@pytest.mark.parametrize("values", ["[" * 60_000, "[1," * 21_000, '{"a":' * 12_000])
async def test_a_light_body_is_no_deeper_than_another(values: str) -> None:
    raw = values.encode() + with_files(1, 100_000)
    with pytest.raises(SmgError, match=r"nests deeper|not valid JSON"):
        await LargeBodies().decoded(raw)
