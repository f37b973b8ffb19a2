"""KV events as engines send them become values; what nobody could use is left out."""

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smg_grpc_proto.generated import common_pb2 as pb

from smg_node.core.errors import SmgError
from smg_node.engines.grpc.kv_event_reader import (
    GROUPS_MAX,
    KEYS_MAX,
    KvReader,
    kv_error,
    kv_request,
)
from smg_node.engines.kv_events import (
    CURSOR_CODE,
    LOST_CODE,
    KvBatch,
    KvCleared,
    KvRemoved,
    KvSnapshot,
    KvStored,
    Tier,
)
from smg_node.engines.transport.transport import StatusCode, TransportError
from support.engines.simulated_engine import FLAVOURS, PROMPT, Simulation


def block(number: int = 1, ids: tuple[int, ...] = (5, 6), **said: Any) -> Any:
    return pb.KvBlock(block_hash=number, token_ids=ids, block_size=len(ids), **said)


def picture(name: str, offset: int) -> Any:
    return pb.KvBlockExtraKey(multimodal=pb.KvMultimodalKey(identifier=name, offset=offset))


def stored(*blocks: Any, **said: Any) -> Any:
    return pb.KvCacheEvent(stored=pb.KvBlocksStored(blocks=blocks or (block(),), **said))


def removed(*hashes: int, **said: Any) -> Any:
    return pb.KvCacheEvent(removed=pb.KvBlocksRemoved(block_hashes=hashes, **said))


def read(*events: Any, reader: KvReader | None = None, **said: Any) -> KvBatch:
    message = pb.KvEventBatch(events=events, **said)
    return (reader or KvReader()).read(message.SerializeToString())


def one(event: Any) -> Any:
    (found,) = read(event).events
    return found


# ── Batches ──────────────────────────────────────────────────────────────────


def test_a_batch_has_its_sequence_rank_and_events_in_order() -> None:
    found = read(
        stored(), removed(7, -8), pb.KvCacheEvent(cleared=pb.KvCacheCleared()), sequence_number=9
    )
    kinds = [type(event) for event in found.events]
    assert (found.sequence, found.rank, found.load_only) == (9, 0, False)
    assert kinds == [KvStored, KvRemoved, KvCleared]
    assert read(dp_rank=3).rank == 3


def test_a_load_only_batch_has_no_events_whatever_it_carries() -> None:
    found = read(stored(), load=pb.EngineLoad(load_only=True, running_requests=2))
    assert found.load_only
    assert found.events == ()
    assert found.load is not None
    assert found.load.running == 2


def test_a_batch_without_a_load_has_none_and_one_with_an_impossible_load_too() -> None:
    assert read(stored()).load is None
    assert read(load=pb.EngineLoad(running_requests=2**31)).load is None


def test_a_chunk_of_a_snapshot_says_which_it_is() -> None:
    chunk = pb.KvSnapshotChunk(index=2, count=5, blocks=99, unknown_before=7)
    assert read(snapshot=chunk).snapshot == KvSnapshot(2, 5, 7)
    assert read().snapshot is None


def test_an_event_without_content_is_nothing() -> None:
    assert read(pb.KvCacheEvent(event_id=4), removed(), stored()).events == read(stored()).events
    assert read(pb.KvCacheEvent(stored=pb.KvBlocksStored())).events == ()


def test_bytes_that_are_no_batch_are_the_engines_failure() -> None:
    with pytest.raises(SmgError):
        KvReader().read(b"\xff\xff\xff")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_batch_or_the_engines_failure(data: bytes) -> None:
    try:
        found = KvReader().read(data)
    except SmgError:
        return
    assert found.rank >= 0
    assert found.sequence >= 0


def test_a_request_asks_for_loads_from_the_first_moment() -> None:
    asked = pb.SubscribeKvEventsRequest.FromString(kv_request(12))
    assert asked.start_sequence_number == 12
    assert asked.load_records_before_first_batch


# ── Blocks ───────────────────────────────────────────────────────────────────


