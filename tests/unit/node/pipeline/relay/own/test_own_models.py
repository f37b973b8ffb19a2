"""Own models are found under every name of theirs, and never by way of a target."""

from pathlib import Path

from smg_node.fleet.models.served_model import RelayedModel, ServedModel
from support.engines.fake_engine import FakeEngine
from support.engines.relay_bench import told, worker
from support.routes.own_bench import own_bench


async def test_a_path_is_found_by_its_last_part_although_a_route_has_that_name(
    tmp_path: Path,
) -> None:
    engine = FakeEngine(model="/models/qwen3")
    routes = {"qwen3": ["engines/qwen3"], "other": ["engines//models/qwen3"]}
    async with own_bench(tmp_path, routes, {"e": engine}) as b:
        for name in ("qwen3", "/models/qwen3"):
            found = b.placer.own.model(name)
            assert isinstance(found, ServedModel)
            assert found.name == "/models/qwen3"
        for route in routes:
            answer = await b.answer(route)
            assert answer.choices[0].text() == "hello"
            assert answer.begin.model == route


async def test_a_target_is_nobodys_server(tmp_path: Path) -> None:
    servers = {"w": worker(lambda call: told({}))}
    routes = {"m": ["engines/m"], "alias": ["engines/m"], "loop": ["engines/alias"]}
    async with own_bench(tmp_path, routes, servers=servers) as b:
        own, fleet = b.placer.own, b.fleet
        found = own.model("m")
        assert isinstance(found, RelayedModel)
        assert [one.url.scheme for one in own.servers(found)] == ["http"]
        assert len(fleet.serving(found)) == 2
        # A route to a route is one to a model that no worker serves.
        assert own.model("alias") is None
        assert own.model("loop") is None
        alias = fleet.relayed("alias")
        assert alias is not None
        assert own.names(alias) == ("m",)
        assert own.behind(alias) is found
        assert own.public("alias", found) == "alias"
        targets = {one.url.model: one for one in fleet.workers() if one.own_model}
        assert own.backed(targets["alias"])
        assert not own.backed(targets["loop"])


async def test_the_tokens_of_a_route_are_those_of_its_first_model_that_is_there(
    tmp_path: Path,
) -> None:
    routes = {"r": ["engines/gone", "engines/tiny"], "none": ["engines/gone"]}
    async with own_bench(tmp_path, routes, {"e": FakeEngine()}) as b:
        model = await b.placer.model("r", deadline_s=float("inf"))
        assert model.name == "tiny"
        assert b.placer.own.served("r") is model
        assert b.placer.own.served("none") is None
        assert b.placer.own.served("tiny") is model
