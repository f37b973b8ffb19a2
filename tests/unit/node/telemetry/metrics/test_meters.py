from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from smg_node.core.generation.outcome import Outcome
from smg_node.telemetry.metrics.declared import background_runs as run_metrics
from smg_node.telemetry.metrics.declared import kv_cache as kv_metrics
from smg_node.telemetry.metrics.declared import limits as limit_metrics
from smg_node.telemetry.metrics.declared import mcp as mcp_metrics
from smg_node.telemetry.metrics.declared import media as media_metrics
from smg_node.telemetry.metrics.declared import mesh as mesh_metrics
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared import prefix_hints as hint_metrics
from smg_node.telemetry.metrics.declared import processes as process_metrics
from smg_node.telemetry.metrics.declared import providers as provider_metrics
from smg_node.telemetry.metrics.declared import resilience as resilience_metrics
from smg_node.telemetry.metrics.declared import rights as rights_metrics
from smg_node.telemetry.metrics.declared import shared_state as state_metrics
from smg_node.telemetry.metrics.declared import store as store_metrics
from smg_node.telemetry.metrics.declared import usage as usage_metrics
from smg_node.telemetry.metrics.declared.access import issuers as issuer_metrics
from smg_node.telemetry.metrics.meters import LABEL_VALUES_MAX, MODELS_MAX, Meters
from smg_node.telemetry.metrics.metric import Metric
from smg_node.telemetry.metrics.reference import render_metrics_reference

ROOT = Path(__file__).parents[5]


def meters(**known: object) -> Meters:
    models = known.get("models")
    if models is None:
        return Meters(CollectorRegistry(), version="1.2.3")
    assert isinstance(models, set)
    return Meters(CollectorRegistry(), version="1.2.3", known_model=models.__contains__)


def outcome(**changes: object) -> Outcome:
    given: dict[str, object] = {
        "dialect": "chat",
        "model": "m",
        "worker": "w",
        "kind": "ok",
        "error_code": "",
        "status": 200,
        "streamed": True,
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "completion_tokens": 5,
        "received_s": 100.0,
        "first_token_s": 100.5,
        "ended_s": 101.5,
        **changes,
    }
    return Outcome(**given)  # type: ignore[arg-type] # a test's shorthand


def value(of: Meters, name: str, **labels: str) -> float | None:
    return of.registry.get_sample_value(name, labels)


def test_a_request_of_several_passes_is_one_generation_and_its_pauses_are_no_speed() -> None:
    seen = meters()
    seen.generation(outcome(passes=3, ended_s=111.5, paused_s=10.0))
    seen.generation(outcome(passes=1))
    row = {"dialect": "chat", "model": "m", "outcome": "ok", "code": ""}
    assert value(seen, "smg_node_generations_total", **row) == 2
    assert value(seen, "smg_node_tool_passes_total", model="m") == 4
    assert value(seen, "smg_node_time_per_output_token_seconds_sum", model="m") == 0.5
    assert value(seen, "smg_node_generation_duration_seconds_sum", model="m") == 13.0
    plain = meters()
    plain.generation(outcome())
    assert value(plain, "smg_node_tool_passes_total", model="m") is None


def test_a_generation_is_counted_with_its_tokens_and_times() -> None:
    seen = meters()
    seen.generation(outcome())
    seen.generation(outcome())
    row = {"dialect": "chat", "model": "m", "outcome": "ok", "code": ""}
    assert value(seen, "smg_node_generations_total", **row) == 2
    assert value(seen, "smg_node_prompt_tokens_total", model="m") == 20
    assert value(seen, "smg_node_prompt_tokens_cached_total", model="m") == 8
    assert value(seen, "smg_node_completion_tokens_total", model="m") == 10
    assert value(seen, "smg_node_continuations_total", model="m") == 0
    assert value(seen, "smg_node_time_to_first_token_seconds_sum", model="m") == 1.0
    assert value(seen, "smg_node_time_per_output_token_seconds_sum", model="m") == 0.5
    assert value(seen, "smg_node_generation_duration_seconds_sum", model="m") == 3.0


def test_a_generation_without_tokens_has_no_token_times() -> None:
    seen = meters()
    seen.generation(outcome(kind="failed", first_token_s=None, completion_tokens=0))
    assert value(seen, "smg_node_time_to_first_token_seconds_count", model="m") == 0
    assert value(seen, "smg_node_time_per_output_token_seconds_count", model="m") == 0


def test_a_single_token_has_no_time_per_token() -> None:
    seen = meters()
    seen.generation(outcome(completion_tokens=1))
    assert value(seen, "smg_node_time_to_first_token_seconds_count", model="m") == 1
    assert value(seen, "smg_node_time_per_output_token_seconds_count", model="m") == 0


def test_models_nobody_serves_share_one_series() -> None:
    seen = meters(models={"m"})
    for n in range(50):
        seen.generation(
            outcome(model=f"invented-{n}", kind="refused", error_code="model_not_found")
        )
    seen.generation(outcome())
    assert value(seen, "smg_node_prompt_tokens_total", model="unknown") == 500
    assert value(seen, "smg_node_prompt_tokens_total", model="m") == 10
    assert "invented" not in seen.exposition("")[0].decode()


def test_even_known_models_stop_having_their_own_series_some_day() -> None:
    seen = meters()
    for n in range(MODELS_MAX + 5):
        seen.generation(outcome(model=f"m{n}"))
    seen.generation(outcome(model="m0"))
    assert value(seen, "smg_node_prompt_tokens_total", model="other") == 50
    assert value(seen, "smg_node_prompt_tokens_total", model="m0") == 20