def test_a_root_has_no_parent_and_zero_is_one() -> None:
    assert one(stored()).parent is None
    assert one(stored(parent_block_hash=0)).parent == 0
    assert one(stored(parent_block_hash=-(2**63))).parent == -(2**63)


def test_a_block_has_the_engines_hash_and_its_ids() -> None:
    (found,) = one(stored(block(-3, (1, 2**32 - 1)))).blocks
    assert (found.hash, found.plain) == (-3, True)
    assert found.ids == array("I", [1, 2**32 - 1])


@pytest.mark.parametrize(
    ("said", "tier"),
    [
        ({}, Tier.DEVICE),
        ({"tier": pb.KV_CACHE_TIER_DEVICE}, Tier.DEVICE),
        ({"tier": pb.KV_CACHE_TIER_HOST}, Tier.HOST),
        ({"tier": pb.KV_CACHE_TIER_EXTERNAL}, Tier.EXTERNAL),
        ({"tier": 77}, Tier.EXTERNAL),
        ({"tier": -1}, Tier.EXTERNAL),
        ({"tier": pb.KV_CACHE_TIER_DISK, "medium": "GPU"}, Tier.DISK),
        ({"medium": "GPU"}, Tier.DEVICE),
        ({"medium": "CPU_PINNED"}, Tier.HOST),
        ({"medium": "STORAGE"}, Tier.DISK),
        ({"medium": "LUNAR"}, Tier.EXTERNAL),
    ],
)
def test_where_blocks_lie_is_read_from_tier_or_medium(said: dict[str, Any], tier: Tier) -> None:
    assert one(stored(**said)).tier is tier
    assert one(removed(1, **said)).tier is tier


@pytest.mark.parametrize(("level", "tier"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3), (-4, 0)])
def test_older_servicers_say_the_tier_by_a_level(level: int, tier: int) -> None:
    assert one(stored(block(cache_level=level))).tier == tier
    assert one(removed(1, cache_level=level)).tier == tier


def test_adapter_and_salt_are_the_namespace() -> None:
    found = one(stored(lora_name="law", cache_salt="tenant-1"))
    assert (found.adapter, found.salt) == ("law", "tenant-1")
    assert one(stored(block(lora_id=7))).adapter == "7"
    assert one(stored(block(lora_id=7), lora_name="law")).adapter == "law"
    assert one(stored(block(lora_id=0))).adapter == ""


def test_a_block_that_more_than_its_ids_went_into_is_not_plain() -> None:
    digest, number = pb.KvBlockExtraKey(blob=b"x"), pb.KvBlockExtraKey(number=3)
    for key in (digest, number, pb.KvBlockExtraKey(text="who knows"), pb.KvBlockExtraKey()):
        found = one(stored(block(extra_keys=[picture("i", 1), key]))).blocks[0]
        assert (found.plain, found.media) == (False, ())


def test_pictures_that_begin_in_a_block_are_told_with_their_places() -> None:
    keys = [
        picture("before", -28),
        picture("a", 0),
        pb.KvBlockExtraKey(text="law"),
        picture("b", 1),
    ]
    found = one(stored(block(extra_keys=keys), lora_name="law")).blocks[0]
    assert (found.plain, found.media) == (True, (("a", 0), ("b", 1)))
    later = one(stored(block(extra_keys=[picture("before", -28)]))).blocks[0]
    assert (later.plain, later.media) == (True, ())


@pytest.mark.parametrize(
    "keys",
    [
        [picture("", 0)],
        [picture("i", 2)],
        [picture("i", 2**62)],
        [picture("x" * 300, 0)],
        [picture("i", 0)] * (KEYS_MAX + 1),
    ],
)
def test_pictures_that_cannot_be_are_not_believed(keys: list[Any]) -> None:
    assert not one(stored(block(extra_keys=keys))).blocks[0].plain


def test_keys_that_only_repeat_the_namespace_leave_a_block_plain() -> None:
    keys = [pb.KvBlockExtraKey(text="law"), pb.KvBlockExtraKey(text="tenant-1")]
    found = one(stored(block(extra_keys=keys), lora_name="law", cache_salt="tenant-1"))
    assert found.blocks[0].plain


