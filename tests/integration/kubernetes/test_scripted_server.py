"""A Kubernetes source in front of the scripted API server: the suite that it passes in front of a real one too."""

import pytest

from support.kubernetes.peer_contract import PEER_CONTRACT, PeerClause
from support.kubernetes.scripted_stage import scripted_stage
from support.kubernetes.server_contract import SERVER_CONTRACT
from support.kubernetes.source_contract import CONTRACT, Clause

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.asyncio
async def test_the_source_keeps_its_contract(clause: Clause) -> None:
    async with scripted_stage() as stage:
        await clause(stage)


@pytest.mark.parametrize("clause", SERVER_CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.asyncio
async def test_the_server_is_as_a_real_one(clause: Clause) -> None:
    async with scripted_stage() as stage:
        await clause(stage)


@pytest.mark.parametrize("clause", PEER_CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.asyncio
async def test_peers_are_found_as_the_contract_says(clause: PeerClause) -> None:
    async with scripted_stage() as stage:
        await clause(stage)