def test_the_first_hundred_ignored_parameters_are_named() -> None:
    seen = meters()
    for n in range(LABEL_VALUES_MAX + 7):
        seen.ignored_parameter(f"p{n}")
    seen.ignored_parameter("p0")
    name = "smg_node_ignored_parameters_total"
    assert value(seen, name, parameter="p0") == 2
    assert value(seen, name, parameter=f"p{LABEL_VALUES_MAX}") is None
    assert value(seen, name, parameter="other") == 7


def test_error_codes_are_bounded_too() -> None:
    seen = meters()
    for n in range(LABEL_VALUES_MAX + 3):
        seen.generation(outcome(kind="failed", error_code=f"c{n}"))
    row = {"dialect": "chat", "model": "m", "outcome": "failed", "code": "other"}
    assert value(seen, "smg_node_generations_total", **row) == 3


def test_requests_and_engine_errors_are_counted_by_their_labels() -> None:
    seen = meters()
    seen.http("/health", "GET", 200, 0.01)
    seen.http("/health", "BREW", 405, 0.01)
    seen.engine_error("vllm", "UNAVAILABLE")
    seen.engine_error("vllm", "UNAVAILABLE")
    seen.connection_refused("slow_client")
    name = "smg_node_http_requests_total"
    assert value(seen, name, route="/health", method="GET", status="200") == 1
    assert value(seen, name, route="/health", method="other", status="405") == 1
    assert value(seen, "smg_node_http_request_duration_seconds_count", route="/health") == 2
    row = {"contract": "vllm", "status": "UNAVAILABLE"}
    assert value(seen, "smg_node_engine_errors_total", **row) == 2
    assert value(seen, "smg_node_http_connections_refused_total", reason="slow_client") == 1


def test_pulled_metrics_are_read_at_each_scrape_and_add_up() -> None:
    seen = meters()
    hits: dict[tuple[str, ...], float] = {("l0",): 3.0, ("l1",): 1.0}
    seen.watch(declared.TOKEN_CACHE_HITS, lambda: hits)
    seen.watch(declared.TOKEN_CACHE_HITS, lambda: {("l0",): 10.0})
    assert value(seen, "smg_node_token_cache_hits_total", cache="l0") == 13
    hits[("l0",)] = 5.0
    assert value(seen, "smg_node_token_cache_hits_total", cache="l0") == 15
    assert value(seen, "smg_node_token_cache_hits_total", cache="l1") == 1


def test_a_part_that_cannot_be_read_does_not_blind_the_scrape(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = meters()

    def broken() -> dict[tuple[str, ...], float]:
        raise ZeroDivisionError

    seen.watch(declared.WORKERS, broken)
    seen.watch(declared.HTTP_INFLIGHT, lambda: {(): 2.0})
    page = seen.exposition("")[0].decode()
    assert "smg_node_http_requests_inflight 2.0" in page
    # A scrape may have passed the counter before it found the error, but it must say so in the end.
    assert value(seen, "smg_node_scrape_errors_total", metric="smg_node_workers")
    assert "smg_node_workers" in caplog.text


def test_only_pulled_metrics_can_be_watched() -> None:
    with pytest.raises(AssertionError):
        meters().watch(declared.HTTP_REQUESTS, dict)


def test_two_nodes_in_one_process_count_apart() -> None:
    one, two = meters(), meters()
    one.loop_stall()
    assert value(one, "smg_node_loop_stalls_total") == 1
    assert value(two, "smg_node_loop_stalls_total") == 0


def test_the_page_is_what_a_scraper_can_read_and_holds_every_pushed_metric() -> None:
    seen = meters()
    page, content_type = seen.exposition("text/plain")
    families = {family.name for family in text_string_to_metric_families(page.decode())}
    pushed = {m.name.removesuffix("_total") for m in declared.METRICS if not m.pulled}
    assert content_type.startswith("text/plain")
    assert pushed <= families
    assert "process_resident_memory_bytes" in families
    assert "_created" not in page.decode()


def test_declarations_follow_the_rules_for_names() -> None:
    names = [metric.name for metric in declared.METRICS]
    assert len(set(names)) == len(names)
    for metric in declared.METRICS:
        assert metric.name.startswith("smg_node_")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert bool(metric.buckets) == (metric.kind == "histogram")
        assert tuple(sorted(metric.buckets)) == metric.buckets
        assert metric.meaning.endswith(".")
    found = [
        thing.name
        for module in (
            declared,
            hint_metrics,
            issuer_metrics,
            kv_metrics,
            limit_metrics,
            mcp_metrics,
            media_metrics,
            mesh_metrics,
            process_metrics,
            provider_metrics,
            resilience_metrics,
            rights_metrics,
            run_metrics,
            state_metrics,
            store_metrics,
            usage_metrics,
        )
        for thing in vars(module).values()
        if isinstance(thing, Metric)
    ]
    assert sorted(found) == sorted(names)


def test_the_operators_page_is_current() -> None:
    page = ROOT / "deploy" / "reference" / "metrics.md"
    assert page.read_text() == render_metrics_reference(), "run `make reference`"


def test_what_was_odd_about_answers_is_counted() -> None:
    seen = meters()
    seen.generation(outcome(oddities={"tool_markup_unparsed": 2, "reasoning_start_missed": 1}))
    seen.generation(outcome(oddities={"tool_markup_unparsed": 1}))
    name = "smg_node_answer_oddities_total"
    assert value(seen, name, model="m", what="tool_markup_unparsed") == 3
    assert value(seen, name, model="m", what="reasoning_start_missed") == 1


def test_answers_that_went_on_at_another_worker_are_counted() -> None:
    seen = meters()
    seen.generation(outcome(attempts=3, continuations=2))
    seen.generation(outcome())
    assert value(seen, "smg_node_continuations_total", model="m") == 2
