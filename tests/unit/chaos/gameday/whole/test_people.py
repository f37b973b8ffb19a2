"""Which answers say that the store is away, and which are simply wrong."""

import pytest

from smg_chaos.gameday.history.asking import Answer
from smg_chaos.gameday.whole.people import needs_store

AWAY = {"code": "server_error", "message": "the store of responses and conversations is away"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(503, {"error": {"code": "store_unavailable"}}), True),
        (Answer(200, {"status": "failed", "error": AWAY}), True),
        (Answer(200, {"status": "failed", "error": {"message": "no worker"}}), False),
        (Answer(200, {"status": "completed", "error": None}), False),
        (Answer(503, {"error": {"code": "overloaded"}}), False),
        (Answer(404, {"error": {"code": "previous_response_not_found"}}), False),
    ],
)
def test_only_what_names_the_store_is_excused_by_it(answer: Answer, expected: bool) -> None:
    assert needs_store(answer) is expected
