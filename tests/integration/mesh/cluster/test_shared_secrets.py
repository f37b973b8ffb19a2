"""Secrets and settings of three real nodes: what is said on one is done by all, and what is secret is shown by none.

Every test leaves three living nodes that agree, and the same workers.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, make_key, until
from support.processes.mesh_trio import Trio
from support.processes.node_api import (
    ROUTED,
    call,
    change_setting,
    chat,
    ready_at,
    setting,
    workers,
)
from support.processes.shared_state_nodes import MODEL, NOBODY, SECRET, Scene, running_scene, saved

pytestmark = pytest.mark.integration

WRONG = "sk-mistaken-0123456789abcdefghij"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with running_scene(tmp_path_factory.mktemp("shared")) as scene:
        yield scene


@pytest.fixture
def trio(scene: Scene) -> Iterator[Trio]:
    yield scene.trio
    scene.as_found()


# ── Keys of workers ──────────────────────────────────────────────────────────


def test_the_key_of_a_worker_is_sent_by_every_node_and_is_nowhere_to_be_read(
    scene: Scene, trio: Trio
) -> None:
    # One write: a second one, over a version that the first replaces meanwhile, would be refused.
    assert change_setting(trio["a"], "telemetry.log_level", "debug").status == 200
    trio.on_all(
        lambda node: setting(node, "telemetry.log_level")["effective"] == "debug",
        "debug everywhere",
    )
    for node in trio.living:
        for _ in range(6):
            assert chat(node, MODEL).status == 200
    # An engine that refuses its key says so, and both keys stay unsaid.
    url = scene.registered[0]
    worker = workers(trio["a"])[url]["id"]
    changed = call(trio["a"], "PATCH", f"/workers/{worker}", {"api_key": WRONG})
    assert changed.status < 300, changed
    trio.on_all(lambda node: workers(node)[url]["status"] != "ready", "turned away")
    shown = [str(node.get("/workers")) for node in trio.living]
    changed = call(trio["b"], "PATCH", f"/workers/{worker}", {"api_key": SECRET})
    assert changed.status < 300, changed
    trio.on_all(lambda node: ready_at(node, scene.registered), "let in again")
    paths = (
        "/workers",
        "/v1/cluster/workers",
        "/v1/cluster/audit?limit=1000",
        "/v1/cluster/settings?all=true",
    )
    for node in trio.living:
        shown += [str(call(node, "GET", path).body) for path in paths]
        shown.append(node.admin("workers", "show", worker).out)
        saved(node)
    shown.append(trio.logs())
    files = [path for path in trio.folder.glob("*/data/**/*") if path.is_file()]
    assert any(path.name.startswith("workers-") for path in files)
    shown += [path.read_bytes().decode("latin-1") for path in files]
    assert any("api_key" in text for text in shown)
    for secret in (SECRET, WRONG):
        assert not any(secret in text for text in shown)
    assert change_setting(trio["c"], "telemetry.log_level", None).status == 200


def test_when_the_mesh_gets_another_key_a_new_node_that_knows_only_it_can_use_all_workers(
    scene: Scene, trio: Trio
) -> None:
    (old,) = trio["a"].get("/v1/cluster/keyring")["keys"]
    new = make_key(trio.folder, "new.key")
    keyring = ("cluster", "keyring")
    assert trio["a"].admin(*keyring, "install", new).code == 0
    (fresh,) = [
        key["fingerprint"]
        for key in trio["b"].get("/v1/cluster/keyring")["keys"]
        if key["fingerprint"] != old["fingerprint"]
    ]
    assert trio["b"].admin(*keyring, "use", fresh).code == 0
    # Not while something is sealed with it alone.
    until(lambda: trio["c"].admin(*keyring, "remove", old["fingerprint"]).code == 0, "removed")
    trio.kill("c")
    trio.lose_disk("c")
    trio.key = new
    late = trio.start("c")
    late.awaits("let in by its engines", lambda: ready_at(late, scene.registered))
    assert chat(late, MODEL).status == 200


# ── Settings ─────────────────────────────────────────────────────────────────


def test_a_name_given_to_a_model_works_at_every_node_and_then_no_more(trio: Trio) -> None:
    key = f"models/{MODEL}/aliases"
    for node in trio.living:
        assert chat(node, "house-model").status == 404
    assert change_setting(trio["a"], key, ["house-model"]).status == 200
    trio.on_all(lambda node: chat(node, "house-model").status == 200, "known by that name")
    assert change_setting(trio["b"], key, None).status == 200
    trio.on_all(lambda node: chat(node, "house-model").status == 404, "unknown again")


def test_the_rule_that_chooses_workers_changes_at_every_node(scene: Scene, trio: Trio) -> None:
    for policy, at_most in (("round_robin", 2), ("consistent_hashing", 1)):
        assert change_setting(trio["c"], "routing.policy", policy).status == 200
        trio.on_all(lambda node, it=policy: setting(node, "routing.policy")["effective"] == it, it_is(policy))  # type: ignore[misc]  # bound now  # fmt: skip
        for node in trio.living:
            answered = Counter(chat(node, MODEL, key="one").headers[ROUTED] for _ in range(10))
            assert len(answered) == at_most
            if policy == "round_robin":
                assert sorted(answered.values()) == [5, 5]
    trio.all_agree()
    assert change_setting(trio["a"], "routing.policy", None).status == 200


def it_is(policy: str) -> str:
    return f"choosing by {policy}"


def test_the_log_speaks_at_the_level_the_cluster_says(trio: Trio) -> None:
    def debugs(node: MeshNode) -> int:
        return len(re.findall(r'"level":"debug"| DEBUG ', node.process.said()))

    before = {node.name: debugs(node) for node in trio.living}
    assert change_setting(trio["a"], "telemetry.log_level", "debug").status == 200
    for node in trio.living:

        def speaks(node: MeshNode = node) -> bool:
            chat(node, MODEL)
            return debugs(node) > before[node.name]

        node.awaits("telling more", speaks)
    assert change_setting(trio["b"], "telemetry.log_level", "error").status == 200
    trio.on_all(lambda node: setting(node, "telemetry.log_level")["effective"] == "error", "quiet")
    before = all_written(trio)
    for node in trio.living:
        assert call(node, "POST", "/workers", {"url": NOBODY}).status == 202
    add_id = workers(trio["a"])[NOBODY]["id"]
    assert call(trio["a"], "DELETE", f"/workers/{add_id}").status == 200
    assert all_written(trio) == before
    assert change_setting(trio["c"], "telemetry.log_level", None).status == 200


def all_written(trio: Trio) -> dict[str, int]:
    """Return how much each node has written, once all lines that were on their way are there."""
    while True:
        written = {node.name: len(node.process.said()) for node in trio.living}
        time.sleep(0.5)
        if written == {node.name: len(node.process.said()) for node in trio.living}:
            return written


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("routing.policy", "roundrobin", "did you mean 'round_robin'"),
        ("routing.wait_for_worker_s", -1, "routing.wait_for_worker_s"),
        ("routing.wait_for_worker_s", "soon", "must be a number"),
        ("telemetry.log_level", ["debug"], "telemetry.log_level"),
        (f"models/{MODEL}/aliases", [""], "aliases"),
        (f"models/{MODEL}/nonsense", 1, "nonsense"),
        ("name", "z", "no setting that may be changed"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason_and_changes_nothing(
    trio: Trio, key: str, value: Any, says: str
) -> None:
    before = trio["b"].get("/v1/cluster/settings")["settings"]
    answer = call(trio["b"], "PUT", f"/v1/cluster/settings/{key}", {"value": value}, {"if-match": '"0"'})  # fmt: skip
    assert answer.status in (400, 404)
    assert says in answer.error["message"]
    for node in trio.living:
        assert node.get("/v1/cluster/settings")["settings"] == before


def test_who_overwrites_what_it_has_not_seen_is_told(trio: Trio) -> None:
    key = "limits.n_max"
    seen = setting(trio["a"], key)["version"]
    assert change_setting(trio["a"], key, 2).status == 200
    path, version = f"/v1/cluster/settings/{key}", {"if-match": f'"{seen}"'}
    lost = call(trio["a"], "PUT", path, {"value": 3}, version)
    assert (lost.status, setting(trio["a"], key)["effective"]) == (409, 2)
    missing = call(trio["a"], "PUT", path, {"value": 3})
    assert missing.status in (400, 428)
    assert change_setting(trio["a"], key, None).status == 200
