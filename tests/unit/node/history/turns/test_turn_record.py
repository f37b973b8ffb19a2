"""Rows of items: the document has all that was said, the columns beside it only short words."""

import pytest

from smg_node.dialects.responses.items.item_document import item_from
from smg_node.history.turns.turn_record import row_of


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("completed", "completed"),
        ("s" * 16, "s" * 16),
        ("s" * 17, ""),
        ("a\0b", ""),
        ("a\nb", ""),
        ("", ""),
    ],
)
def test_a_role_and_a_status_are_repeated_where_they_are_short_words(said: str, kept: str) -> None:
    item = item_from({"id": "ws_1", "type": "web_search_call", "status": said, "role": said})
    row = row_of(item, 7, "resp_1")
    assert (row.role, row.status) == (kept, kept)
    assert (row.id, row.item_type, row.created_us) == ("ws_1", "web_search_call", 7)
    assert (row.response_id, row.document) == ("resp_1", item.document)
