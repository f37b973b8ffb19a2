import msgspec

from smg_storage.errors import StoreErrorKind
from smg_storage.memory.rows import ROW_BYTES
from smg_storage.memory.write_equality import cost
from smg_storage.options import Bounds
from smg_storage.records import (
    DOCUMENT_BYTES_MAX,
    EventBlob,
    Idempotency,
    KeyState,
    Location,
    Patch,
    Side,
    Status,
    Turn,
)
from support.store_contract.stage import ids, refused
from support.stores.memory_rows import assert_sound, shelf_of, stage_with

TOO_LARGE = StoreErrorKind.TOO_LARGE


async def test_the_oldest_thread_goes_whole_when_there_are_too_many_responses() -> None:
    stage = stage_with(Bounds(responses_max=6))
    chains = []
    for _ in range(3):
        stage.begin_thread()
        chains.append(await stage.chain_of(2))
    assert (await stage.chain(chains[0][1].id)).complete
    stage.begin_thread()
    newest = await stage.kept(stage.response())
    for gone in chains[0]:
        assert await stage.store.get_response(stage.access, gone.id) is None
    for left in (*chains[1], *chains[2], newest):
        assert await stage.store.get_response(stage.access, left.id) is not None
    assert_sound(shelf_of(stage))


async def test_a_thread_that_is_written_to_is_not_the_oldest_any_more() -> None:
    stage = stage_with(Bounds(responses_max=3))
    thread = stage.thread
    first = await stage.kept(stage.response())
    stage.begin_thread()
    second = await stage.kept(stage.response())
    stage.thread = thread
    again = await stage.kept(stage.response(previous=first))
    assert await stage.store.get_response(stage.access, second.id) is not None
    stage.begin_thread()
    await stage.kept(stage.response())
    assert await stage.store.get_response(stage.access, second.id) is None
    assert (await stage.chain(again.id)).complete


async def test_reading_does_not_make_a_thread_younger() -> None:
    stage = stage_with(Bounds(responses_max=2))
    kept = []
    for _ in range(2):
        stage.begin_thread()
        kept.append(await stage.kept(stage.response()))
    await stage.store.get_response(stage.access, kept[0].id)
    stage.begin_thread()
    await stage.kept(stage.response())
    assert await stage.store.get_response(stage.access, kept[0].id) is None


async def test_items_count_in_conversations_and_in_responses() -> None:
    stage = stage_with(Bounds(items_max=10))
    first = await stage.new_conversation()
    await stage.append(first, 5)
    stage.begin_thread()
    response = stage.response()
    places = [Location(f"msg_{n}", response.id, Side.INPUT, 0) for n in range(5)]
    await stage.store.commit_turn(stage.access, Turn(response=response, locations=places))
    assert len(await stage.listed(first)) == 5
    stage.begin_thread()
    second = await stage.new_conversation()
    await stage.append(second, 1)
    assert await stage.store.get_conversation(stage.access, first) is None
    assert len(await stage.store.find_items(stage.access, [f"msg_{n}" for n in range(5)])) == 5
    assert_sound(shelf_of(stage))


async def test_bytes_of_all_kinds_count() -> None:
    stage = stage_with(Bounds(bytes_max=100_000 + 20 * ROW_BYTES))
    responses = []
    for _ in range(4):
        stage.begin_thread()
        response = stage.response()
        responses.append(response)
        await stage.kept(response)
        await stage.store.append_events(
            stage.access, response.id, [EventBlob(0, 1, b"e" * 25_000)], expires_us=0
        )
    assert shelf_of(stage).bytes <= 100_000 + 20 * ROW_BYTES
    stage.begin_thread()
    await stage.store.create_item(
        stage.access, msgspec.structs.replace(stage.item(), document=b"i" * 25_000)
    )
    found = [await stage.store.get_response(stage.access, each.id) for each in responses]
    assert [record is not None for record in found] == [False, True, True, True]
    assert shelf_of(stage).bytes <= 100_000 + 20 * ROW_BYTES
    assert_sound(shelf_of(stage))


async def test_what_never_fits_is_refused_and_nothing_is_forgotten_for_it() -> None:
    stage = stage_with(Bounds(bytes_max=50 * ROW_BYTES, items_max=10, responses_max=5))
    kept = await stage.chain_of(2)
    stage.begin_thread()
    conversation_id = await stage.new_conversation()
    turn = stage.turn(conversation_id, items=11)
    with refused(TOO_LARGE):
        await stage.store.commit_turn(stage.access, turn)
    with refused(TOO_LARGE):
        await stage.store.append_items(
            stage.access, conversation_id, stage.items(11), now_us=stage.now_us
        )
    large = msgspec.structs.replace(stage.response(), response=b"x" * 50 * ROW_BYTES)
    with refused(TOO_LARGE):
        await stage.store.store_response(stage.access, large)
    assert ids((await stage.chain(kept[1].id)).responses) == [kept[1].id, kept[0].id]
    assert await stage.listed(conversation_id) == []
    assert await stage.store.get_response(stage.access, turn.response.id) is None
    assert_sound(shelf_of(stage))


