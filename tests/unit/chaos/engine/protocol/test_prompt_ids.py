"""Long prompts stay packed, and nobody can tell."""

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_chaos.engine.protocol.contracts import CONTRACTS
from smg_chaos.engine.protocol.prompt_ids import PACKED_FROM_BYTES, Greatest, PackedIds, cut_out
from smg_chaos.engine.protocol.wire import Field, varint
from support.engines.simulated_engine import Simulation
from support.tools.example_counts import example_count

# Numbers around the borders between one, two, three and more digits in base 128.
NUMBER = st.integers(0, 2**32 - 1) | st.builds(
    lambda digits, top, off: max(0, top * 128**digits + off),
    st.integers(0, 3),
    st.integers(0, 127),
    st.integers(-2, 130),
)


def packed(ids: list[int]) -> PackedIds:
    raw = b"".join(varint(token) for token in ids)
    return PackedIds(raw, CONTRACTS["vllm"]._unpack)


@given(st.lists(NUMBER, max_size=40))
def test_packed_ids_are_the_ids(ids: list[int]) -> None:
    lazy = packed(ids)
    assert len(lazy) == len(ids)
    assert list(lazy) == ids
    assert list(lazy[1:3]) == ids[1:3]
    assert not ids or packed(ids)[-1] == ids[-1]


@given(st.lists(NUMBER, min_size=1, max_size=8), NUMBER.map(lambda limit: limit + 1))
@settings(max_examples=example_count(1000))
def test_whether_all_are_below_a_limit_is_known_without_decoding(
    ids: list[int], limit: int
) -> None:
    lazy = packed(ids)
    assert Greatest().all_below(lazy, limit) is (max(ids) < limit)
    if lazy.surely_below(limit):
        assert max(ids) < limit


@given(
    st.lists(st.lists(NUMBER, max_size=6), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), NUMBER), max_size=12),
)
def test_what_was_looked_at_once_is_known_of_a_prompt(
    prompts: list[list[int]], asked: list[tuple[int, int]]
) -> None:
    greatest = Greatest()
    for number, limit in asked:
        ids = prompts[number % len(prompts)]
        assert greatest.all_below(packed(ids), limit) is all(one < limit for one in ids)
        assert greatest.all_below(ids, limit) is all(one < limit for one in ids)


def test_a_long_prompt_of_small_ids_is_never_decoded() -> None:
    body = CONTRACTS["vllm"].ask(list(range(4000)), request_id="x", max_tokens=3)
    asked = CONTRACTS["vllm"].read(body)
    assert isinstance(asked.ids, PackedIds)
    assert asked.ids.surely_below(4100)
    assert asked.ids._ids is None
    assert (asked.request_id, asked.max_tokens, len(asked.ids)) == ("x", 3, 4000)


def test_every_contract_reads_a_long_prompt() -> None:
    ids = [(at * 7919) % 100_000 for at in range(3000)]
    for contract in CONTRACTS.values():
        asked = contract.read(contract.ask(ids, request_id="x", max_tokens=3))
        assert isinstance(asked.ids, PackedIds)
        assert list(asked.ids) == ids
        assert (asked.request_id, asked.max_tokens) == ("x", 3)


@given(st.binary(max_size=80))
def test_garbage_is_cut_out_of_nothing_or_a_value_error(body: bytes) -> None:
    try:
        cut = cut_out(body, 2, 2)
    except ValueError:
        return
    assert cut is None or len(cut[0]) < len(body)


def test_a_field_that_comes_twice_or_unpacked_is_left_to_protobuf() -> None:
    inner = Field(2)
    once = Field(2).holding(inner.packed([1, 2]))
    assert cut_out(b"\x28\x01" + once + b"\x28\x01", 2, 2) == (b"\x28\x01\x28\x01", b"\x01\x02")
    assert cut_out(once + once, 2, 2) is None
    assert cut_out(Field(2).holding(inner.present(7)), 2, 2) is None
    unpacked = Field(2).holding(b"".join(inner.present(at) for at in range(1500)))
    assert len(unpacked) > PACKED_FROM_BYTES
    assert list(CONTRACTS["vllm"].read(unpacked).ids) == list(range(1500))


def test_a_long_prompt_is_cached_like_any_other() -> None:
    simulation = Simulation("vllm", "python")
    ids = [200 + at % 200 for at in range(1500)]
    first, again, other = (
        simulation.completes(simulation.generate(prompt, max_tokens=2))[0].get("cached_tokens", 0)
        for prompt in (ids, ids, [*ids[:1400], *([40] * 100)])
    )
    assert (first, again, other) == (0, 1472, 1376)
