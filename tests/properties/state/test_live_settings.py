"""Settings of the cluster: any key, any value, from anybody; and what nodes make of them."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.config.schema.declared_live_knobs import live_knobs
from smg_node.config.schema.live_settings import LiveError, LiveTable, plain
from smg_node.config.settings import Settings
from support.state.fake_shared_state import SharedWorld
from support.tools.example_counts import example_count

TABLE = LiveTable(live_knobs(Settings))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300, max_value=10**320)
    | st.floats()
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = (
    st.sampled_from(sorted(TABLE.knobs))
    | st.text(max_size=40)
    | st.builds(
        "models/{}/{}".format, st.text(max_size=20), st.sampled_from(["aliases", "policy", "x"])
    )
)
GOOD = st.sampled_from(
    [
        ("workers.retry_s", 2.5),
        ("workers.retry_s", 4),
        ("limits.n_max", 3),
        ("telemetry.log_level", "debug"),
        ("telemetry.access_log", False),
        ("routing.policy", "random"),
        ("models/m/aliases", ["a"]),
        ("models/m/policy", "round_robin"),
    ]
)
# What an older or newer node, or nobody sensible, may have written.
STRANGE = st.tuples(
    st.sampled_from(["workers.retry_s", "future.knob", "limits.n_max", "models/m/aliases"]),
    st.sampled_from([-1, "x", [5], {"a": 1}, 0]),
)


@settings(max_examples=example_count(300))
@given(KEYS, JSON)
def test_any_key_and_value_give_a_value_within_bounds_or_a_refusal(key: str, value: Any) -> None:
    try:
        read = TABLE.read(key, value)
    except LiveError as error:
        read = error.message
        known = False
    else:
        known = True
    if not known:
        assert read
        return
    knob, _ = TABLE.find(key)
    if knob.low is not None and knob.high is not None:
        assert knob.low <= read <= knob.high
    # What was read once reads as itself again, also after it travelled.
    assert TABLE.read(key, json.loads(json.dumps(plain(read)))) == read


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("ab"), GOOD | STRANGE, st.booleans()), max_size=12))
def test_nodes_that_have_heard_the_same_run_the_same(
    writes: list[tuple[str, tuple[str, Any], bool]],
) -> None:
    world = SharedWorld("a", "b")
    one, other = world.desks("a"), world.desks("b", "--policy", "random")
    for node, (key, value), cut in writes:
        if cut:
            world.settings.hold()
        else:
            world.settings.heal()
        world.nodes[node].settings.set(key, value, version=None)
        one.live.refresh()
    world.settings.heal()
    for desks in (one, other):
        desks.live.refresh()
    assert one.live.state().hash == other.live.state().hash
    assert one.live.ignored() == other.live.ignored()
    for said in world.nodes["a"].settings.all():
        if said.key not in one.live.ignored():
            assert plain(one.live.value(said.key)) == said.value
            assert one.live.value(said.key) == other.live.value(said.key)
        elif said.key in TABLE.knobs:
            assert one.live.value(said.key) == one.live.own_value(said.key)
