"""`smg-admin config` against the real routes and the real settings: what an operator types and reads."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from support.http.admin_api import RunAdmin
from support.http.http_node import Node, node

Typed: TypeAlias = Callable[..., Awaitable[tuple[int, str, str]]]


def typed(run: RunAdmin, served: Node) -> Typed:
    """Type a command at this node, from a thread as a process of its own would."""

    async def command(*words: str) -> tuple[int, str, str]:
        return await asyncio.to_thread(run, "--url", f"http://127.0.0.1:{served.port}", *words)

    return command


async def test_a_setting_is_set_shown_listed_and_taken_away(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        nothing = await admin("config", "list")
        done = await admin("config", "set", "routing.policy", "round_robin")
        shown = await admin("config", "get", "routing.policy")
        listed = await admin("config", "list")
        gone = await admin("config", "unset", "routing.policy")
        after = await admin("config", "get", "routing.policy", "--json")
    assert nothing[:2] == (
        0,
        "Nothing is set for the cluster: every node follows its own configuration.\n",
    )
    assert done[0] == 0
    assert done[1].startswith("routing.policy is round_robin on every node (version ")
    lines = dict(line.split(maxsplit=1) for line in shown[1].splitlines())
    assert lines["effective"] == "round_robin (from cluster)"
    assert lines["own"] == "cache_aware"
    assert lines["default"] == "cache_aware"
    assert lines["range"].startswith("bucket | cache_aware | consistent_hashing | ")
    assert [line.split()[:2] for line in listed[1].splitlines()] == [
        ["KEY", "VALUE"],
        ["routing.policy", "round_robin"],
    ]
    assert gone[1] == "routing.policy is each node's own again; cache_aware on this one\n"
    assert json.loads(after[1])["is_set"] is False


@pytest.mark.parametrize(
    ("key", "words", "value"),
    [
        ("workers.retry_s", ["2.5"], 2.5),
        ("telemetry.access_log", ["false"], False),
        ("telemetry.log_level", ["debug"], "debug"),
        ("models/m/aliases", ["a", "b"], ["a", "b"]),
        ("models/m/aliases", ["a,b"], ["a", "b"]),
        ("models/m/aliases", ['["a b"]'], ["a b"]),
        ("models/m/aliases", ["one"], ["one"]),
        ("models/org/x.y/policy", ["random"], "random"),
    ],
)
async def test_values_are_typed_as_json_as_text_or_word_by_word(
    run: RunAdmin, key: str, words: list[str], value: object
) -> None:
    async with node() as served:
        code, _, err = await typed(run, served)("config", "set", key, *words)
        said = served.world.nodes["b"].settings.get(key)
    assert (code, err) == (0, "")
    assert said is not None
    assert said.value == value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["set", "routing.polcy", "random"], "did you mean 'routing.policy'?"),
        (["set", "routing.policy", "randm"], "did you mean 'random'?"),
        (["set", "workers.retry_s", "0"], "0 is out of range 0.02..3600"),
        (["set", "workers.retry_s", "soon"], "it must be a number"),
        (["get", "http.listen"], "may be changed while running"),
        (["unset", "routing.policy"], "routing.policy is not set"),
        (["rollback", "nothing"], "no change 'nothing' is remembered"),
        (["diff", "--node", "nobody"], "no member is called 'nobody'"),
    ],
)
async def test_what_cannot_be_is_refused_in_one_clear_line(
    run: RunAdmin, words: list[str], said: str
) -> None:
    async with node() as served:
        code, out, err = await typed(run, served)("config", *words)
    assert (code, out) == (1, "")
    assert said in err
    assert len(err.splitlines()) == 1


async def test_two_words_for_one_value_and_a_bad_version_are_bad_usage(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        two = await admin("config", "set", "workers.retry_s", "1", "2")
        version = await admin("config", "set", "workers.retry_s", "1", "--if-version", "x")
        pair = await admin("config", "validate", "routing.policy")
    assert (two[0], version[0], pair[0]) == (2, 2, 2)
    assert "takes one value" in two[2]
    assert "a version is a number" in version[2]


async def test_a_lost_race_shows_what_is_there_and_writes_nothing(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("config", "set", "workers.retry_s", "2")
        code, out, err = await admin("config", "set", "workers.retry_s", "3", "--if-version", "0")
        gone = await admin("config", "unset", "workers.retry_s", "--if-version", "7")
        forced = await admin("config", "set", "workers.retry_s", "4", "--if-version", "*")
        again = await admin("config", "set", "limits.n_max", "4", "--if-version", "7")
    assert (code, out, gone[0]) == (1, "", 1)
    assert "workers.retry_s was changed by somebody else: it is 2, version " in err
    assert "set on node-a at " in err
    assert forced[0] == 0
    assert "limits.n_max was changed by somebody else: it is not set" in again[2]


async def test_conflicts_and_what_is_not_followed_are_told(run: RunAdmin) -> None:
    async with node() as served:
        admin, world = typed(run, served), served.world
        world.settings.hold()
        world.nodes["node-a"].settings.set("workers.retry_s", 2, version=None)
        world.nodes["b"].settings.set("workers.retry_s", 3, version=None)
        world.settings.heal()
        world.nodes["b"].settings.set("tomorrow.knob", 1, version=None)
        conflict = await admin("config", "get", "workers.retry_s")
        strange = await admin("config", "get", "tomorrow.knob")
        listed = await admin("config", "list")
        settled = await admin("config", "set", "workers.retry_s", "5")
    assert "workers.retry_s has a conflict: " in conflict[2]
    assert "setting it again settles it" in conflict[2]
    assert "tomorrow.knob is not followed by this node" in strange[2]
    assert "in conflict" in listed[1]
    assert "not followed here" in listed[1]
    assert settled[2] == ""


async def test_everything_that_can_be_set_is_listed_with_its_meaning(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        table = await admin("config", "list", "--all")
        parsed = json.loads((await admin("config", "list", "--all", "--json"))[1])
    assert "Seconds a worker has to answer a probe." in table[1]
    assert len(table[1].splitlines()) == len(parsed["settings"]) + 1
    assert parsed["same"] is True


async def test_own_words_and_other_nodes_are_compared(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        same = await admin("config", "diff")
        await admin("config", "set", "workers.retry_s", "9")
        mine = await admin("config", "diff")
        served.world.desks("b", "--policy", "random")
        other = await admin("config", "diff", "--node", "b")
        machine = json.loads((await admin("config", "diff", "--node", "b", "--json"))[1])
    assert same[1] == "There is no difference.\n"
    assert mine[1].splitlines()[0].split() == ["KEY", "NODE-A", "FROM", "CLUSTER", "FROM"]
    assert mine[1].splitlines()[1].split() == ["workers.retry_s", "1", "default", "9", "cluster"]
    assert other[1].splitlines()[1].split() == [
        *["routing.policy", "cache_aware", "default", "random", "node"]
    ]
    assert (machine["with"], len(machine["differences"])) == ("b", 1)


async def test_history_is_told_and_changes_are_undone(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        nothing = await admin("config", "history")
        await admin("config", "set", "workers.retry_s", "2")
        await admin("config", "set", "workers.retry_s", "3")
        table = await admin("config", "history", "--key", "workers.retry_s", "--limit", "5")
        newest, oldest = json.loads((await admin("config", "history", "--json"))[1])
        undone = await admin("config", "rollback", newest["id"])
        to = await admin("config", "rollback", "--to", oldest["id"])
        early = await admin("config", "rollback", newest["id"])
        forced = await admin("config", "rollback", newest["id"], "--force", "--json")
    assert nothing[1] == "No setting was ever changed.\n"
    assert table[1].splitlines()[1].split()[-3:] == ["workers.retry_s", "2", "3"]
    assert undone[1] == "workers.retry_s is 2 again\n"
    assert to[1] == "workers.retry_s is 2 again\n"
    assert "was changed again since" in early[2]
    assert json.loads(forced[1])[0]["value"] == 2.0


async def test_settings_are_validated_from_words_and_from_a_file(
    run: RunAdmin, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"routing.policy": "random", "models/m/aliases": ["a"]}')
    bad.write_text("[1]")
    async with node() as served:
        admin = typed(run, served)
        fine = await admin("config", "validate", "workers.retry_s=2", "--file", str(good))
        wrong = await admin("config", "validate", "workers.retry_s=0", "limits.n_max=3")
        machine = await admin("config", "validate", "--json", "workers.retry_s=0")
        no_object = await admin("config", "validate", "--file", str(bad))
        no_file = await admin("config", "validate", "--file", str(tmp_path / "none.json"))
        assert served.world.nodes["node-a"].settings.all() == []
    assert fine[:2] == (0, "3 settings are fine\n")
    assert (wrong[0], wrong[1]) == (1, "")
    assert wrong[2].startswith("workers.retry_s: 0 is out of range")
    assert (machine[0], json.loads(machine[1])["valid"]) == (1, False)
    assert "must hold a JSON object" in no_object[2]
    assert "cannot read" in no_file[2]


async def test_a_negative_number_is_a_value_and_an_unknown_option_is_none(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        negative = await admin("config", "set", "routing.wait_for_worker_s", "-3")
        unknown = await admin("config", "set", "routing.policy", "random", "--forse")
        assert served.world.nodes["node-a"].settings.all() == []
    assert negative[0] == 1
    assert "-3 is out of range" in negative[2]
    assert unknown[0] == 2
    assert "no such option: --forse" in unknown[2]


async def test_a_cluster_that_does_not_run_the_same_is_told_of(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        served.world.running["b"] = {"settings": "ffffffffffffffff", "effective": "x"}
        _, _, err = await admin("config", "list")
        members = await admin("cluster", "members")
        status = await admin("cluster", "status")
    assert "not all members run the same settings" in err
    assert "ffffffff" in members[1]
    assert "CONFIG" in members[1].splitlines()[0]
    assert "others on b" in status[1]


def test_help_teaches_with_examples(run: RunAdmin) -> None:
    _, said, _ = run("config", "set", "--help")
    assert "smg-admin config set routing.policy round_robin" in said.splitlines()[6]
    _, whole, _ = run("config", "--help")
    for word in ("list", "get", "set", "unset", "diff", "history", "rollback", "validate"):
        assert f"  {word} " in whole
