"""The reference gateway as an agent: it is started with engines and a limit, and has no mesh to play with."""

from pathlib import Path

import pytest

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.peer_gateway import PeerGateway
from smg_chaos.gameday.scenarios import SCENARIOS
from smg_chaos.gameday.systems import SYSTEMS, SystemMissingError, check_installed
from support.mesh.gameday_fakes import FakeLab, Manners, VirtualClock


async def test_what_needs_a_mesh_is_refused_in_one_line(tmp_path: Path) -> None:
    lab = FakeLab(("n0",), VirtualClock(), Manners())
    gateway = PeerGateway(lab, "n0", tmp_path / "n0", lab.clock, program=Path("smg"))
    with pytest.raises(AgentError, match="plays `limits` and `availability` only"):
        gateway.start()
    with pytest.raises(AgentError, match="plays `limits` and `availability` only"):
        await gateway.join(["n1:7946"])
    assert await gateway.view() == {}


def test_it_is_no_system_of_ours_and_says_how_to_get_it(tmp_path: Path) -> None:
    assert not SYSTEMS["smg"].is_ours
    with pytest.raises(SystemMissingError, match="`make bench-peers` installs it"):
        check_installed(["smg"], tmp_path)


def test_engines_and_clients_of_the_limits_have_places_of_their_own() -> None:
    assert SCENARIOS["limits"].places == ("engines", "clients")
    others = {
        name: one.places for name, one in SCENARIOS.items() if name != "limits" and one.places
    }
    assert others.pop("whole") == ("engines", "clients", "store")
    assert others.pop("history") == ("store",)
    assert others.pop("unwritten") == ("store", "engines")
    assert others.pop("ten") == ("engines", "store")
    assert others.pop("availability") == ("engines", "clients")
    assert all(set(places) <= {"engines", "clients"} for places in others.values())