def test_a_block_that_is_not_full_or_without_ids_is_not_plain() -> None:
    part = pb.KvBlock(block_hash=1, token_ids=(1, 2), block_size=16)
    bare = pb.KvBlock(block_hash=2, block_size=16)
    unsaid = pb.KvBlock(block_hash=3, token_ids=(1, 2))
    found = one(stored(part, bare, unsaid)).blocks
    assert [each.plain for each in found] == [False, False, True]


# ── What is left out ─────────────────────────────────────────────────────────


def test_what_lies_in_a_pool_of_many_engines_is_not_this_workers() -> None:
    remote = {"locality": pb.KV_CACHE_LOCALITY_REMOTE}
    assert read(stored(**remote), removed(1, **remote)).events == ()
    local = {"locality": pb.KV_CACHE_LOCALITY_LOCAL}
    assert len(read(stored(**local), removed(1, **local)).events) == 2


def test_of_a_hybrid_model_only_the_groups_that_keep_whole_prompts_count() -> None:
    reader = KvReader()
    found = read(
        stored(group_idx=0, kv_cache_spec_kind="full_attention"),
        stored(group_idx=1, kv_cache_spec_kind="sliding_window"),
        stored(group_idx=2, kv_cache_spec_kind="mamba"),
        stored(group_idx=3),
        reader=reader,
    )
    assert len(found.events) == 2
    gone = read(*(removed(9, group_idx=group) for group in range(4)), reader=reader)
    assert len(gone.events) == 2


def test_a_removal_of_a_group_never_heard_of_is_told() -> None:
    assert len(read(removed(9, group_idx=5)).events) == 1


def test_invented_groups_do_not_fill_memory() -> None:
    reader = KvReader()
    for group in range(GROUPS_MAX + 10):
        read(stored(group_idx=group, kv_cache_spec_kind="mamba"), reader=reader)
    assert len(reader._partial) == GROUPS_MAX


# ── Ends ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (StatusCode.OUT_OF_RANGE, CURSOR_CODE),
        (StatusCode.DATA_LOSS, LOST_CODE),
        (StatusCode.UNIMPLEMENTED, "upstream_unimplemented"),
        (StatusCode.UNAVAILABLE, "upstream_unavailable"),
    ],
)
def test_the_end_of_a_subscription_has_the_code_a_subscriber_goes_by(
    status: StatusCode, code: str
) -> None:
    found = kv_error(TransportError(status, "why"))
    assert found.code == code
    assert (found.status == 501) is (status is StatusCode.UNIMPLEMENTED)


# ── Simulated engines ────────────────────────────────────────────────────────


@pytest.mark.parametrize(("contract", "servicer"), [one for one in FLAVOURS if one[0] != "mlx"])
def test_what_is_read_of_each_engine_adds_up_to_its_cache(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer, blocks=20, block_size=16, context=256)
    call = simulation.call("SubscribeKvEvents", kv_request(0))
    for at in range(30):
        simulation.generate([40 + at * at % 11] * (20 + 7 * at % 90), max_tokens=1 + at % 40)
    simulation.generate(PROMPT, max_tokens=1)
    reader = KvReader()
    batches = [reader.read(raw) for raw in call.messages]
    told = [batch for batch in batches if not batch.load_only]
    sequences = [batch.sequence for batch in told]
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
    held: dict[int, int] = {}
    for batch in told:
        for event in batch.events:
            assert not isinstance(event, KvCleared)
            if isinstance(event, KvStored):
                assert all(each.plain and len(each.ids) == 16 for each in event.blocks)
                for each in event.blocks:
                    held[each.hash] = held.get(each.hash, 0) + 1
            else:
                for gone in event.hashes:
                    held[gone] -= 1
    live: dict[int, int] = {}
    for content in simulation.engine.table.live():
        key = content.key - (1 << 64) if content.key >= 1 << 63 else content.key
        live[key] = live.get(key, 0) + 1
    assert {key: count for key, count in held.items() if count} == live
    assert any(isinstance(event, KvRemoved) for batch in told for event in batch.events)
