import asyncio
import logging

import pytest

from smg_node.cluster.settings.live_settings import LiveSettings
from smg_node.config.frozen_settings import Settings
from smg_node.config.schema.live_settings import LiveError
from smg_node.core.errors import SmgError
from support.state.fake_shared_state import SharedWorld


def write(world: SharedWorld, node: str, key: str, value: object) -> None:
    world.nodes[node].settings.set(key, value, version=None)


def test_the_clusters_word_goes_before_the_nodes_own_and_back() -> None:
    world = SharedWorld("a", "b")
    live = world.desks("a", "--policy", "random").live
    assert (live.value("routing.policy"), live.source("routing.policy")) == ("random", "node")
    write(world, "b", "routing.policy", "round_robin")
    live.refresh()
    assert (live.value("routing.policy"), live.source("routing.policy")) == (
        "round_robin",
        "cluster",
    )
    assert live.effective.routing.policy == "round_robin"
    assert live.own.routing.policy == "random"
    world.nodes["b"].settings.remove("routing.policy", version=None)
    live.refresh()
    assert live.effective.routing.policy == "random"
    assert live.source("workers.retry_s") == "default"


def test_only_who_watches_the_section_hears_of_a_change_and_once() -> None:
    world = SharedWorld("a", "b")
    live = world.desks("a").live
    heard: list[tuple[str, float]] = []
    live.watch(("workers",), lambda now: heard.append(("workers", now.workers.retry_s)))
    live.watch(("http", "stream"), lambda now: heard.append(("http", now.stream.keepalive_s)))
    write(world, "b", "workers.retry_s", 2)
    write(world, "b", "workers.down_after", 5)
    assert heard == []
    live.refresh()
    live.refresh()
    assert heard == [("workers", 2.0)]
    write(world, "b", "stream.keepalive_s", 3)
    live.refresh()
    assert heard[1:] == [("http", 3.0)]


def test_a_value_this_version_cannot_read_is_kept_not_followed_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = SharedWorld("a", "b")
    desks = world.desks("a")
    live = desks.live
    write(world, "b", "workers.retry_s", -1)
    write(world, "b", "tomorrow.knob", 5)
    world.settings["b"].put("limits.n_max", b"\xc1 no msgpack")
    with caplog.at_level(logging.WARNING):
        live.refresh()
        live.refresh()
    assert sorted(live.ignored()) == ["limits.n_max", "tomorrow.knob", "workers.retry_s"]
    assert len(caplog.records) == 3
    assert live.effective.workers.retry_s == 1
    assert (live.value("limits.n_max"), live.source("limits.n_max")) == (16, "default")
    views = {view.key: view for view in desks.settings.settings(unset=False)}
    assert "out of range" in views["workers.retry_s"].ignored
    assert views["workers.retry_s"].value == -1
    assert (views["tomorrow.knob"].effective, views["tomorrow.knob"].about) == (None, {})
    assert views["limits.n_max"].is_set
    assert "cannot read" in views["limits.n_max"].ignored
    # Even so an operator can take it away, by the version that is shown.
    for key, view in views.items():
        desks.settings.unset(key, version=int(view.version))
    assert live.ignored() == {}


def test_a_conflict_is_told_of_once_and_ends_with_the_next_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = SharedWorld("a", "b")
    live = world.desks("a").live
    world.settings.hold()
    write(world, "a", "workers.retry_s", 2)
    write(world, "b", "workers.retry_s", 3)
    world.settings.heal()
    with caplog.at_level(logging.WARNING):
        live.refresh()
        live.refresh()
    assert live.conflicts() == ["workers.retry_s"]
    assert [record.getMessage() for record in caplog.records] == [
        "setting workers.retry_s was written on two nodes at once"
    ]
    write(world, "b", "workers.retry_s", 3)
    live.refresh()
    assert live.conflicts() == []


def test_settings_of_models_are_laid_over_those_of_the_configuration() -> None:
    world = SharedWorld("a")
    live = world.desks("a", "--models.m.aliases", "own", "--models.m.policy", "random").live
    heard: list[object] = []
    live.watch(("models",), lambda now: heard.append(live.of_models("aliases")))
    assert live.of_models("aliases") == {"m": ("own",)}
    assert (live.value("models/m/policy"), live.source("models/m/policy")) == ("random", "node")
    write(world, "a", "models/org/x.y/aliases", ["chat"])
    write(world, "a", "models/m/policy", "round_robin")
    live.refresh()
    assert heard == [{"m": ("own",), "org/x.y": ("chat",)}]
    assert live.of_models("policy") == {"m": "round_robin"}
    assert live.own_value("models/org/x.y/aliases") == ()
    assert "models/org/x.y/aliases" in live.known()


