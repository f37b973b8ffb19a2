from typing import Any

import pytest

from support.http.http_node import Node, node
from support.http.raw_http import Response, ask

SETTINGS = "/v1/cluster/settings"
POLICY = f"{SETTINGS}/routing.policy"


def match(version: object) -> dict[str, str]:
    return {"if-match": str(version), "content-type": "application/json"}


async def put(served: Node, key: str, value: Any, version: object = "*") -> Response:
    return await ask(
        served.port, "PUT", f"{SETTINGS}/{key}", {"value": value}, headers=match(version)
    )


async def test_a_setting_is_set_for_the_whole_cluster_and_shown_with_its_version() -> None:
    async with node() as served:
        before = (await ask(served.port, "GET", POLICY)).json()
        answer = await put(served, "routing.policy", "round_robin", 0)
        after = (await ask(served.port, "GET", POLICY)).json()
        listed = (await ask(served.port, "GET", SETTINGS)).json()
        other = served.world.nodes["b"].settings.get("routing.policy")
    assert (before["is_set"], before["version"], before["source"]) == (False, "0", "default")
    assert before["about"]["default"] == "cache_aware"
    assert "round_robin" in before["about"]["range"]
    assert answer.status == 200
    assert answer.json() == after
    assert (after["value"], after["effective"], after["own"]) == (
        "round_robin",
        "round_robin",
        "cache_aware",
    )
    assert (after["source"], after["owner"], after["conflicts"]) == ("cluster", "node-a", [])
    assert answer.headers["etag"] == f'"{after["version"]}"'
    assert [row["key"] for row in listed["settings"]] == ["routing.policy"]
    assert other is not None
    assert other.value == "round_robin"


async def test_all_that_could_be_set_is_listed_with_what_it_may_be() -> None:
    async with node() as served:
        listed = (await ask(served.port, "GET", f"{SETTINGS}?all=true")).json()["settings"]
    by_key = {row["key"]: row for row in listed}
    assert list(by_key) == sorted(by_key)
    assert len(by_key) > 30
    assert by_key["workers.retry_s"]["about"]["range"] == "0.02..3600"
    assert by_key["telemetry.access_log"]["effective"] is True
    assert all(row["about"]["help"] for row in listed)


async def test_a_client_must_say_which_version_it_has_seen() -> None:
    async with node() as served:
        body = {"value": "random"}
        refused = await ask(served.port, "PUT", POLICY, body)
        removal = await ask(served.port, "DELETE", POLICY)
        assert served.world.nodes["node-a"].settings.get("routing.policy") is None
    for answer in (refused, removal):
        assert (answer.status, answer.error()["code"]) == (428, "precondition_required")
        assert answer.error()["param"] == "if-match"


@pytest.mark.parametrize("version", ["abc", '"1', '"', "-1", "1.5", 'W/"1"', "9" * 40])
async def test_what_is_no_version_is_refused(version: str) -> None:
    async with node() as served:
        answer = await put(served, "routing.policy", "random", version)
    assert (answer.status, answer.error()["param"]) == (400, "if-match")


async def test_a_race_is_lost_with_the_current_value_in_the_answer() -> None:
    async with node() as served:
        first = (await put(served, "routing.policy", "round_robin", 0)).json()
        lost = await put(served, "routing.policy", "random", 0)
        gone = await ask(served.port, "DELETE", POLICY, headers=match('"7"'))
        won = await put(served, "routing.policy", "random", f'"{first["version"]}"')
    for answer in (lost, gone):
        assert (answer.status, answer.error()["code"]) == (409, "stale")
        assert answer.json()["current"]["value"] == "round_robin"
        assert answer.json()["current"]["version"] == first["version"]
        assert answer.headers["etag"] == f'"{first["version"]}"'
        assert answer.headers["x-should-retry"] == "false"
    assert won.status == 200
    assert int(won.json()["version"]) > int(first["version"])


