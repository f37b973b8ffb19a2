"""Three real nodes as the README starts them, and what an operator sees of them and does to them."""

import json
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.http.chat_client import begin, chat, finishes_of, port_of
from support.http.raw_http import connect
from support.processes.mesh_nodes import (
    WAIT_S,
    MeshNode,
    flags_of,
    make_key,
    mesh_node,
    smg_admin,
    until,
)
from support.processes.node import running_node
from support.processes.process import ProcessError, running
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

PROGRAMS = Path(sys.executable).parent
ROOT = Path(__file__).parents[4]
PORTS = ("--mesh", "--http", "--metrics")


@dataclass
class Readme:
    """What the section about three nodes tells people to type."""

    make_key: list[str]
    nodes: list[list[str]]
    look: list[str]


@pytest.fixture(scope="module")
def readme() -> Readme:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Three nodes in a minute")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    admin = [words for words in lines if words[0] == "smg-admin"]
    return Readme(admin[0], [words[1:] for words in lines if words[0] == "smg-node"], admin[1])


def on_free_ports(words: Sequence[str], seed: str) -> list[str]:
    """Return a README's flags without its ports, and with the seed where it is here."""
    kept: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word in PORTS:
            left.pop(0)
        elif word == "--join":
            kept += [word, seed]
            left.pop(0)
        else:
            kept.append(word)
    return kept


@dataclass
class Trio:
    folder: Path
    flags: dict[str, list[str]]
    a: MeshNode
    b: MeshNode
    c: MeshNode