async def test_a_thread_that_is_full_takes_changes_but_nothing_new() -> None:
    stage = stage_with(Bounds(responses_max=2))
    kept = [await stage.kept(stage.response(status=Status.IN_PROGRESS)) for _ in range(2)]
    with refused(TOO_LARGE):
        await stage.store.store_response(stage.access, stage.response())
    done = msgspec.structs.replace(kept[0], status=Status.COMPLETED, response=b"{}")
    assert (await stage.store.commit_turn(stage.access, Turn(response=done))).again is False
    patched = await stage.store.patch_response(
        stage.access, kept[1].id, Patch(status=Status.FAILED), from_statuses=[Status.IN_PROGRESS]
    )
    assert patched is not None
    assert_sound(shelf_of(stage))


async def test_an_item_of_two_threads_stays_with_the_one_that_stays() -> None:
    stage = stage_with(Bounds(items_max=4))
    first = await stage.new_conversation()
    items = await stage.append(first, 2)
    stage.begin_thread()
    second = await stage.new_conversation()
    await stage.store.link_items(stage.access, second, [items[0].id], now_us=stage.now_us)
    await stage.append(second, 1)
    stage.begin_thread()
    third = await stage.new_conversation()
    await stage.append(third, 2)
    assert await stage.store.get_conversation(stage.access, first) is None
    assert await stage.store.get_item(stage.access, items[0].id) == items[0]
    assert await stage.store.get_item(stage.access, items[1].id) is None
    assert (await stage.listed(second))[0] == items[0].id
    assert_sound(shelf_of(stage))


async def test_a_thread_nobody_wrote_to_for_too_long_is_gone() -> None:
    stage = stage_with(Bounds(age_max_s=100))
    old = await stage.kept(stage.response())
    stage.clock.advance_s(60)
    stage.begin_thread()
    young = await stage.kept(stage.response())
    stage.clock.advance_s(39)
    assert await stage.store.get_response(stage.access, old.id) is not None
    stage.clock.advance_s(1)
    assert await stage.store.get_response(stage.access, old.id) is None
    assert await stage.store.get_response(stage.access, young.id) is not None
    assert_sound(shelf_of(stage))


async def test_keys_and_events_go_with_the_thread_of_their_response() -> None:
    stage = stage_with(Bounds(age_max_s=100))
    response = await stage.kept(stage.response())
    key = Idempotency("k", b"d" * 16, 0)
    await stage.store.reserve_key(stage.access, key, response.id, now_us=stage.now_us)
    await stage.store.append_events(
        stage.access, response.id, [EventBlob(0, 0, b"e")], expires_us=0
    )
    stage.clock.advance_s(100)
    events = await stage.store.read_events(stage.access, response.id, after=-1, limit=9)
    assert list(events) == []
    again = await stage.store.reserve_key(
        stage.access, key, stage.new_id("resp"), now_us=stage.now_us
    )
    assert again.state is KeyState.NEW


async def test_figures_are_exact_and_nothing_is_left_of_what_was_forgotten() -> None:
    stage = stage_with(Bounds())
    conversation_id = await stage.new_conversation()
    turns = [stage.turn(conversation_id, items=3) for _ in range(4)]
    for turn in turns:
        await stage.store.commit_turn(stage.access, turn)
    figures = await stage.store.figures(timeout_s=1)
    assert (figures.conversations, figures.items, figures.responses) == (1, 12, 4)
    assert figures.bytes > 17 * ROW_BYTES
    for turn in turns:
        await stage.store.delete_response(stage.access, turn.response.id)
    await stage.store.delete_conversation(stage.access, conversation_id)
    figures = await stage.store.figures(timeout_s=1)
    assert (figures.conversations, figures.items, figures.responses, figures.bytes) == (0, 0, 0, 0)
    assert shelf_of(stage)._threads == {}


async def test_a_closed_store_is_not_well() -> None:
    stage = stage_with(Bounds())
    await stage.store.close()
    with refused(StoreErrorKind.UNAVAILABLE):
        await stage.store.ping(timeout_s=1)


async def test_nothing_is_left_of_what_was_begun_and_ended() -> None:
    stage = stage_with(Bounds())
    begun = stage.response(status=Status.QUEUED)
    place = Location(stage.new_id("msg"), begun.id, Side.INPUT, 0)
    done = msgspec.structs.replace(begun, status=Status.COMPLETED)
    for response in (begun, done):
        await stage.store.commit_turn(stage.access, Turn(response=response, locations=[place]))
        assert_sound(shelf_of(stage))
    await stage.store.delete_response(stage.access, begun.id)
    assert shelf_of(stage).locations == {}
    assert shelf_of(stage).bytes == 0


