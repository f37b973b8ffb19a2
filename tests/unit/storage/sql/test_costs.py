import asyncio
from pathlib import Path

import pytest

from support.store_contract.stage import Stage
from support.stores.sql_costs import COSTS, count
from support.stores.sql_recorder import said
from support.stores.sql_stores import SqliteMaker


async def test_every_operation_says_as_little_as_it_can(tmp_path: Path) -> None:
    async with SqliteMaker(tmp_path).open() as opened:
        counted = await count(Stage(opened))
    assert counted == {name: cost for name, (cost, _) in COSTS.items()}


@pytest.mark.parametrize("turns", [2, 16, 64])
async def test_turns_that_come_together_cost_as_much_as_one(tmp_path: Path, turns: int) -> None:
    async with SqliteMaker(tmp_path).open() as opened:
        stage = Stage(opened)
        conversations = [await stage.new_conversation() for _ in range(turns)]
        made = [stage.turn(conversation_id) for conversation_id in conversations]
        with said() as statements:
            await asyncio.gather(*(stage.store.commit_turn(stage.access, turn) for turn in made))
    assert len(statements) == COSTS["commit_turn_to_a_conversation"][0]
