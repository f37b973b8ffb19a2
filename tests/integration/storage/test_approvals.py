"""Approvals over the stores that nodes share: of many answers at once, on all nodes, one runs its call."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from smg_node.core.errors import SmgError
from smg_node.history.errors import AnsweredBeforeError
from smg_node.history.turns.response_run import ResponseRun
from support.history.approving_nodes import ApprovingNodes, answer_to
from support.stores.postgres_server import Postgres
from support.stores.redis_server import Redis
from support.stores.redis_stores import kept_redis
from support.stores.sql_stores import database_of_tables, kept_postgresql

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def tables(postgres: Postgres) -> Iterator[str]:
    with database_of_tables(postgres) as url:
        yield url


@pytest_asyncio.fixture(params=["postgresql", "redis"])
async def nodes(
    request: pytest.FixtureRequest, tables: str, redis: Redis
) -> AsyncIterator[ApprovingNodes]:
    if request.param == "redis":
        async with kept_redis(redis.url) as maker, maker.open() as opened:
            yield ApprovingNodes(opened.store, opened.other, now_us=opened.clock.now_us)
        return
    async with kept_postgresql(tables) as maker, maker.open() as opened:
        yield ApprovingNodes(opened.store, opened.other, now_us=opened.clock.now_us)


async def test_of_many_answers_at_once_one_runs(nodes: ApprovingNodes) -> None:
    first, item = await nodes.asked()
    nodes.may_run.clear()
    body = {"input": answer_to(item["id"]), "previous_response_id": first}
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(nodes.answers(number % 2, **body)) for number in range(8)]
        await asyncio.wait_for(nodes.begun.wait(), 30)
        nodes.may_run.set()
    found = [task.result() for task in tasks]
    [run] = [one for one in found if isinstance(one, ResponseRun)]
    assert {one.code for one in found if isinstance(one, SmgError)} == {"approval_already_answered"}
    again = await nodes.answers(1, **body)
    assert isinstance(again, AnsweredBeforeError)
    assert (again.response_id, nodes.ran) == (run.id, [item["id"]])


async def test_another_answer_and_a_run_that_broke_are_refused(nodes: ApprovingNodes) -> None:
    first, item = await nodes.asked(1)
    nodes.breaks = "after"
    body = {"input": answer_to(item["id"]), "previous_response_id": first}
    assert (await nodes.made(0, **body)).failure is not None
    nodes.breaks = ""
    for approve in (True, False):
        other = answer_to(item["id"], approve=approve)
        error = await nodes.answers(1, input=other, previous_response_id=first)
        assert isinstance(error, SmgError)
        assert error.code == "approval_already_answered"
    assert nodes.ran == [item["id"]]
