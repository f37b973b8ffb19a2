"""Turns: all that a response leaves behind, as one unit, and as often as it takes."""

import asyncio

import msgspec
import pytest

from smg_storage.errors import StoreError
from smg_storage.records import (
    Committed,
    Idempotency,
    Item,
    KeyState,
    Location,
    Side,
    Status,
    Turn,
)
from support.store_contract.stage import (
    BAD_REFERENCE,
    CONFLICT,
    HOUR_S,
    Stage,
    ids,
    message,
    refused,
    unversioned,
)


def located(stage: Stage, *, conversation_id: str = "") -> tuple[Turn, bytes, bytes]:
    """Return a turn with a question and an answer that are only in its documents, and those two."""
    asked, said = stage.new_id("msg"), stage.new_id("msg")
    question, answer = message(asked, "Wie geht's? \u0000"), message(said, "1e2 times")
    response = msgspec.structs.replace(
        stage.response(conversation_id=conversation_id),
        input=b'[ {"role":"system","content":1.0} , ' + question + b" ]",
        response=b'{"id":"x", "output": [' + answer + b' ],"usage":null}',
    )
    turn = Turn(
        response=response,
        locations=[
            Location(asked, response.id, Side.INPUT, 1),
            Location(said, response.id, Side.OUTPUT, 0),
        ],
    )
    return turn, question, answer