async def test_a_patch_takes_room_too() -> None:
    stage = stage_with(Bounds(bytes_max=10 * ROW_BYTES))
    first = await stage.kept(stage.response(status=Status.IN_PROGRESS))
    stage.begin_thread()
    second = await stage.kept(stage.response(status=Status.IN_PROGRESS))
    long = Patch(response=b"x" * 8 * ROW_BYTES)
    patched = await stage.store.patch_response(
        stage.access, second.id, long, from_statuses=[Status.IN_PROGRESS]
    )
    assert patched is not None
    assert await stage.store.get_response(stage.access, first.id) is None
    assert shelf_of(stage).bytes <= 10 * ROW_BYTES
    with refused(TOO_LARGE):
        await stage.store.patch_response(
            stage.access,
            second.id,
            Patch(response=b"x" * 10 * ROW_BYTES),
            from_statuses=[Status.IN_PROGRESS],
        )
    assert await stage.store.get_response(stage.access, second.id) == patched
    assert_sound(shelf_of(stage))


async def test_an_item_goes_back_to_the_thread_that_still_has_it() -> None:
    stage = stage_with(Bounds(items_max=3))
    first = await stage.new_conversation()
    (item,) = await stage.append(first, 1)
    stage.begin_thread()
    second = await stage.new_conversation()
    await stage.store.link_items(stage.access, second, [item.id], now_us=stage.now_us)
    await stage.append(second, 1)
    await stage.store.delete_item(stage.access, second, item.id)
    assert_sound(shelf_of(stage))
    await stage.store.delete_conversation(stage.access, second)
    assert await stage.store.get_item(stage.access, item.id) == item
    assert_sound(shelf_of(stage))


def test_a_document_may_be_as_long_as_it_may_be() -> None:
    assert cost(bytes(DOCUMENT_BYTES_MAX)) == ROW_BYTES + DOCUMENT_BYTES_MAX
    with refused(TOO_LARGE):
        cost(b"{}", bytes(DOCUMENT_BYTES_MAX + 1))


async def test_a_key_takes_room_too() -> None:
    stage = stage_with(Bounds(bytes_max=4 * ROW_BYTES))
    for number in range(8):
        stage.begin_thread()
        key = Idempotency(f"k{number}", b"d" * 16, 0)
        await stage.store.commit_turn(
            stage.access, Turn(response=stage.response(), idempotency=key)
        )
        assert shelf_of(stage).bytes <= 4 * ROW_BYTES
        assert_sound(shelf_of(stage))
    assert len(shelf_of(stage).keys) == 1


async def test_an_item_that_is_purged_is_taken_out_of_its_conversations() -> None:
    stage = stage_with(Bounds())
    first, second = await stage.new_conversation(), await stage.new_conversation()
    items = stage.items(3)
    items[1] = msgspec.structs.replace(items[1], expires_us=stage.in_s(60))
    await stage.store.append_items(stage.access, first, items, now_us=stage.now_us)
    await stage.store.link_items(stage.access, second, [items[1].id], now_us=stage.now_us)
    stage.clock.advance_s(60)
    assert await stage.store.purge(now_us=stage.now_us, batch=9, timeout_s=1) == 1
    assert_sound(shelf_of(stage))
    assert not await stage.store.is_item_linked(stage.access, first, items[1].id)
    assert await stage.listed(first) == [items[0].id, items[2].id]
    assert await stage.listed(second) == []


async def test_purging_forgets_threads_that_are_too_old() -> None:
    stage = stage_with(Bounds(age_max_s=100))
    await stage.chain_of(3)
    await stage.store.purge(now_us=stage.in_s(99), batch=9, timeout_s=1)
    assert len(shelf_of(stage).responses) == 3
    await stage.store.purge(now_us=stage.in_s(100), batch=9, timeout_s=1)
    assert shelf_of(stage).responses == {}


async def test_a_log_that_is_written_to_ends_when_it_would_have() -> None:
    stage = stage_with(Bounds())
    parts = [EventBlob(0, 3, b"a"), EventBlob(4, 4, b"b")]
    for part, seconds in zip(parts, (60, 120), strict=True):
        await stage.store.append_events(
            stage.access, "resp_1", [part], expires_us=stage.in_s(seconds)
        )
    stage.clock.advance_s(59)
    found = await stage.store.read_events(stage.access, "resp_1", after=-1, limit=9)
    assert list(found) == parts
    stage.clock.advance_s(1)
    assert not await stage.store.read_events(stage.access, "resp_1", after=-1, limit=9)
    assert await stage.store.purge(now_us=stage.now_us, batch=9, timeout_s=1) == 1
    assert shelf_of(stage).logs == {}