async def test_whatever_is_there_may_be_written_over_on_purpose() -> None:
    async with node() as served:
        await put(served, "routing.policy", "round_robin", "*")
        again = await put(served, "routing.policy", "random", "*")
    assert again.json()["value"] == "random"


async def test_removing_a_setting_goes_back_to_each_nodes_own_word() -> None:
    async with node() as served:
        version = (await put(served, "workers.retry_s", 9)).json()["version"]
        gone = await ask(
            served.port, "DELETE", f"{SETTINGS}/workers.retry_s", headers=match(f'"{version}"')
        )
        again = await ask(served.port, "DELETE", f"{SETTINGS}/workers.retry_s", headers=match("*"))
    view = gone.json()
    assert (view["is_set"], view["value"], view["effective"], view["version"]) == (
        False,
        None,
        1,
        "0",
    )
    assert (again.status, again.error()["code"]) == (404, "setting_not_set")


@pytest.mark.parametrize(
    ("key", "value", "param", "said"),
    [
        ("routing.policy", "roundrobin", "value", "did you mean 'round_robin'?"),
        ("routing.policy", 5, "value", "it must be a word"),
        ("workers.retry_s", 0, "value", "0 is out of range 0.02..3600"),
        ("workers.retry_s", "fast", "value", "it must be a number"),
        ("workers.down_after", 2.5, "value", "whole number"),
        ("telemetry.log_level", "inf", "value", "did you mean 'info'?"),
        ("telemetry.access_log", "no", "value", "true or false"),
        ("models/m/aliases", ["a", " b"], "value[1]", "is not a model name"),
        ("models/m/aliases", "a", "value", "a list of texts"),
        ("models/m/policy", "sticky!", "value", "it must be one of"),
    ],
)
async def test_a_bad_value_is_refused_at_the_door_with_a_reason(
    key: str, value: Any, param: str, said: str
) -> None:
    async with node() as served:
        answer = await put(served, key, value, 0)
        assert served.world.nodes["node-a"].settings.all() == []
        assert served.world.rows == []
    assert (answer.status, answer.error()["param"]) == (400, param)
    assert answer.error()["code"] == "invalid_setting"
    assert said in answer.error()["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [({}, "value"), ({"value": None}, "value"), ({"value": 1, "ttl": 3}, "ttl")],
)
async def test_a_body_must_be_a_value_and_nothing_else(body: dict[str, Any], param: str) -> None:
    async with node() as served:
        answer = await ask(served.port, "PUT", POLICY, body, headers=match("0"))
    assert (answer.status, answer.error()["param"]) == (400, param)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("routing.polcy", "did you mean 'routing.policy'?"),
        ("policy", "did you mean 'routing.policy'?"),
        ("http.listen", "no setting that may be changed while running"),
        ("models/m/alias", "did you mean 'aliases'?"),
    ],
)
async def test_an_unknown_key_is_not_found_and_the_nearest_one_is_named(
    key: str, said: str
) -> None:
    async with node() as served:
        seen = await ask(served.port, "GET", f"{SETTINGS}/{key}")
        written = await put(served, key, 1)
    for answer in (seen, written):
        assert (answer.status, answer.error()["code"]) == (404, "setting_not_found")
        assert said in answer.error()["message"]


async def test_settings_are_looked_at_without_being_set() -> None:
    asked = {"settings": {"routing.policy": "random", "workers.retry_s": 0, "nonsense": 1}}
    async with node() as served:
        port = served.port
        answer = (await ask(port, "POST", f"{SETTINGS}/validate", asked)).json()
        fine = (
            await ask(port, "POST", f"{SETTINGS}/validate", {"settings": {"workers.retry_s": 2}})
        ).json()
        empty = await ask(port, "POST", f"{SETTINGS}/validate", {"settings": {}})
        assert served.world.nodes["node-a"].settings.all() == []
    assert answer["valid"] is False
    assert [problem["key"] for problem in answer["problems"]] == ["workers.retry_s", "nonsense"]
    assert answer["problems"][0]["where"] == 'settings["workers.retry_s"]'
    assert fine == {"valid": True, "problems": []}
    assert (empty.status, empty.error()["param"]) == (400, "settings")


