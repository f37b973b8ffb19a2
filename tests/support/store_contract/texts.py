"""Short texts beside documents: what one store takes all take, and what one refuses all refuse."""

from typing import Any, Final

import msgspec
import pytest

from smg_storage.errors import StoreErrorKind
from smg_storage.records import Item, StoredResponse, Turn
from support.store_contract.stage import Stage, refused

_ITEM: Final = {"item_type": 64, "role": 16, "status": 16}
_RESPONSE: Final = {"model": 256, "safety_identifier": 128, "owner": 256}
_ODD: Final = "a\t\x7f\u0085\u2028\ufeff é\U0001f600"


def odd(characters: int) -> str:
    """Return a text of so many characters, control characters among them."""
    return (_ODD * characters)[:characters]


def unfit(limits: dict[str, int]) -> list[Any]:
    """Return each text with one character too many, and with a NUL, and what that is called."""
    return [
        pytest.param(name, text, kind, id=f"{name}-{kind.value}")
        for name, most in limits.items()
        for text, kind in (
            ("x" * (most + 1), StoreErrorKind.TOO_LARGE),
            ("a\0b", StoreErrorKind.CORRUPT),
        )
    ]


def item_with(stage: Stage, name: str, text: str) -> Item:
    return msgspec.structs.replace(stage.item(), **{name: text})


def response_with(stage: Stage, name: str, text: str) -> StoredResponse:
    return msgspec.structs.replace(stage.response(), **{name: text})


class TextCases:
    @pytest.mark.parametrize(("name", "most"), _ITEM.items())
    async def test_a_text_of_an_item_comes_back(self, stage: Stage, name: str, most: int) -> None:
        item = item_with(stage, name, odd(most))
        await stage.store.create_item(stage.access, item)
        assert await stage.other.get_item(stage.access, item.id) == item

    @pytest.mark.parametrize(("name", "most"), _RESPONSE.items())
    async def test_a_text_of_a_response_comes_back(
        self, stage: Stage, name: str, most: int
    ) -> None:
        response = response_with(stage, name, odd(most))
        await stage.store.commit_turn(stage.access, Turn(response=response))
        found = await stage.other.get_response(stage.access, response.id)
        assert found is not None
        assert getattr(found, name) == odd(most)

    @pytest.mark.parametrize(("name", "text", "kind"), unfit(_ITEM))
    async def test_a_text_of_an_item_that_no_column_holds_is_refused(
        self, stage: Stage, name: str, text: str, kind: StoreErrorKind
    ) -> None:
        conversation = await stage.new_conversation()
        item = item_with(stage, name, text)
        with refused(kind):
            await stage.store.create_item(stage.access, item)
        with refused(kind):
            await stage.store.append_items(
                stage.access, conversation, [stage.item(), item], now_us=stage.now_us
            )
        turn = stage.turn(conversation)
        turn = msgspec.structs.replace(turn, items=[*turn.items, item], links=[item.id])
        with refused(kind):
            await stage.store.commit_turn(stage.access, turn)
        assert await stage.other.get_item(stage.access, item.id) is None
        assert await stage.other.get_response(stage.access, turn.response.id) is None
        assert await stage.listed(conversation) == []

    @pytest.mark.parametrize(("name", "text", "kind"), unfit(_RESPONSE))
    async def test_a_text_of_a_response_that_no_column_holds_is_refused(
        self, stage: Stage, name: str, text: str, kind: StoreErrorKind
    ) -> None:
        response = response_with(stage, name, text)
        with refused(kind):
            await stage.store.store_response(stage.access, response)
        with refused(kind):
            await stage.store.commit_turn(stage.access, Turn(response=response))
        assert await stage.other.get_response(stage.access, response.id) is None
