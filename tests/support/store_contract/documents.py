"""Documents come back byte for byte, however they are written and however long they are."""

from typing import Final

import msgspec
import pytest

from smg_storage.errors import StoreErrorKind
from smg_storage.records import DOCUMENT_BYTES_MAX, EventBlob, Patch, Status, Turn
from support.store_contract.stage import HOUR_S, Stage, refused

DOCUMENTS: Final = {
    "a NUL escape": rb'{"text":"\u0000\u001f\ud83d\ude00"}',
    "half a pair": rb'{"text":"\ud83d"}',
    "numbers": b'{"a":1.0,"b":1e2,"c":-0.0,"d":1E+2,"e":0.10,"f":100000000000000000000.5}',
    "2 to the 63": b'{"a":9223372036854775808,"b":-9223372036854775809,"c":18446744073709551616}',
    "the order of keys": b'{"z":1,"a":2,"m":{"y":1,"b":2},"10":1,"9":2}',
    "a key twice": b'{"a":1,"a":2}',
    "white space": b' {\n\t"a" : [ 1 , 2 ]\r\n} ',
    "many scripts": '{"a":"日本語 \u202e العربية 👩‍👩‍👧 ñ n\u0303 ﬀ"}'.encode(),
    "escapes": rb'{"a":"\/\"\\\b\f\n\r\t\u00e9"}',
    "quotes and signs": b'{"a":"\' -- ; $1 :name %s ? {0} \\u0027"}',
    "nothing": b"{}",
    "null": b"null",
    "an empty text": b'""',
    "deep": b"[" * 200 + b"]" * 200,
}


def large(length: int) -> bytes:
    """Return a document of so many bytes that does not repeat itself much."""
    numbers = b",".join(b"%d" % (n * 2_654_435_761 % 4_294_967_291) for n in range(length // 9))
    return (b"[" + numbers)[: length - 4] + b",1" + b"]" + b" "


class DocumentCases:
    async def same_everywhere(self, stage: Stage, document: bytes) -> None:
        """Assert that a document comes back from every place where one can be."""
        conversation = stage.conversation(document)
        await stage.store.create_conversation(stage.access, conversation)
        item = msgspec.structs.replace(stage.item(), document=document)
        response = msgspec.structs.replace(
            stage.response(conversation_id=conversation.id), input=document, response=document
        )
        turn = Turn(response=response, items=[item], links=[item.id])
        await stage.store.commit_turn(stage.access, turn)
        for store in (stage.store, stage.other):
            read = await store.get_conversation(stage.access, conversation.id)
            assert read is not None
            assert read.metadata == document
            for found in (
                await store.get_item(stage.access, item.id),
                (await store.find_items(stage.access, [item.id]))[item.id],
                (await stage.page(conversation.id)).items[0],
            ):
                assert found is not None
                assert found.document == document
            for kept in (
                await store.get_response(stage.access, response.id),
                (await stage.chain(response.id)).responses[0],
            ):
                assert kept is not None
                assert (kept.input, kept.response) == (document, document)
        assert (await stage.other.commit_turn(stage.access, turn)).again is True

    @pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
    async def test_a_document_comes_back_byte_for_byte(self, stage: Stage, document: bytes) -> None:
        await self.same_everywhere(stage, document)

    @pytest.mark.parametrize("length", [(256 << 10) - 1, 256 << 10, (256 << 10) + 1, 1 << 20])
    async def test_a_long_document_comes_back_byte_for_byte(
        self, stage: Stage, length: int
    ) -> None:
        document = large(length)
        assert len(document) == length
        await self.same_everywhere(stage, document)

    async def test_ten_mebibytes_come_back_byte_for_byte(self, stage: Stage) -> None:
        document = large(10 << 20)
        response = msgspec.structs.replace(stage.response(), response=document)
        await stage.kept(response)
        read = await stage.other.get_response(stage.access, response.id)
        assert read is not None
        assert read.response == document
        item = msgspec.structs.replace(stage.item(), document=document)
        await stage.store.create_item(stage.access, item)
        found = await stage.other.get_item(stage.access, item.id)
        assert found is not None
        assert found.document == document

    async def test_a_document_that_is_patched_comes_back_byte_for_byte(self, stage: Stage) -> None:
        made = await stage.kept(stage.response(status=Status.QUEUED))
        for document in DOCUMENTS.values():
            await stage.store.patch_response(
                stage.access, made.id, Patch(response=document), from_statuses=[Status.QUEUED]
            )
            read = await stage.other.get_response(stage.access, made.id)
            assert read is not None
            assert read.response == document

    async def test_any_bytes_of_events_come_back(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        payloads = [bytes(range(256)), b"\x00", b"", large(300_000)]
        parts = [EventBlob(n, n, payload) for n, payload in enumerate(payloads)]
        await stage.store.append_events(stage.access, made.id, parts, expires_us=stage.in_s(HOUR_S))
        found = await stage.other.read_events(stage.access, made.id, after=-1, limit=9)
        assert list(found) == parts

    async def test_times_come_back_to_the_microsecond(self, stage: Stage) -> None:
        conversation = stage.conversation()
        for odd in (1, 999_999, 123_457):
            created_us = stage.now_us // 1_000_000 * 1_000_000 + odd
            made = msgspec.structs.replace(
                conversation, id=stage.new_id("conv"), created_us=created_us, updated_us=created_us
            )
            await stage.store.create_conversation(stage.access, made)
            assert await stage.other.get_conversation(stage.access, made.id) == made

    @pytest.mark.parametrize("where", ["metadata", "item", "input", "response"])
    async def test_a_document_that_is_too_long_is_refused(self, stage: Stage, where: str) -> None:
        document = b" " * (DOCUMENT_BYTES_MAX + 1)
        response = stage.response()
        with refused(StoreErrorKind.TOO_LARGE):
            if where == "metadata":
                await stage.store.create_conversation(stage.access, stage.conversation(document))
            elif where == "item":
                item = msgspec.structs.replace(stage.item(), document=document)
                await stage.store.create_item(stage.access, item)
            elif where == "input":
                changed = msgspec.structs.replace(response, input=document)
                await stage.store.store_response(stage.access, changed)
            else:
                changed = msgspec.structs.replace(response, response=document)
                await stage.store.commit_turn(stage.access, Turn(response=changed))
        assert await stage.store.get_response(stage.access, response.id) is None