async def test_the_difference_between_own_words_and_the_clusters_is_shown() -> None:
    async with node() as served:
        await put(served, "workers.retry_s", 9)
        await put(served, "limits.n_max", 16)
        answer = (await ask(served.port, "GET", f"{SETTINGS}/diff")).json()
        stranger = await ask(served.port, "GET", f"{SETTINGS}/diff?node=nobody")
    assert (answer["node"], answer["with"]) == ("node-a", "cluster")
    assert answer["differences"] == [
        {
            "key": "workers.retry_s",
            "left": 1,
            "left_source": "default",
            "right": 9,
            "right_source": "cluster",
        }
    ]
    assert (stranger.status, stranger.error()["code"]) == (404, "member_not_found")


async def test_history_tells_every_change_newest_first() -> None:
    async with node() as served:
        port = served.port
        await put(served, "workers.retry_s", 2)
        await put(served, "routing.policy", "random")
        await put(served, "workers.retry_s", 3)
        await ask(port, "DELETE", f"{SETTINGS}/workers.retry_s", headers=match("*"))
        await ask(port, "POST", "/workers/w-1/drain")
        changes = (await ask(port, "GET", f"{SETTINGS}/history")).json()["changes"]
        of_one = (await ask(port, "GET", f"{SETTINGS}/history?key=routing.policy&limit=5")).json()[
            "changes"
        ]
        older = (await ask(port, "GET", f"{SETTINGS}/history?before={changes[1]['id']}")).json()
        wrong = await ask(port, "GET", f"{SETTINGS}/history?limit=0")
    assert [(one["action"], one["key"], one["before"], one["after"]) for one in changes] == [
        ("setting.unset", "workers.retry_s", 3, None),
        ("setting.set", "workers.retry_s", 2, 3),
        ("setting.set", "routing.policy", None, "random"),
        ("setting.set", "workers.retry_s", None, 2),
    ]
    assert [one["key"] for one in of_one] == ["routing.policy"]
    assert [one["id"] for one in older["changes"]] == [one["id"] for one in changes[2:]]
    assert (wrong.status, wrong.error()["param"]) == (400, "limit")


async def rollback(served: Node, **body: Any) -> Response:
    return await ask(served.port, "POST", f"{SETTINGS}/rollback", body)


async def test_one_change_is_undone_unless_the_setting_was_changed_since() -> None:
    async with node() as served:
        await put(served, "workers.retry_s", 2)
        await put(served, "workers.retry_s", 3)
        first, second = (row.id for row in served.world.rows)
        early = await rollback(served, change=first)
        done = await rollback(served, change=second)
        back = await rollback(served, change=first)
        last = served.world.rows[-1]
        settings = served.world.nodes["node-a"].settings
        assert settings.get("workers.retry_s") is None
        forced = await rollback(served, change=second, force=True)
    assert (early.status, early.error()["code"]) == (409, "changed_since")
    assert done.json()["restored"][0]["value"] == 2
    assert back.json()["restored"][0]["is_set"] is False
    assert (last.action, last.before, last.after) == ("setting.restore", {"value": 2}, None)
    assert forced.json()["restored"][0]["value"] == 2


