import msgspec
import pytest

from smg_storage.errors import StoreErrorKind
from smg_storage.located_item import located_item
from smg_storage.records import Item, Location, Side, Status, StoredResponse
from support.store_contract.documents import DOCUMENTS
from support.store_contract.stage import refused

RESPONSE = StoredResponse(
    id="resp_1",
    status=Status.COMPLETED,
    model="m",
    created_us=7,
    input=b"[]",
    response=b"{}",
    expires_us=99,
)


def response(*, asked: bytes = b"[]", said: bytes = b"{}") -> StoredResponse:
    return msgspec.structs.replace(RESPONSE, input=asked, response=said)


def place(side: Side, index: int) -> Location:
    return Location("msg_1", "resp_1", side, index)


def test_an_item_of_the_input_says_what_it_is() -> None:
    document = b'{"role":"user" , "type":"message","status":"completed"}'
    item = located_item(response(asked=b"[1, " + document + b" ]"), place(Side.INPUT, 1))
    assert item == Item(
        id="msg_1",
        item_type="message",
        document=document,
        created_us=7,
        role="user",
        status="completed",
        response_id="resp_1",
        expires_us=99,
    )


def test_an_item_of_the_output_says_what_it_is() -> None:
    document = b'{"type":"reasoning","summary":[]}'
    said = b'{"id":"x","output":[{}, ' + document + b'],"usage":{"output":[3]}}'
    item = located_item(response(said=said), place(Side.OUTPUT, 1))
    assert (item.item_type, item.role, item.status) == ("reasoning", "", "")
    assert item.document == document


# Half of a surrogate pair is refused in every request, and no engine's text has one.
@pytest.mark.parametrize(
    "document",
    [document for name, document in DOCUMENTS.items() if name != "half a pair"],
    ids=[name for name in DOCUMENTS if name != "half a pair"],
)
def test_it_is_the_same_byte_for_byte(document: bytes) -> None:
    wrapped = b'{"type":null,"content":' + document.strip() + b"}"
    for listed in (b"[" + wrapped + b"]", b"[\n" + wrapped + b"\t]"):
        item = located_item(response(asked=listed), place(Side.INPUT, 0))
        assert (item.document, item.item_type) == (wrapped, "message")


@pytest.mark.parametrize(
    ("asked", "said", "where"),
    [
        (b"[]", b"{}", place(Side.INPUT, 0)),
        (b"[{}]", b"{}", place(Side.INPUT, 1)),
        (b"{}", b"{}", place(Side.INPUT, 0)),
        (b"not json", b"{}", place(Side.INPUT, 0)),
        (b"", b"", place(Side.OUTPUT, 0)),
        (b"[]", b"{}", place(Side.OUTPUT, 0)),
        (b"[]", b"[]", place(Side.OUTPUT, 0)),
        (b"[]", b'{"output":null}', place(Side.OUTPUT, 0)),
        (b'["text"]', b"{}", place(Side.INPUT, 0)),
        (b'[{"role":1}]', b"{}", place(Side.INPUT, 0)),
        (b'[{"a":"' + rb"\ud83d" + b'"}]', b"{}", place(Side.INPUT, 0)),
        (b"[" * 100_000, b"{}", place(Side.INPUT, 0)),
    ],
)
def test_an_item_that_is_not_where_it_should_be_is_corrupt(
    asked: bytes, said: bytes, where: Location
) -> None:
    with refused(StoreErrorKind.CORRUPT):
        located_item(response(asked=asked, said=said), where)
