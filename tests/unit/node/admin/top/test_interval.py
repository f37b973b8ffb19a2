"""What happened between two looks, whatever nodes do in between."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.admin.top.interval import NODE, TOGETHER, Interval, quantile
from smg_node.admin.top.snapshot import Snapshot, SnapshotError, read_snapshot
from smg_node.admin.top.view import View, view_of
from support.http.polled_cluster import BOUNDS, ToldCluster, use, work, worker

TOKENS = "smg_node_completion_tokens_total"
TTFT = "smg_node_time_to_first_token_seconds"


def look(cluster: ToldCluster, **more: Any) -> Snapshot:
    return read_snapshot(cluster.said(), **more)


def seen(cluster: ToldCluster, before: Snapshot | None, **more: Any) -> View:
    return view_of(Interval(before, look(cluster, **more)))


def test_rates_are_over_each_nodes_own_time() -> None:
    cluster = ToldCluster("a", "b")
    before = look(cluster)
    for node, span_s in (("a", 2.0), ("b", 4.0)):
        cluster[node].at_s += span_s
        cluster[node].count(TOKENS, ("llama",), 80)
    interval = Interval(before, look(cluster))
    assert interval.rates(TOKENS, NODE) == {"a": 40.0, "b": 20.0}
    assert interval.rates(TOKENS) == {TOGETHER: 60.0}
    assert interval.rates(TOKENS, "model") == {"llama": 60.0}
    assert interval.rates(TOKENS, model="other") == {}


def test_a_node_that_began_anew_counts_from_nothing() -> None:
    cluster = ToldCluster("a")
    cluster["a"].count(TOKENS, ("llama",), 1_000)
    before = look(cluster)
    cluster["a"].begin_anew()
    cluster["a"].count(TOKENS, ("llama",), 30)
    cluster.pass_s(1)
    assert Interval(before, look(cluster)).rates(TOKENS) == {TOGETHER: 30.0}


def test_nothing_is_known_of_a_node_that_was_not_there_before() -> None:
    cluster = ToldCluster("a", "b")
    cluster["b"].silent = "it came just now"
    before = look(cluster)
    cluster["b"].silent = ""
    cluster.pass_s(1)
    for name in "ab":
        cluster[name].count(TOKENS, ("llama",), 7)
    view = seen(cluster, before)
    assert [node.flow.completion_tokens for node in view.nodes] == [7.0, None]
    assert view.total.completion_tokens == 7.0
    first = seen(cluster, None)
    assert first.total.completion_tokens is None
    assert first.total.ttft_p50_s is None


def test_a_clock_that_stands_or_goes_back_makes_no_rate() -> None:
    cluster = ToldCluster("a")
    before = look(cluster)
    cluster["a"].count(TOKENS, ("llama",), 7)
    assert Interval(before, look(cluster)).rates(TOKENS) == {}
    cluster["a"].at_s = 3.0
    assert Interval(before, look(cluster)).seen_twice == frozenset()


def test_a_row_that_may_have_been_cut_before_is_not_taken_for_new() -> None:
    cluster = ToldCluster("a")
    cluster["a"].cut = 5
    before = look(cluster)
    cluster["a"].cut = 0
    cluster["a"].count(TOKENS, ("llama",), 1_000_000)
    cluster.pass_s(1)
    assert Interval(before, look(cluster)).rates(TOKENS) == {}


def test_times_are_those_of_the_interval_and_of_all_nodes() -> None:
    cluster = ToldCluster("a", "b")
    cluster["a"].took(TTFT, ("llama",), *[100.0] * 50)
    before = look(cluster)
    cluster["a"].took(TTFT, ("llama",), *[0.02] * 10)
    cluster["b"].took(TTFT, ("llama",), *[0.02] * 8, 2.0, 2.0)
    cluster.pass_s(1)
    view = seen(cluster, before)
    assert view.total.ttft_p50_s is not None
    assert 0.01 < view.total.ttft_p50_s <= 0.025
    assert view.total.ttft_p95_s is not None
    assert 1.0 < view.total.ttft_p95_s <= 2.5
    assert view.nodes[0].flow.ttft_p95_s is not None
    assert view.nodes[0].flow.ttft_p95_s <= 0.025


@given(st.lists(st.floats(0.0001, 5_000), min_size=1, max_size=60), st.floats(0.01, 1.0))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(times: list[float], part: float) -> None:
    bounds = BOUNDS[TTFT]
    counts = [float(sum(one <= bound for one in times)) for bound in (*bounds, float("inf"))]
    found = quantile(bounds, counts, part)
    true = sorted(times)[max(0, -int(-part * len(times) // 1) - 1)]
    above = min((bound for bound in bounds if bound >= true), default=bounds[-1])
    below = max((bound for bound in bounds if bound < true), default=0.0)
    assert found is not None
    assert min(below, bounds[-1]) <= found <= above


def test_an_empty_histogram_has_no_quantile() -> None:
    assert quantile((1.0, 2.0), (), 0.5) is None
    assert quantile((1.0, 2.0), (0.0, 0.0, 0.0), 0.5) is None
    assert quantile((), (3.0,), 0.5) is None
    assert quantile((1.0, 2.0), (2.0, 1.0, 2.0), 0.5) == 0.5, "read one after the other"


def test_the_view_has_a_line_for_whatever_there_is() -> None:
    cluster = ToldCluster("a", "b")
    before = look(cluster)
    work(cluster["a"], "llama", "acme", ttft_s=[0.02] * 10)
    work(cluster["b"], "qwen", "beta", ttft_s=[0.2] * 5, failed=1)
    for node, open_there in (("a", 4), ("b", 2)):
        cluster[node].set("smg_node_http_requests_inflight", (), open_there)
        cluster[node].set("smg_node_worker_inflight", ("grpc://e1:1",), open_there)
        cluster[node].set("smg_node_engine_kv_usage_ratio", ("grpc://e1:1",), 0.25 * open_there)
        cluster[node].set("smg_node_worker_breaker_state", ("grpc://e1:1",), 2)
        cluster[node].set("smg_node_workers", ("ready",), 1)
        cluster[node].set("smg_node_workers", ("down",), 1)
    cluster.pass_s(5)
    workers = {"workers": [worker("grpc://e1:1?model=llama"), worker("grpc://e2:1", "down")]}
    limits = {"uses": [use("tenant=acme#tokens/60000", 1_000, 250, remaining=700)]}
    view = seen(cluster, before, workers=workers, limits=limits)
    assert view.total.requests == pytest.approx(16 / 5)
    assert view.total.failed == pytest.approx(1 / 5)
    assert view.total.cached == pytest.approx(0.4)
    assert view.open == 5, "this very question is not counted"
    assert (view.workers_ready, view.workers_total) == (1, 2)
    assert [(line.model, line.flow.requests) for line in view.models] == [
        ("llama", 2),
        ("qwen", 1.2),
    ]
    assert view.workers is not None
    first, second = view.workers
    assert (first.worker, first.open, first.kv_usage, first.breakers) == ("grpc://e1:1", 6, 1.0, 2)
    assert (second.status, second.open, second.breakers) == ("down", None, 0)
    assert [line.tenant for line in view.tenants] == ["acme", "beta"]
    assert view.tenants[0].prompt_tokens == 200
    assert view.tenants[0].total_tokens == 1_200
    assert view.limits is not None
    assert (view.limits[0].limit, view.limits[0].used, view.limits[0].left) == (
        "tenant=acme",
        0.25,
        700,
    )


def test_a_node_says_why_it_is_not_as_it_should_be() -> None:
    cluster = ToldCluster("a", "b", "c", "d", "e")
    cluster["b"].state, cluster["b"].silent = "dead", "it is dead"
    cluster["c"].silent = "it did not answer"
    cluster["d"].draining, cluster["d"].reasons = True, ("the node is draining",)
    cluster["e"].ready, cluster["e"].reasons = False, ("0 workers are ready", "1 is needed")
    view = seen(cluster, None)
    assert [(node.state, node.note) for node in view.nodes] == [
        ("ready", ""),
        ("dead", "it is dead"),
        ("silent", "it did not answer"),
        ("draining", "the node is draining"),
        ("not ready", "0 workers are ready; 1 is needed"),
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_JSON, st.sampled_from(["node", "metrics", "nodes", "rows", "whole"]))
def test_what_no_node_says_is_refused(garbage: Any, place: str) -> None:
    cluster = ToldCluster("a")
    cluster["a"].count(TOKENS, ("llama",), 1)
    said: Any = dict(cluster.said())
    if place == "whole":
        said = garbage
    elif place == "rows":
        said["nodes"] = [{**said["nodes"][0], "rows": garbage}]
    else:
        said[place] = garbage
    try:
        found = read_snapshot(said)
    except SnapshotError:
        return
    # What is read can be shown, whatever it says.
    assert view_of(Interval(look(cluster), found)).node == found.node