async def test_all_changes_after_one_are_undone_at_once() -> None:
    async with node() as served:
        await put(served, "workers.retry_s", 2)
        mark = served.world.rows[-1].id
        await put(served, "workers.retry_s", 3)
        await put(served, "workers.retry_s", 4)
        await put(served, "routing.policy", "random")
        answer = await rollback(served, to=mark)
        again = await rollback(served, to=served.world.rows[-1].id)
        settings = served.world.nodes["node-a"].settings
        assert [(one.key, one.value) for one in settings.all()] == [("workers.retry_s", 2)]
    assert [view["key"] for view in answer.json()["restored"]] == [
        "routing.policy",
        "workers.retry_s",
    ]
    assert again.json() == {"restored": []}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid_value"),
        ({"change": "1", "to": "2"}, 400, "invalid_value"),
        ({"change": 5}, 400, "invalid_value"),
        ({"change": "none"}, 404, "change_not_found"),
        ({"to": "none"}, 404, "change_not_found"),
        ({"change": "000001-node-a"}, 404, "change_not_found"),
        ({"change": "x", "forced": True}, 400, "unknown_parameter"),
    ],
)
async def test_a_rollback_to_nowhere_is_refused(
    body: dict[str, Any], status: int, code: str
) -> None:
    async with node() as served:
        # The one row there is, is about a worker.
        await ask(served.port, "POST", "/workers/w-1/drain")
        answer = await rollback(served, **body)
    assert (answer.status, answer.error()["code"]) == (status, code)


async def test_what_was_too_long_to_be_kept_or_is_no_longer_valid_is_not_restored() -> None:
    async with node() as served:
        await put(served, "workers.retry_s", 2)
        await put(served, "workers.retry_s", 3)
        audit = served.world.nodes["node-a"].audit
        audit.change("000002-node-a", before={"cut": {"bytes": 9999, "blake2b": "00ff"}})
        cut = await rollback(served, change="000002-node-a")
        audit.change("000002-node-a", before={"value": -5})
        bad = await rollback(served, change="000002-node-a")
        assert [one.value for one in served.world.nodes["node-a"].settings.all()] == [3]
    assert (cut.status, cut.error()["code"]) == (409, "change_not_kept")
    assert (bad.status, bad.error()["code"]) == (400, "invalid_setting")


async def test_a_conflict_shows_both_values_until_somebody_writes_again() -> None:
    async with node() as served:
        world = served.world.settings
        world.hold()
        await put(served, "workers.retry_s", 2)
        served.world.nodes["b"].settings.set("workers.retry_s", 3, version=None)
        world.heal()
        both = (await ask(served.port, "GET", f"{SETTINGS}/workers.retry_s")).json()
        await put(served, "workers.retry_s", 4)
        settled = (await ask(served.port, "GET", f"{SETTINGS}/workers.retry_s")).json()
    (rival,) = both["conflicts"]
    assert {both["value"], rival["value"]} == {2, 3}
    assert {both["owner"], rival["owner"]} == {"node-a", "b"}
    assert (settled["value"], settled["conflicts"]) == (4, [])


async def test_a_full_or_closed_state_refuses_with_a_reason() -> None:
    async with node() as served:
        namespace = served.world.settings["node-a"]
        namespace.full = lambda key: True
        full = await put(served, "workers.retry_s", 2)
        namespace.full = lambda key: False
        namespace.closed = True
        closed = await put(served, "workers.retry_s", 2)
    assert (full.status, full.error()["code"]) == (503, "state_full")
    assert (closed.status, closed.error()["code"]) == (503, "state_closed")


async def test_the_cluster_and_its_members_show_the_hash_of_what_they_run() -> None:
    async with node() as served:
        port = served.port
        await put(served, "workers.retry_s", 2)
        mine = (await ask(port, "GET", "/v1/cluster")).json()["config"]
        served.world.running["b"] = {"settings": mine["hash"], "effective": "x"}
        same = (await ask(port, "GET", "/v1/cluster")).json()["config"]
        served.world.running["b"] = {"settings": "other", "effective": "x"}
        differ = (await ask(port, "GET", "/v1/cluster")).json()["config"]
        members = (await ask(port, "GET", "/v1/cluster/members")).json()["members"]
        one = (await ask(port, "GET", "/v1/cluster/members/b")).json()
    hashes = {row["name"]: row["config_hash"] for row in members}
    assert hashes == {"b": "other", "c": "", "node-a": mine["hash"]}
    assert (one["config_hash"], one["effective_hash"]) == ("other", "x")
    assert (mine["same"], same["same"], differ["same"]) == (True, True, False)
    assert len(mine["hash"]) == len(mine["effective_hash"]) == 16
