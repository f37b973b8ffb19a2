"""Which answers say that the store is away, and which are simply wrong."""

from typing import cast

import pytest

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.history.response_request import Answer
from smg_chaos.gameday.lab.lab import Lab
from smg_chaos.gameday.whole.clients.balancer import Balancer
from smg_chaos.gameday.whole.clients.chat_users import People, named_in, needs_store
from smg_chaos.gameday.whole.day_run import excused as excused_by
from smg_chaos.gameday.whole.excuses import Excuses
from smg_chaos.gameday.whole.plan import KINDS, Planned
from smg_node.history.errors import PendingWriteError, failure_of

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


def test_who_may_have_on_its_disk_what_was_asked_for_is_read_from_the_answer_of_a_node() -> None:
    message = failure_of(PendingWriteError("n03")).message
    named = {"error": {"code": "store_unavailable", "message": message}}
    assert named_in(Answer(503, named)) == "n03"
    assert named_in(Answer(503, {"error": {"code": "overloaded", "message": message}})) == ""
    assert named_in(Answer(503, {"error": {"code": "store_unavailable", "message": "x"}})) == ""
    assert named_in(Answer(200, {"status": "completed", "error": None})) == ""


@pytest.mark.parametrize(("hurt", "excused"), [("n03", True), ("n02", False)])
def test_not_to_know_is_excused_only_while_the_node_that_may_have_it_is_hurt(
    hurt: str, excused: bool
) -> None:
    planned = Planned(5.0, KINDS["partition"], 2.0, (hurt,))
    excuses, nodes = Excuses(), Balancer[SmgAgent](cast(Lab, None), "clients", [])
    for name in excused_by(planned):
        excuses.begin(name, 5.0)
    people = People(cast(Lab, None), nodes, excuses, 1, now_s=lambda: 8.0)
    message = failure_of(PendingWriteError("n03")).message
    said = {"error": {"code": "store_unavailable", "message": message}}
    people._refused("n01", Answer(503, said), begun_s=7.0)
    assert (people.ledger.unsure, len(people.ledger.failed)) == (1, 0) if excused else (0, 1)


def test_a_denial_is_excused_by_nothing() -> None:
    nodes = Balancer[SmgAgent](cast(Lab, None), "clients", [])
    people = People(cast(Lab, None), nodes, Excuses(), 1, now_s=lambda: 8.0)
    said = {"error": {"code": "previous_response_not_found", "message": "there is none"}}
    people._refused("n01", Answer(400, said), begun_s=7.0)
    assert (people.ledger.denied, people.denials) == (1, ["n01: there is none"])
