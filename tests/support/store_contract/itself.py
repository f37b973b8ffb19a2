"""The store itself: it says what it is, is well, knows about how much it has, and can be closed."""

from smg_storage.records import StoreFigures
from support.store_contract.stage import Stage


class StoreCases:
    async def test_it_says_what_it_is(self, stage: Stage) -> None:
        assert stage.store.kind in ("memory", "sqlite", "postgresql", "oracle", "redis")
        assert stage.store.shared is (stage.store.kind in ("postgresql", "oracle", "redis"))

    async def test_it_is_well(self, stage: Stage) -> None:
        await stage.store.ping(timeout_s=30)
        await stage.other.ping(timeout_s=30)

    async def test_it_knows_about_how_much_it_has(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        await stage.append(conversation_id, 3)
        await stage.chain_of(2)
        figures = await stage.store.figures(timeout_s=30)
        expected = StoreFigures(conversations=1, items=3, responses=2)
        # What a server only estimates may still be what was there before; it is never below nothing.
        for name in ("conversations", "items", "responses"):
            assert -1 <= getattr(figures, name) <= getattr(expected, name)
        assert figures.bytes >= -1

    async def test_what_was_acknowledged_outlives_who_wrote_it(self, stage: Stage) -> None:
        turn = stage.turn(await stage.new_conversation())
        await stage.other.commit_turn(stage.access, turn)
        if stage.other is not stage.store:
            await stage.other.close()
        listed = await stage.listed(turn.response.conversation_id)
        kept = await stage.store.get_response(stage.access, turn.response.id)
        if stage.other is not stage.store:
            await stage.other.start()
        assert listed == list(turn.links)
        assert kept is not None
