"""What three real nodes share, while one of them is killed, restarted, robbed of its disk, and told to leave.

What is held is expected exactly. Times are reported, and expected with slack: these nodes share two cores with
other tests. Every test leaves three living nodes that agree, and the same workers.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.mesh_nodes import MeshNode, until
from support.mesh_trio import Trio, running_trio
from support.node_api import (
    ROUTED,
    asked_all_the_time,
    call,
    change_setting,
    chat,
    ready_at,
    setting,
    workers,
)
from support.simulated import Simulated, running_simulated

pytestmark = pytest.mark.integration

SLACK_S = 3.0
MODEL = "sim"
SECRET = "sk-planted-0123456789abcdefghijk"
WRONG = "sk-mistaken-0123456789abcdefghij"
NOBODY = "grpc://127.0.0.1:9"
ENGINES = 3


@dataclass
class Scene:
    """Three nodes, and engines that let nobody in without the key; all but the last are registered."""

    trio: Trio
    engines: Simulated
    secret: Path

    @property
    def urls(self) -> list[str]:
        return [f"grpc://{address}" for address in self.engines.addresses]

    @property
    def registered(self) -> list[str]:
        return self.urls[:-1]

    @property
    def spare(self) -> str:
        return self.urls[-1]

    def as_found(self) -> None:
        self.trio.all_agree()
        self.trio.on_all(lambda node: ready_at(node, self.registered), "as they were found")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("shared")
    secret = folder / "engine.key"
    secret.write_text(SECRET + "\n")
    flags = ("--model", MODEL, "--script", "endless", "--itl-ms", "2", "--slots", "1024")
    door = ("--api-key", SECRET, "--tell-calls")
    with (
        running_simulated(folder / "engines", *flags, *door, workers=ENGINES) as engines,
        running_trio(folder) as trio,
    ):
        scene = Scene(trio, engines, secret)
        for url in scene.registered:
            added = trio["a"].admin("workers", "add", url, "--api-key-file", secret)
            assert added.code == 0, added
        scene.as_found()
        yield scene


@pytest.fixture
def trio(scene: Scene) -> Iterator[Trio]:
    yield scene.trio
    scene.as_found()


Told = Callable[[Mapping[str, float]], None]


@pytest.fixture
def told(record_property: Callable[[str, object], None]) -> Told:
    """Write figures into the report of a test run."""

    def tell(figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            record_property(name, round(value, 3))

    return tell


def add(node: MeshNode, url: str, **more: Any) -> str:
    answer = call(node, "POST", "/workers", {"url": url, **more})
    assert answer.status == 202, answer
    worker: str = answer.body["worker_id"]
    return worker


def seconds_until_all(nodes: Sequence[MeshNode], url: str, *, there: bool) -> float:
    since_s = time.monotonic()
    for node in nodes:
        until(lambda node=node: (url in workers(node)) is there, "known")  # type: ignore[misc]  # bound now
    return time.monotonic() - since_s


# ── Workers ──────────────────────────────────────────────────────────────────


def test_a_worker_added_on_one_node_is_there_and_usable_on_all_and_goes_as_fast(
    scene: Scene, trio: Trio, told: Told
) -> None:
    nodes = trio.living
    since_s = time.monotonic()
    worker = add(trio["a"], scene.spare, api_key=SECRET)
    seen_s = seconds_until_all(nodes, scene.spare, there=True)
    trio.on_all(lambda node: ready_at(node, scene.urls), "ready")
    usable_s = time.monotonic() - since_s
    assert change_setting(trio["b"], "routing.policy", "round_robin").status == 200
    trio.on_all(lambda node: setting(node, "routing.policy")["effective"] == "round_robin", "set")
    for node in nodes:
        answered = {chat(node, MODEL).headers[ROUTED] for _ in range(ENGINES * 2)}
        assert worker in answered
        assert len(answered) == ENGINES
    assert call(trio["c"], "DELETE", f"/workers/{worker}").status == 200
    gone_s = seconds_until_all(nodes, scene.spare, there=False)
    told({"seen_s": seen_s, "usable_s": usable_s, "gone_s": gone_s})
    assert seen_s <= 0.5 + SLACK_S
    assert gone_s <= 0.5 + SLACK_S
    for node in nodes:
        assert worker not in {chat(node, MODEL).headers[ROUTED] for _ in range(ENGINES * 2)}
    assert change_setting(trio["b"], "routing.policy", None).status == 200


def test_an_addition_after_a_removal_elsewhere_counts_though_the_removal_was_not_heard_of(
    scene: Scene, trio: Trio
) -> None:
    for _ in range(5):
        worker = add(trio["a"], scene.spare, api_key=SECRET)
        seconds_until_all(trio.living, scene.spare, there=True)
        assert call(trio["a"], "DELETE", f"/workers/{worker}").status == 200
        add(trio["b"], scene.spare, api_key=SECRET)
        trio.all_agree()
        assert all(scene.spare in workers(node) for node in trio.living)
        assert call(trio["c"], "DELETE", f"/workers/{worker}").status == 200
        seconds_until_all(trio.living, scene.spare, there=False)


def test_while_who_registered_them_is_killed_the_others_miss_no_worker_and_fail_no_request(
    scene: Scene, trio: Trio, told: Told
) -> None:
    others = [trio["b"], trio["c"]]
    with asked_all_the_time(others, MODEL, scene.registered) as went:
        time.sleep(0.5)
        before = {name: seen.answers for name, seen in went.items()}
        trio.kill("a")
        time.sleep(1.0)
    for name, seen in went.items():
        assert (seen.failed, seen.missed) == ([], [])
        assert seen.answers > before[name] > 0
    for row in trio["b"].get("/v1/cluster/workers")["workers"]:
        assert (row["registered_by"], sorted(row["probers"])) == ("a", ["b", "c"])
    since_s = time.monotonic()
    back = trio.start("a")
    answers_s = time.monotonic() - since_s
    since_s = time.monotonic()
    trio.all_agree()
    told({"answers_s": answers_s, "agreed_s": time.monotonic() - since_s})
    assert time.monotonic() - since_s <= 2.0 + SLACK_S
    assert workers(back).keys() == set(scene.registered)


def test_who_lost_its_disk_learns_everything_from_the_others(scene: Scene, trio: Trio) -> None:
    before = call(trio["b"], "GET", "/v1/cluster/audit").body["rows"]
    assert before
    trio.kill("a")
    trio.lose_disk("a")
    back = trio.start("a")
    trio.all_agree()
    assert workers(back).keys() == set(scene.registered)
    assert call(back, "GET", "/v1/cluster/audit").body["rows"] == before
    assert "state_joined" in back.story("a")
    back.awaits("its workers", lambda: ready_at(back, scene.registered))
    assert chat(back, MODEL).status == 200


def test_what_is_removed_while_who_registered_it_is_dead_stays_away(
    scene: Scene, trio: Trio
) -> None:
    worker = add(trio["a"], scene.spare)
    seconds_until_all(trio.living, scene.spare, there=True)
    saved(trio["a"])
    trio.kill("a", others_know=False)
    removed = trio["b"].admin("workers", "remove", worker)
    assert removed.code == 0, removed
    trio.start("a")
    trio.all_agree()
    for _ in range(10):
        assert all(scene.spare not in workers(node) for node in trio.living)
        time.sleep(0.1)


def test_a_worker_in_a_nodes_own_flags_stays_away_after_its_removal_until_it_is_added_again(
    trio: Trio,
) -> None:
    trio.kill("a")
    own = trio.start("a", "--worker", NOBODY)
    seconds_until_all(trio.living, NOBODY, there=True)
    row = workers(trio["c"])[NOBODY]
    assert row["sources"] == ["static@a"]
    trio.kill("a", others_know=False)
    assert call(trio["b"], "DELETE", f"/workers/{row['id']}").status == 200
    own = trio.start("a", "--worker", NOBODY)
    own.process.wait_for(r"removed by an operator and stay away.*127\.0\.0\.1:9", 30.0)
    trio.all_agree()
    for _ in range(10):
        assert all(NOBODY not in workers(node) for node in trio.living)
        time.sleep(0.1)
    add(trio["c"], NOBODY)
    seconds_until_all(trio.living, NOBODY, there=True)
    assert call(own, "DELETE", f"/workers/{row['id']}").status == 200
    seconds_until_all(trio.living, NOBODY, there=False)
    trio.kill("a")
    trio.start("a")


def test_a_listing_that_a_node_no_longer_has_is_taken_back_at_its_next_start(trio: Trio) -> None:
    trio.kill("a")
    trio.start("a", "--worker", NOBODY)
    seconds_until_all(trio.living, NOBODY, there=True)
    trio.kill("a")
    assert all(NOBODY in workers(node) for node in trio.living)
    trio.start("a")
    seconds_until_all(trio.living, NOBODY, there=False)


def test_workers_stay_when_who_registered_them_leaves(scene: Scene, trio: Trio) -> None:
    others = [trio["b"], trio["c"]]
    with asked_all_the_time(others, MODEL, scene.registered) as went:
        assert trio.stop("a") == 0
        time.sleep(1.0)
    for seen in went.values():
        assert (seen.failed, seen.missed) == ([], [])
        assert seen.answers > 0
    trio.start("a")


def test_a_drained_worker_gets_nothing_from_any_node_also_after_a_restart(
    scene: Scene, trio: Trio
) -> None:
    drained = workers(trio["a"])[scene.registered[0]]["id"]
    assert call(trio["b"], "POST", f"/workers/{drained}/drain", {}).status == 200

    def is_drained(node: MeshNode) -> bool:
        return bool(workers(node)[scene.registered[0]]["status"] == "draining")

    trio.on_all(is_drained, "drained")
    trio.kill("a")
    trio.start("a")
    trio.on_all(is_drained, "drained")
    trio["a"].awaits("the other worker", lambda: chat(trio["a"], MODEL).status == 200)
    for node in trio.living:
        assert drained not in {chat(node, MODEL).headers[ROUTED] for _ in range(10)}
    assert call(trio["c"], "POST", f"/workers/{drained}/undrain", {}).status == 200


# ── Keys of workers ──────────────────────────────────────────────────────────


def test_the_key_of_a_worker_is_sent_by_every_node_and_is_nowhere_to_be_read(
    scene: Scene, trio: Trio
) -> None:
    for node in trio.living:
        assert change_setting(node, "telemetry.log_level", "debug").status == 200
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
    before = {node.name: len(node.process.said()) for node in trio.living}
    for node in trio.living:
        assert call(node, "POST", "/workers", {"url": NOBODY}).status == 202
    add_id = workers(trio["a"])[NOBODY]["id"]
    assert call(trio["a"], "DELETE", f"/workers/{add_id}").status == 200
    assert before == {node.name: len(node.process.said()) for node in trio.living}
    assert change_setting(trio["c"], "telemetry.log_level", None).status == 200


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


def saved(node: MeshNode) -> None:
    """Return when all that a node holds is on its disk."""
    node.awaits("on its disk", lambda: node.node.metric("smg_node_state_unsaved") == 0)