@pytest.fixture(scope="module")
def trio(readme: Readme, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """The three nodes of the README, who know each other. Tests leave them as they found them."""
    folder = tmp_path_factory.mktemp("three")
    made = smg_admin(*readme.make_key[1:], folder=folder)
    assert made.code == 0, made.err
    flags: dict[str, list[str]] = {}
    nodes: list[MeshNode] = []
    with ExitStack() as stack:
        for words in readme.nodes:
            seed = nodes[0].mesh if nodes else ""
            given = [
                str(folder / word) if word == "mesh.key" else word
                for word in on_free_ports(words, seed)
            ]
            node = stack.enter_context(mesh_node(folder, given))
            flags[node.name] = given
            nodes.append(node)
        for node in nodes:
            node.awaits_states(a="alive", b="alive", c="alive")
            node.awaits_ready()
        yield Trio(folder, flags, *nodes)
        for node in nodes:
            assert "Traceback" not in node.process.said()


def test_the_readme_starts_three_nodes_with_one_flag_each_that_matters(readme: Readme) -> None:
    assert [words[words.index("--name") + 1] for words in readme.nodes] == ["a", "b", "c"]
    assert [words.count("--join") for words in readme.nodes] == [0, 1, 1]
    ports = [words[words.index(flag) + 1] for words in readme.nodes[1:] for flag in PORTS]
    assert len(set(ports)) == len(ports)


def test_status_shows_three_alive_at_every_node(trio: Trio, readme: Readme) -> None:
    command = [word for word in readme.look[1:] if word != "--watch"]
    for node in (trio.a, trio.b, trio.c):
        said = node.admin(*command)
        assert said.code == 0, said
        assert "default, encrypted" in said.out
        assert "3 alive" in said.out
        table = said.out.partition("NAME")[2].splitlines()[1:]
        assert [line.split()[:2] for line in table] == [
            ["a", "alive"],
            ["b", "alive"],
            ["c", "alive"],
        ]
        assert [line.endswith("this node") for line in table].count(True) == 1
        assert node.node.status("/readiness") == 200


def test_members_in_json_are_a_list_that_agrees_everywhere(trio: Trio) -> None:
    seen = []
    for node in (trio.a, trio.b, trio.c):
        rows = json.loads(node.admin("cluster", "members", "--json").out)
        seen.append([(row["name"], row["state"], row["address"], row["boot"]) for row in rows])
        assert [row["name"] for row in rows if row["me"]] == [node.name]
    assert seen[0] == seen[1] == seen[2]
    assert [row[2] for row in seen[0]] == [trio.a.mesh, trio.b.mesh, trio.c.mesh]


def test_members_tell_where_their_http_is(trio: Trio) -> None:
    expected = {node.name: node.node.url.removeprefix("http://") for node in (trio.a, trio.b)}
    until(
        lambda: {name: trio.c.rows()[name]["meta"].get("http") for name in expected} == expected,
        "knowing where the others are",
    )


def test_a_drain_is_carried_to_the_node_it_is_for_and_taken_back(trio: Trio) -> None:
    assert trio.b.node.status("/readiness") == 200
    said = trio.a.admin("cluster", "drain", "b")
    assert (said.code, said.out) == (0, "b takes no new work\n")
    assert trio.b.node.status("/readiness") == 503
    assert trio.b.node.status("/v1/models") == 503
    assert trio.b.node.status("/v1/cluster") == 200
    others = (trio.a, trio.c)
    until(lambda: all(node.rows()["b"]["meta"].get("draining") for node in others), "told of it")
    assert "drained" in trio.b.admin("cluster", "status").out
    assert trio.b.process.ended() is None
    assert trio.c.admin("cluster", "undrain", "b").code == 0
    assert trio.b.node.status("/readiness") == 200
    assert trio.b.node.status("/v1/models") == 200
    trio.a.awaits("told of it", lambda: not trio.a.rows()["b"]["meta"].get("draining"))
    missing = trio.a.admin("cluster", "drain", "nobody")
    assert (missing.code, missing.err) == (1, "smg-admin: no member is called 'nobody'\n")


def test_a_key_is_rotated_and_back_without_a_doubt(trio: Trio) -> None:
    def fingerprints(node: MeshNode) -> list[tuple[str, bool]]:
        listed = json.loads(node.admin("cluster", "keyring", "list", "--json").out)
        assert set(listed["members"].values()) == {"ok"}, listed
        return [(key["fingerprint"], key["primary"]) for key in listed["keys"]]

    def rotate(old: str, file: Path) -> str:
        keyring = ("cluster", "keyring")
        assert trio.a.admin(*keyring, "install", file).code == 0
        (new,) = [key for key, _ in fingerprints(trio.b) if key != old]
        in_use = trio.b.admin(*keyring, "remove", old)
        assert (in_use.code, "use another key first" in in_use.err) == (1, True)
        assert trio.b.admin(*keyring, "use", new).code == 0
        assert sorted(fingerprints(trio.c)) == sorted([(old, False), (new, True)])
        assert trio.c.admin(*keyring, "remove", old).code == 0
        for node in (trio.a, trio.b, trio.c):
            assert fingerprints(node) == [(new, True)]
            assert f"{new} (encrypts)" in node.admin("cluster", "status").out
        return new

    ((first, primary),) = fingerprints(trio.a)
    assert primary
    second = rotate(first, make_key(trio.folder, "new.key"))
    assert rotate(second, trio.folder / "mesh.key") == first
    for node in (trio.a, trio.b, trio.c):
        assert set(node.states().values()) == {"alive"}
        others = sorted({"a", "b", "c"} - {node.name})
        assert all("member_suspect" not in node.story(other) for other in others)


def test_a_killed_node_is_suspected_dies_and_comes_back(trio: Trio) -> None:
    given = ["d" if word == "c" else word for word in trio.flags["c"]]
    with mesh_node(trio.folder, given) as doomed:
        for node in (trio.a, trio.b, trio.c, doomed):
            node.awaits_states(a="alive", b="alive", c="alive", d="alive")
        doomed.process.signal(signal.SIGKILL)
        for node in (trio.a, trio.b, trio.c):
            node.awaits_states(d="dead")
    for node in (trio.a, trio.b, trio.c):
        story = node.story("d")
        assert story[0] == "member_up"
        assert story[-1] == "member_down"
    assert any("member_suspect" in node.story("d") for node in (trio.a, trio.b, trio.c))
    table = trio.a.admin("cluster", "members", "--state", "dead").out.splitlines()
    assert table[1].split()[:2] == ["d", "dead"]
    with mesh_node(trio.folder, given) as back:
        assert back.mesh != doomed.mesh
        for node in (trio.a, trio.b, trio.c):
            node.awaits_states(d="alive")
            assert node.rows()["d"]["address"] == back.mesh
        back.process.signal(signal.SIGTERM)
        assert back.process.wait(WAIT_S) == 0
        for node in (trio.a, trio.b, trio.c):
            node.awaits_states(d="left")
            story = node.story("d")
            assert "member_suspect" not in story[story.index("member_down") :]
    forgotten = trio.b.admin("cluster", "forget", "d")
    assert (forgotten.code, forgotten.out) == (0, "d is forgotten by 3 members\n")
    for node in (trio.a, trio.b, trio.c):
        assert "d" not in node.states()
    assert trio.a.admin("cluster", "forget", "b").code == 1


def test_events_are_followed_as_they_happen(trio: Trio) -> None:
    last = trio.a.get("/v1/cluster/events")["events"][-1]["id"]
    follow: list[str | Path] = [
        PROGRAMS / "smg-admin",
        "--url",
        trio.a.node.url,
        "cluster",
        "events",
    ]
    guest_flags = flags_of("e", key=trio.folder / "mesh.key", join=[trio.b.mesh])
    with running(
        [*follow, "--follow", "--after", str(last)], folder=trio.folder / "follow"
    ) as story:
        with mesh_node(trio.folder, guest_flags) as guest:
            story.wait_for(r"member_up +e ", WAIT_S)
            trio.a.awaits_states(e="alive")
            assert guest.admin("cluster", "leave").code == 0
            assert guest.process.wait(WAIT_S) == 0
        story.wait_for(r"member_left +e ", WAIT_S)
        story.signal(signal.SIGINT)
        assert story.wait(WAIT_S) == 0
        assert "Traceback" not in story.said()
        assert not re.search(r"member_suspect +e ", story.said())
    said = trio.a.admin("cluster", "events", "--after", str(last), "--json")
    kinds = [event["kind"] for event in json.loads(said.out) if event["name"] == "e"]
    assert (kinds[0], kinds[-1]) == ("member_up", "member_left")
    for node in (trio.a, trio.b, trio.c):
        node.awaits_states(e="left")
    assert trio.c.admin("cluster", "forget", "e").code == 0


def test_nodes_that_start_apart_are_joined_by_hand(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    with (
        mesh_node(tmp_path, flags_of("a", key=key)) as a,
        mesh_node(tmp_path, flags_of("b", key=key)) as b,
    ):
        assert set(a.states()) == {"a"}
        said = a.admin("cluster", "join", b.mesh)
        assert said.code == 0
        for node in (a, b):
            node.awaits_states(a="alive", b="alive")
        refused = a.admin("cluster", "join", "no such host!")
        assert refused.code == 1
        assert "no such host!" in refused.err


def test_a_node_with_another_key_is_a_stranger_and_can_see_why(tmp_path: Path) -> None:
    ours, theirs = make_key(tmp_path, "ours.key"), make_key(tmp_path, "theirs.key")
    with (
        mesh_node(tmp_path, flags_of("a", key=ours)) as a,
        mesh_node(
            tmp_path,
            [*flags_of("b", key=theirs, join=[a.mesh]), "--mesh.join-grace-s", "3600"],
        ) as b,
    ):
        until(lambda: "key" in b.admin("cluster", "status").out.partition("seeds")[2], "told why")
        status = b.admin("cluster", "status")
        assert status.code == 1
        assert "has not met anybody yet" in status.out
        assert set(a.states()) == {"a"}
        assert set(b.states()) == {"b"}
        assert a.node.status("/readiness") == 200
        assert b.node.status("/readiness") == 503
        until(lambda: refused(a) > 0, "counted")
        assert a.node.metric("smg_node_mesh_members", state="alive") == 1
    with mesh_node(
        tmp_path, [*flags_of("c", key=theirs, join=[a.mesh]), "--mesh.join-grace-s", "0"]
    ) as patient:
        assert patient.node.status("/readiness") == 200


def refused(node: MeshNode) -> float:
    """Return how much of what came over the network changed nothing."""
    kinds = ("smg_node_mesh_refused_total", "smg_node_mesh_streams_refused_total")
    return sum(node.node.metric(kind) for kind in kinds)


async def test_a_node_that_is_told_to_stop_finishes_its_work_says_goodbye_and_is_never_doubted(
    tmp_path: Path,
) -> None:
    key = make_key(tmp_path)
    script = ("--script", "endless", "--itl-ms", "20", "--model", "sim")
    with (
        running_simulated(tmp_path / "engine", *script) as engine,
        mesh_node(tmp_path, flags_of("a", key=key)) as a,
        mesh_node(
            tmp_path,
            [*flags_of("b", key=key, join=[a.mesh]), "--worker", f"grpc://{engine.address}"],
        ) as b,
    ):
        a.awaits_states(b="alive")
        b.awaits("ready", lambda: b.get("/workers")["stats"]["by_status"] == {"ready": 1})
        async with connect(port_of(b.node.url)) as client:
            stream = await begin(client, {**chat("sim"), "max_tokens": 75})
            await stream.until_text()
            b.process.signal(signal.SIGTERM)
            a.awaits("told", lambda: bool(a.rows()["b"]["meta"].get("leaving")))
            assert a.states()["b"] == "alive"
            streamed = await stream.to_end()
        assert streamed.done
        assert finishes_of(streamed) == ["length"]
        assert b.process.wait(WAIT_S) == 0
        a.awaits_states(b="left")
        assert "member_suspect" not in a.story("b")
        assert "member_down" not in a.story("b")


def test_a_second_machine_of_one_name_ends_with_the_remedy_and_the_first_serves_on(
    tmp_path: Path,
) -> None:
    key = make_key(tmp_path)
    with mesh_node(tmp_path / "1", flags_of("web", key=key)) as first:
        second = flags_of("web", key=key, join=[first.mesh])
        for _ in range(2):
            with mesh_node(tmp_path / "2", second) as refused:
                assert refused.process.wait(WAIT_S) == 3
            said = refused.process.said()
            assert f"the name 'web' is taken: a node that lives at {first.mesh} has it" in said
            assert "(--name)" in said
        assert first.process.ended() is None
        assert first.rows()["web"]["address"] == first.mesh
        third = flags_of("web2", key=key, join=[first.mesh])
        with mesh_node(tmp_path / "2", third):
            first.awaits_states(web="alive", web2="alive")


def test_a_node_that_was_killed_returns_at_once_at_another_address_by_its_data_dir(
    tmp_path: Path,
) -> None:
    key = make_key(tmp_path)
    with mesh_node(tmp_path / "1", flags_of("a", key=key)) as a:
        flags = flags_of("web", key=key, join=[a.mesh])
        with mesh_node(tmp_path / "2", flags) as before:
            a.awaits_states(web="alive")
            before.process.signal(signal.SIGKILL)
            before.process.wait(WAIT_S)
        with mesh_node(tmp_path / "2", flags) as after:
            a.awaits("seeing it", lambda: a.rows()["web"]["address"] == after.mesh)
            a.awaits_states(web="alive")
            assert after.process.ended() is None


def test_a_port_that_is_taken_is_one_line_that_names_the_knob(tmp_path: Path) -> None:
    with mesh_node(tmp_path / "1", flags_of("a", key=None)) as a:
        assert "PLAIN TEXT" in a.process.said()
        with (
            pytest.raises(ProcessError, match=r"ended with status 1") as caught,
            mesh_node(tmp_path / "2", flags_of("b", key=None), listen=a.mesh),
        ):
            raise AssertionError("it started")
        assert re.search(rf"smg-node: .*{re.escape(a.mesh)}.*--mesh", str(caught.value))


def test_a_node_alone_opens_no_mesh_says_what_to_do_and_leaves_when_told(tmp_path: Path) -> None:
    with running_node(tmp_path) as alone:
        assert "closed: this node runs alone" in alone.process.said()
        status = smg_admin("--url", alone.url, "cluster", "status")
        assert status.code == 0
        assert "alone: no mesh is open" in status.out
        joining = smg_admin("--url", alone.url, "cluster", "join", "127.0.0.1")
        assert joining.code == 1
        assert "--mesh-key FILE" in joining.err
        assert smg_admin("--url", alone.url, "cluster", "leave").code == 0
        assert alone.process.wait(WAIT_S) == 0
