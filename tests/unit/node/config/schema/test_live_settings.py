from typing import Any

import pytest

from smg_node.config.frozen_settings import PlainSection, plain_settings, with_values
from smg_node.config.schema.declared_live_knobs import live_knobs
from smg_node.config.schema.knob import ANY_NAME, Knob, Schema
from smg_node.config.schema.live_keys import LIVE
from smg_node.config.schema.live_settings import LiveError, LiveTable
from smg_node.config.settings import Settings
from support.tools.configuration import load

TABLE = LiveTable(live_knobs(Settings), {"routing.policy": ("random", "round_robin")})


def refusal(key: str, value: Any) -> LiveError:
    with pytest.raises(LiveError) as caught:
        TABLE.read(key, value)
    return caught.value


def test_every_live_setting_is_a_declared_knob_and_stands_there_once() -> None:
    schema = Schema(Settings)
    assert len(set(LIVE)) == len(LIVE)
    for key in LIVE:
        head, _, last = key.rpartition("/")
        path = (*head.split("/"), *last.split(".")) if head else tuple(key.split("."))
        knob, live = schema.at(path), TABLE.knobs[key]
        assert isinstance(knob, Knob)
        assert (live.low, live.high, live.says) == (knob.low, knob.high, knob.says)
        assert ("/" in key) is (ANY_NAME in knob.path)


def test_defaults_may_be_set_as_they_are() -> None:
    for key in TABLE.single():
        if key != "routing.policy":
            default = TABLE.knobs[key].default
            assert TABLE.read(key, default) == default


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("workers.retry_s", 2, 2.0),
        ("workers.retry_s", 0.02, 0.02),
        ("workers.retry_s", 3600, 3600.0),
        ("workers.down_after", 3.0, 3),
        ("limits.n_max", 1, 1),
        ("telemetry.access_log", False, False),
        ("telemetry.log_level", "debug", "debug"),
        ("routing.policy", "random", "random"),
        ("models/m/aliases", ["a", "b"], ("a", "b")),
        ("models/org/name.v1/aliases", [], ()),
        ("models/org/name.v1/mcp.expose", True, True),
        ("models/m/mcp.description", "Knows of plants.", "Knows of plants."),
        ("models/policy/policy", "power_of_two", "power_of_two"),
    ],
)
def test_a_good_value_is_read_in_the_type_of_its_knob(key: str, value: Any, read: Any) -> None:
    found = TABLE.read(key, value)
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("key", "value", "said", "where"),
    [
        ("workers.retry_s", 0.019, "out of range 0.02..3600: more than 50 attempts", ""),
        ("workers.retry_s", 3600.5, "out of range", ""),
        ("workers.retry_s", float("nan"), "out of range", ""),
        ("workers.retry_s", float("inf"), "out of range", ""),
        ("workers.retry_s", 10**4000, "it is out of range", ""),
        ("workers.retry_s", True, "it must be a number, got true", ""),
        ("workers.retry_s", "2", "it must be a number, got the text '2'", ""),
        ("workers.retry_s", None, "got null", ""),
        ("workers.retry_s", [1], "got a list", ""),
        ("workers.retry_s", {"s": 1}, "got an object", ""),
        ("workers.down_after", 2.5, "it must be a whole number, got 2.5", ""),
        ("telemetry.access_log", 1, "it must be true or false, got the number 1", ""),
        ("telemetry.log_level", "warn", "did you mean 'warning'?", ""),
        ("routing.policy", "round robin", "did you mean 'round_robin'?", ""),
        ("models/m/policy", "p" * 65, "more than 64 characters", ""),
        ("models/m/aliases", "a", "it must be a list of texts", ""),
        ("models/m/aliases", ["a", 5], "it must be text, got the number 5", "[1]"),
        ("models/m/aliases", ["a" * 257], "more than 256 characters", "[0]"),
        ("models/m/aliases", ["a", "b", ""], "is not a model name", "[2]"),
        ("models/m/aliases", ["x"] * 65, "more than 64 entries", ""),
    ],
)
def test_a_bad_value_is_refused_with_place_and_reason(
    key: str, value: Any, said: str, where: str
) -> None:
    error = refusal(key, value)
    assert said in error.message
    assert (error.where, error.unknown) == (where, False)


def test_an_integer_that_cannot_even_be_spelled_is_out_of_range() -> None:
    assert "out of range" in refusal("workers.retry_s", 10**5000).message


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "no setting"),
        ("routing.polcy", "did you mean 'routing.policy'?"),
        ("retry_s", "did you mean 'workers.retry_s'?"),
        ("http.listen", "no setting that may be changed while running"),
        ("models/NAME/polcy", "did you mean 'policy'?"),
        ("models/m/tokenizer", "a model has models/NAME/aliases, models/NAME/policy"),
        ("models/aliases", "no setting"),
        ("models/m/mcp", "no setting"),
        ("models/m/mcp/expose", "no setting"),
        ("models/m/mcp.exposed", "did you mean 'mcp.expose'?"),
        ("models//aliases", "is not a model name"),
        ("models/ m/aliases", "is not a model name"),
        (f"models/{'m' * 245}/aliases", "more than 256 bytes"),
        (f"models/{'ä' * 150}/aliases", "more than 256 bytes"),
        ("models/\ud800/aliases", "model name"),
    ],
)
def test_an_unknown_key_is_refused_and_the_nearest_one_named(key: str, said: str) -> None:
    error = refusal(key, 1)
    assert said in error.message
    assert error.unknown


def test_the_table_travels_with_settings_that_have_no_declarations() -> None:
    plain = plain_settings(load().settings)
    assert isinstance(plain, PlainSection)
    assert plain.live == live_knobs(Settings)


def test_values_are_laid_over_settings_and_what_they_derive_stays() -> None:
    for own in (load(["--policy", "random"]).settings, plain_settings(load().settings)):
        now = with_values(own, {("workers", "retry_s"): 9.0, ("limits", "n_max"): 2})
        assert (now.workers.retry_s, now.limits.n_max) == (9.0, 2)
        assert now.workers.probe_interval_s == own.workers.probe_interval_s
        assert now.mesh.swim_changes == own.mesh.swim_changes
        assert now.live == own.live
        assert own.workers.retry_s == 1
        deep = {("storage", "quota", "max_bytes"): 9, ("storage", "timeout_s"): 2.0}
        now = with_values(own, deep)
        assert (now.storage.quota.max_bytes, now.storage.timeout_s) == (9, 2.0)
        assert now.storage.quota.responses_max == own.storage.quota.responses_max
        assert (now.storage.kind, now.storage.pool) == (own.storage.kind, own.storage.pool)
        assert own.storage.quota.max_bytes == 0
        assert with_values(own, {}) == own