def test_settings_of_a_section_of_models_are_followed_as_well() -> None:
    world = SharedWorld("a")
    live = world.desks("a", "--models.m.mcp.expose", "true").live
    assert live.of_models("mcp.expose") == {"m": True}
    write(world, "a", "models/m/mcp.expose", False)
    write(world, "a", "models/org/x.y/mcp.expose", True)
    live.refresh()
    assert live.of_models("mcp.expose") == {"m": False, "org/x.y": True}
    assert live.own_value("models/m/mcp.expose") is True
    assert live.own_value("models/org/x.y/mcp.expose") is False
    assert "models/org/x.y/mcp.expose" in live.known()


def test_one_part_that_chokes_does_not_keep_the_others_from_following(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = SharedWorld("a")
    live = world.desks("a").live
    heard: list[float] = []

    def choke(now: Settings) -> None:
        raise RuntimeError("a mistake of ours")

    live.watch(("workers",), choke)
    live.watch(("workers",), lambda now: heard.append(now.workers.retry_s))
    write(world, "a", "workers.retry_s", 2)
    with caplog.at_level(logging.ERROR):
        live.refresh()
    assert heard == [2.0]
    assert "workers.retry_s was not taken over" in caplog.text


async def test_a_running_node_follows_others_and_says_what_it_runs() -> None:
    world = SharedWorld("a", "b")
    one, other = world.desks("a"), world.desks("b", "--policy", "random")
    followed = asyncio.Event()
    other.live.watch(("workers",), lambda now: followed.set())
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        tasks = [group.create_task(desks.live.run()) for desks in (one, other)]
        one.settings.change("workers.retry_s", 2, version=0)
        await followed.wait()
        # The word about it goes out in the same turn.
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
    states = one.settings.states()
    assert sorted(states) == ["a", "b"]
    assert states["a"].hash == states["b"].hash == world.settings["a"].digest().hex()
    assert states["a"].effective != states["b"].effective
    assert other.live.effective.workers.retry_s == 2


def test_the_hash_says_what_is_followed_and_not_only_what_is_written() -> None:
    world = SharedWorld("a")
    live = world.desks("a").live
    write(world, "a", "workers.retry_s", 2)
    live.refresh()
    plain = live.state()
    assert plain.hash == world.settings["a"].digest().hex()
    write(world, "a", "tomorrow.knob", 2)
    live.refresh()
    strange = live.state()
    assert strange.hash not in (plain.hash, world.settings["a"].digest().hex())
    assert strange.effective == plain.effective


async def test_two_nodes_are_compared_by_what_they_run() -> None:
    world = SharedWorld("a", "b")
    one, other = world.desks("a"), world.desks("b", "--policy", "random")
    write(world, "a", "limits.n_max", 4)
    for desks in (one, other):
        desks.live.refresh()
    (row,) = await one.settings.difference("b")
    assert (row.key, row.left, row.left_source) == ("routing.policy", "cache_aware", "default")
    assert (row.right, row.right_source) == ("random", "node")
    mine = await one.settings.difference("a")
    assert [(row.key, row.left, row.right) for row in mine] == [("limits.n_max", 16, 4)]
    with pytest.raises(SmgError, match="nobody"):
        await one.settings.difference("nobody")


async def test_a_member_that_is_silent_or_makes_no_sense_is_an_error_of_its_own() -> None:
    world = SharedWorld("a", "b")
    one = world.desks("a")
    world.desks("b")

    async def nonsense(payload: bytes, caller: str) -> bytes:
        return b"\xff"

    async def bad_text(payload: bytes, caller: str) -> bytes:
        return b'{"a": ["\xff", "node"]}'

    for odd in (nonsense, bad_text):
        world.answers["b"]["node.settings"] = odd
        with pytest.raises(SmgError, match="nothing that is understood"):
            await one.settings.difference("b")
    world.meshes["a"].silent.add("b")
    with pytest.raises(SmgError) as caught:
        await one.settings.difference("b")
    assert caught.value.code == "member_silent"


def test_a_setting_that_cannot_be_is_an_error() -> None:
    live: LiveSettings = SharedWorld("a").desks("a").live
    with pytest.raises(LiveError, match="did you mean"):
        live.value("routing.polcy")