class TurnCases:
    async def nothing_of(self, stage: Stage, turn: Turn) -> None:
        """Assert that nothing of a turn is there."""
        assert await stage.store.get_response(stage.access, turn.response.id) is None
        wanted = [*ids(turn.items), *(place.item_id for place in turn.locations)]
        assert dict(await stage.store.find_items(stage.access, wanted)) == {}

    async def test_a_turn_without_a_conversation_is_its_response(self, stage: Stage) -> None:
        turn = stage.turn(items=0)
        committed = await stage.store.commit_turn(stage.access, turn)
        assert (list(committed.positions), committed.again) == ([], False)
        kept = await stage.other.get_response(stage.access, turn.response.id)
        assert unversioned(kept) == turn.response

    async def test_a_turn_of_a_conversation_is_all_there(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        before = await stage.append(conversation_id, 2)
        turn = stage.turn(conversation_id, items=3)
        committed = await stage.store.commit_turn(stage.access, turn)
        page = await stage.page(conversation_id)
        assert list(page.items) == [*before, *turn.items]
        assert list(page.positions)[2:] == list(committed.positions)
        kept = await stage.other.get_response(stage.access, turn.response.id)
        assert unversioned(kept) == turn.response

    async def test_a_conversation_changes_with_every_turn(self, stage: Stage) -> None:
        made = await stage.store.create_conversation(stage.access, stage.conversation())
        stage.clock.advance_s(7)
        await stage.store.commit_turn(stage.access, stage.turn(made.id))
        changed = await stage.store.get_conversation(stage.access, made.id)
        assert changed is not None
        assert changed.version > made.version
        assert (changed.updated_us, changed.created_us) == (stage.now_us, made.created_us)

    async def test_a_turn_that_is_committed_again_is_there_once(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        turn = stage.turn(conversation_id, items=3)
        first = await stage.store.commit_turn(stage.access, turn)
        await stage.append(conversation_id, 1)
        kept = await stage.store.get_response(stage.access, turn.response.id)
        for store in (stage.store, stage.other):
            again = await store.commit_turn(stage.access, turn)
            assert list(again.positions) == list(first.positions)
            assert again.again is True
        assert len(await stage.listed(conversation_id)) == 4
        assert await stage.store.get_response(stage.access, turn.response.id) == kept

    async def test_a_turn_committed_by_many_at_once_is_there_once(self, stage: Stage) -> None:
        turn = stage.turn(await stage.new_conversation(), items=3)
        answers = await asyncio.gather(
            *(store.commit_turn(stage.access, turn) for store in (stage.store, stage.other) * 4)
        )
        assert sorted(answer.again for answer in answers) == [False] + [True] * 7
        assert len({tuple(answer.positions) for answer in answers}) == 1
        assert await stage.listed(turn.response.conversation_id) == list(turn.links)

    async def test_another_turn_of_that_response_is_a_conflict(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        turn = stage.turn(conversation_id)
        await stage.store.commit_turn(stage.access, turn)
        response = msgspec.structs.replace(turn.response, response=b'{"output":[1]}')
        more = stage.item("more")
        other = Turn(response=response, items=[more], links=[more.id])
        with refused(CONFLICT):
            await stage.store.commit_turn(stage.access, other)
        assert await stage.listed(conversation_id) == list(turn.links)
        assert await stage.store.get_item(stage.access, more.id) is None

    async def test_a_turn_links_what_was_there_already(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        old = await stage.store.create_item(stage.access, stage.item("old"))
        (linked,) = await stage.append(conversation_id, 1)
        turn = stage.turn(conversation_id, items=1)
        turn = msgspec.structs.replace(turn, links=[old.id, linked.id, *turn.links])
        committed = await stage.store.commit_turn(stage.access, turn)
        first = (await stage.positions(conversation_id))[0]
        assert list(committed.positions) == [first + 1, first, first + 2]
        assert await stage.listed(conversation_id) == [linked.id, old.id, turn.items[0].id]

    async def test_an_item_that_is_there_and_the_same_is_no_conflict(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        turn = stage.turn(conversation_id)
        await stage.store.create_item(stage.access, turn.items[0])
        await stage.store.commit_turn(stage.access, turn)
        assert await stage.listed(conversation_id) == list(turn.links)

    async def test_an_item_that_is_there_and_another_refuses_all_of_it(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        turn = stage.turn(conversation_id)
        taken = stage.item("taken", item_id=turn.items[1].id)
        await stage.store.create_item(stage.access, taken)
        with refused(CONFLICT):
            await stage.store.commit_turn(stage.access, turn)
        await self.nothing_of(stage, msgspec.structs.replace(turn, items=turn.items[:1]))
        assert await stage.listed(conversation_id) == []
        assert await stage.store.get_item(stage.access, taken.id) == taken

    async def test_a_conversation_that_is_not_there_refuses_all_of_it(self, stage: Stage) -> None:
        unknown = stage.new_id("conv")
        for turn in (stage.turn(unknown), stage.turn(unknown, items=0)):
            with refused(BAD_REFERENCE, missing=unknown):
                await stage.store.commit_turn(stage.access, turn)
            await self.nothing_of(stage, turn)

    async def test_a_link_to_nothing_refuses_all_of_it(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        unknown, turn = stage.new_id("msg"), stage.turn(conversation_id)
        turn = msgspec.structs.replace(turn, links=[*turn.links, unknown])
        with refused(BAD_REFERENCE, missing=unknown):
            await stage.store.commit_turn(stage.access, turn)
        await self.nothing_of(stage, turn)
        assert await stage.listed(conversation_id) == []

    async def test_a_conversation_of_another_thread_takes_a_turn_too(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        stage.begin_thread()
        turn = stage.turn(conversation_id)
        first = await stage.store.commit_turn(stage.access, turn)
        again = await stage.other.commit_turn(stage.access, turn)
        assert await stage.listed(conversation_id) == list(turn.links)
        assert list(again.positions) == list(first.positions)
        assert again.again is True

    # ── What a response was before ───────────────────────────────────────────

    async def test_a_response_that_was_begun_is_replaced(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        turn = stage.turn(conversation_id)
        begun = msgspec.structs.replace(
            turn.response, status=Status.IN_PROGRESS, response=b"{}", completed_us=0
        )
        await stage.store.commit_turn(stage.access, Turn(response=begun))
        committed = await stage.store.commit_turn(stage.access, turn)
        assert committed.again is False
        kept = await stage.store.get_response(stage.access, begun.id)
        assert unversioned(kept) == turn.response
        assert await stage.listed(conversation_id) == list(turn.links)

    async def test_the_owner_of_a_run_ends_it(self, stage: Stage) -> None:
        running = await stage.kept(stage.running())
        lease = await stage.claimed(running)
        await stage.other.request_cancel(stage.access, running.id)
        done = msgspec.structs.replace(
            running, status=Status.COMPLETED, response=b'{"output":[]}', completed_us=stage.now_us
        )
        turn = Turn(response=done, token=lease.token)
        assert (await stage.store.commit_turn(stage.access, turn)).again is False
        assert (await stage.store.commit_turn(stage.access, turn)).again is True
        kept = await stage.other.get_response(stage.access, running.id)
        assert kept is not None
        assert (kept.status, kept.response) == (Status.COMPLETED, done.response)
        assert kept.lease_token == lease.token
        assert kept.cancel_requested is True

    @pytest.mark.parametrize("stale", [0, 1, 3])
    async def test_who_is_not_its_owner_does_not(self, stage: Stage, stale: int) -> None:
        running = await stage.kept(stage.running())
        await stage.claimed(running)
        stage.clock.advance_s(60)
        lease = await stage.claimed(running, "node-b")
        assert lease.token == 2
        done = msgspec.structs.replace(running, status=Status.COMPLETED, completed_us=stage.now_us)
        before = await stage.store.get_response(stage.access, running.id)
        with refused(CONFLICT):
            await stage.store.commit_turn(stage.access, Turn(response=done, token=stale))
        assert await stage.store.get_response(stage.access, running.id) == before

    async def test_what_was_cancelled_is_not_completed(self, stage: Stage) -> None:
        begun = await stage.kept(stage.response(status=Status.CANCELLED))
        done = msgspec.structs.replace(begun, status=Status.COMPLETED)
        with refused(CONFLICT):
            await stage.store.commit_turn(stage.access, Turn(response=done))
        assert unversioned(await stage.store.get_response(stage.access, begun.id)) == begun

    async def test_a_run_that_was_deleted_does_not_come_back(self, stage: Stage) -> None:
        running = await stage.kept(stage.running())
        lease = await stage.claimed(running)
        await stage.store.delete_response(stage.access, running.id)
        done = msgspec.structs.replace(running, status=Status.COMPLETED)
        with refused(CONFLICT):
            await stage.store.commit_turn(stage.access, Turn(response=done, token=lease.token))
        assert await stage.store.get_response(stage.access, running.id) is None

    # ── Items that are only in a response's documents ────────────────────────

    async def test_items_are_found_inside_of_responses(self, stage: Stage) -> None:
        turn, question, answer = located(stage)
        await stage.store.commit_turn(stage.access, turn)
        asked, said = (place.item_id for place in turn.locations)
        expected = {
            each: Item(
                id=each,
                item_type="message",
                document=document,
                created_us=turn.response.created_us,
                role="user",
                status="completed",
                response_id=turn.response.id,
            )
            for each, document in ((asked, question), (said, answer))
        }
        assert await stage.store.get_item(stage.access, asked) == expected[asked]
        assert await stage.other.get_item(stage.access, said) == expected[said]
        unknown = stage.new_id("msg")
        found = await stage.store.find_items(stage.access, [said, asked, unknown])
        assert dict(found) == expected

    async def test_items_of_other_threads_are_found_inside_of_responses(self, stage: Stage) -> None:
        turn, question, _ = located(stage)
        place = msgspec.structs.replace(turn.locations[0], item_id="msg_client.own")
        turn = msgspec.structs.replace(turn, locations=[place])
        await stage.store.commit_turn(stage.access, turn)
        found = await stage.other.get_item(stage.access, "msg_client.own")
        assert found is not None
        assert (found.id, found.document) == ("msg_client.own", question)

    async def test_items_of_a_response_that_was_begun_and_ended_are_all_found(
        self, stage: Stage
    ) -> None:
        turn, question, answer = located(stage)
        begun = msgspec.structs.replace(
            turn.response, status=Status.QUEUED, response=b"{}", completed_us=0
        )
        first = Turn(response=begun, locations=turn.locations[:1])
        await stage.store.commit_turn(stage.access, first)
        await stage.store.commit_turn(stage.access, turn)
        wanted = [place.item_id for place in turn.locations]
        found = await stage.store.find_items(stage.access, wanted)
        assert [found[each].document for each in wanted] == [question, answer]
        await stage.store.delete_response(stage.access, turn.response.id)
        await self.nothing_of(stage, turn)

    async def test_items_inside_of_a_response_go_with_it(self, stage: Stage) -> None:
        turn, _, _ = located(stage)
        await stage.store.commit_turn(stage.access, turn)
        await stage.store.delete_response(stage.access, turn.response.id)
        await self.nothing_of(stage, turn)

    async def test_an_item_taken_out_is_still_inside_of_its_response(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        turn, question, _ = located(stage, conversation_id=conversation_id)
        item = msgspec.structs.replace(
            stage.item(item_id=turn.locations[0].item_id), document=question
        )
        turn = msgspec.structs.replace(turn, items=[item], links=[item.id])
        await stage.store.commit_turn(stage.access, turn)
        assert await stage.store.get_item(stage.access, item.id) == item
        await stage.store.delete_item(stage.access, conversation_id, item.id)
        found = await stage.store.get_item(stage.access, item.id)
        assert found is not None
        assert (found.document, found.response_id) == (question, turn.response.id)
        assert await stage.listed(conversation_id) == []

    async def test_items_of_a_conversation_outlive_their_response(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        turn = stage.turn(conversation_id)
        await stage.store.commit_turn(stage.access, turn)
        await stage.store.delete_response(stage.access, turn.response.id)
        assert list((await stage.page(conversation_id)).items) == list(turn.items)

    # ── Keys of the client's choice ──────────────────────────────────────────

    def key(self, stage: Stage, digest: bytes = b"d" * 16) -> Idempotency:
        return Idempotency("order:7", digest, stage.in_s(HOUR_S))

    async def test_a_turn_keeps_the_key_it_was_asked_under(self, stage: Stage) -> None:
        turn = msgspec.structs.replace(stage.turn(items=0), idempotency=self.key(stage))
        await stage.store.commit_turn(stage.access, turn)
        again = await stage.other.reserve_key(
            stage.access, self.key(stage), stage.new_id("resp"), now_us=stage.now_us
        )
        assert (again.state, again.response_id) == (KeyState.SAME, turn.response.id)

    async def test_a_key_that_was_reserved_for_it_is_no_conflict(self, stage: Stage) -> None:
        turn = msgspec.structs.replace(stage.turn(items=0), idempotency=self.key(stage))
        await stage.store.reserve_key(
            stage.access, self.key(stage), turn.response.id, now_us=stage.now_us
        )
        for again in (False, True):
            assert (await stage.store.commit_turn(stage.access, turn)).again is again

    @pytest.mark.parametrize("digest", [b"d" * 16, b"e" * 16])
    async def test_a_key_of_something_else_refuses_all_of_it(
        self, stage: Stage, digest: bytes
    ) -> None:
        conversation_id = await stage.new_conversation()
        first = msgspec.structs.replace(stage.turn(items=0), idempotency=self.key(stage))
        await stage.store.commit_turn(stage.access, first)
        second = msgspec.structs.replace(
            stage.turn(conversation_id), idempotency=self.key(stage, digest)
        )
        with refused(CONFLICT):
            await stage.store.commit_turn(stage.access, second)
        await self.nothing_of(stage, second)
        assert await stage.listed(conversation_id) == []

    async def test_of_two_turns_under_one_key_one_is_kept(self, stage: Stage) -> None:
        turns = [
            msgspec.structs.replace(stage.turn(items=0), idempotency=self.key(stage))
            for _ in range(2)
        ]
        outcomes = await asyncio.gather(
            *(
                store.commit_turn(stage.access, turn)
                for store, turn in zip((stage.store, stage.other), turns, strict=True)
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, Committed) for outcome in outcomes) == 1
        (lost,) = (outcome for outcome in outcomes if isinstance(outcome, StoreError))
        assert lost.kind is CONFLICT
        kept = [await stage.store.get_response(stage.access, turn.response.id) for turn in turns]
        assert sum(record is not None for record in kept) == 1
