"""A Kubernetes source in front of a real API server: the suite that it passes in front of the scripted one too."""

from collections.abc import Iterator
from itertools import count

import pytest

from support.kubernetes.real_stage import ControlPlane, RealStage, control_plane
from support.kubernetes.server_contract import SERVER_CONTRACT
from support.kubernetes.source_contract import CONTRACT, Clause

NUMBERS = count(1)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One server for all; each test has a namespace of its own."""
    with control_plane(tmp_path_factory.mktemp("kube")) as running:
        yield running


async def held(clause: Clause, plane: ControlPlane) -> None:
    """Hold to a clause in a namespace of its own."""
    stage = RealStage(plane, f"serving-{next(NUMBERS)}")
    await stage.open()
    try:
        await clause(stage)
    finally:
        await stage.client.close()


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.asyncio
async def test_the_source_keeps_its_contract(clause: Clause, plane: ControlPlane) -> None:
    await held(clause, plane)


@pytest.mark.parametrize("clause", SERVER_CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.asyncio
async def test_the_server_is_as_the_scripted_one_says(clause: Clause, plane: ControlPlane) -> None:
    await held(clause, plane)
