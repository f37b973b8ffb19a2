"""What is put into requests: one mark for the whole prompt, a key that keeps a conversation together."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.providers.affinity.cache_marks import cache_key_of, keyed_bytes, marked_fields
from smg_node.providers.affinity.prompt_beginning import PromptBeginning, beginning_of

BODY: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]},
    ],
}
MARK = {"type": "ephemeral"}


def prompt(*texts: str) -> PromptBeginning:
    rows = [{"role": "user", "content": text} for text in texts]
    return beginning_of(("messages",), {"messages": rows}, marked=False)


def test_a_mark_stands_at_the_top_on_the_last_block_or_as_a_block_of_its_own() -> None:
    before = msgspec.json.encode(BODY)
    assert marked_fields(BODY, "top") == {**BODY, "cache_control": MARK}
    last = marked_fields(BODY, "last")["messages"][-1]["content"]
    assert last == [
        {"type": "text", "text": "c"},
        {"type": "text", "text": "d", "cache_control": MARK},
    ]
    point = marked_fields(BODY, "point")["messages"][-1]["content"]
    assert point[-1] == {"cachePoint": {"type": "default"}}
    assert marked_fields(BODY, "") == BODY
    assert msgspec.json.encode(BODY) == before


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": "text"}],
        [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "t", "signature": "s"}],
            }
        ],
    ],
)
def test_where_there_is_no_block_to_mark_none_is_marked(messages: Any) -> None:
    body = {"messages": messages}
    assert marked_fields(body, "last") == body


def test_a_key_is_one_tenants_and_one_conversations_or_first_kibibytes() -> None:
    first = prompt("x" * 3_000)
    keys = {
        cache_key_of(first, tenant="t", conversation=""),
        cache_key_of(first, tenant="u", conversation=""),
        cache_key_of(first, tenant="t", conversation="c"),
        cache_key_of(prompt("y" * 3_000), tenant="t", conversation=""),
        cache_key_of(prompt(), tenant="t", conversation=""),
        cache_key_of(prompt("short"), tenant="t", conversation=""),
    }
    assert len(keys) == 6
    assert all(len(one) == 32 for one in keys)
    later = prompt("x" * 3_000, "more")
    assert cache_key_of(later, tenant="t", conversation="") == cache_key_of(
        first, tenant="t", conversation=""
    )


@given(
    fields=st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8), max_size=4),
    own=st.booleans(),
)
def test_a_clients_body_keeps_its_bytes_and_its_own_key(fields: dict[str, Any], own: bool) -> None:
    fields.pop("prompt_cache_key", None)
    raw = msgspec.json.encode({**fields, **({"prompt_cache_key": "mine"} if own else {})})
    told = keyed_bytes(raw, "ours")
    assert msgspec.json.decode(told) == {**fields, "prompt_cache_key": "mine" if own else "ours"}
    assert raw[1:-1] in told
    if own:
        assert told is raw


def test_no_object_gets_no_key() -> None:
    with pytest.raises(SmgError):
        keyed_bytes(b"[1, 2]", "ours")
