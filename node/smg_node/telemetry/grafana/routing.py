"""Routing dashboard: how requests are placed on engines, and the state of these."""

from typing import Final

from smg_node.telemetry.grafana.discovery import DISCOVERY
from smg_node.telemetry.grafana.panels import (
    Board,
    Panel,
    Query,
    Section,
    called,
    largest,
    mean,
    quantile,
    rate,
    ratio,
    recorded,
    total,
)
from smg_node.telemetry.metrics.declared import kv_cache as kv
from smg_node.telemetry.metrics.declared import mcp, providers, resilience
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared import prefix_hints as hints

ROUTING: Final = Board(
    "routing",
    "smg-node: routing and engines",
    "Which workers there are, how busy they are, and how well prompts find the engine that has them cached.",
    (
        Section(
            "Workers",
            (
                Panel(
                    "By status",
                    "Workers as each node sees them; where nodes disagree, look at the network between.",
                    "short",
                    (largest(declared.WORKERS, "status"),),
                ),
                Panel(
                    "Open requests",
                    "Of all nodes together.",
                    "short",
                    (total(declared.WORKER_INFLIGHT, "worker"),),
                ),
                Panel(
                    "Expected wait",
                    "How long a request that is placed now is expected to wait at a worker.",
                    "s",
                    (largest(kv.WORKER_WAIT_SECONDS, "worker"),),
                ),
                Panel(
                    "Breakers",
                    "0 closed, 1 half open, 2 open: 2 on one node only is a matter of its network.",
                    "short",
                    (largest(resilience.BREAKER_STATE, "worker"),),
                    most=2.0,
                ),
                Panel(
                    "Breakers that opened",
                    "Calls to these workers had failed.",
                    "cps",
                    (rate(resilience.BREAKER_OPENED, "worker"),),
                ),
                Panel(
                    "Turned away",
                    "Calls that a worker refused because it was full.",
                    "cps",
                    (rate(resilience.WORKER_PRESSURE, "worker"),),
                ),
            ),
        ),
        Section(
            "Engines, by their own account",
            (
                Panel(
                    "Running",
                    "Requests they work on.",
                    "short",
                    (largest(kv.ENGINE_RUNNING, "worker"),),
                ),
                Panel(
                    "Waiting",
                    "Requests that wait inside.",
                    "short",
                    (largest(kv.ENGINE_WAITING, "worker"),),
                ),
                Panel(
                    "KV memory",
                    "In use, of the fullest rank; near 100 % requests wait or are thrown out.",
                    "percentunit",
                    (largest(kv.ENGINE_KV_USAGE, "worker"),),
                    most=1.0,
                ),
                Panel(
                    "Tokens generated",
                    "A second.",
                    "cps",
                    (largest(kv.ENGINE_TOKENS_PER_SECOND, "worker"),),
                ),
                Panel(
                    "Prefill",
                    "Tokens of prompts a worker computes a second, as measured.",
                    "cps",
                    (largest(kv.WORKER_PREFILL_RATE, "worker"),),
                ),
                Panel(
                    "Stuck",
                    "1 while an engine has work and says nothing.",
                    "bool",
                    (largest(kv.WORKER_STUCK, "worker"),),
                    most=1.0,
                ),
                Panel(
                    "Age of what they said",
                    "Loads are pushed or asked for every few seconds.",
                    "s",
                    (
                        largest(kv.ENGINE_LOAD_AGE_SECONDS, "worker"),
                        called(largest(kv.KV_SILENCE_SECONDS, "worker"), "events {{worker}}"),
                    ),
                ),
                Panel(
                    "Errors",
                    "Failed calls by contract and status.",
                    "cps",
                    (rate(declared.ENGINE_ERRORS, "contract", "status"),),
                ),
                Panel(
                    "Retries",
                    "Calls that were made once more, and those that were not because too many are.",
                    "cps",
                    (rate(resilience.RETRIES, "model", "outcome"),),
                ),
            ),
        ),
        Section(
            "Vendors",
            (
                Panel(
                    "Calls by outcome",
                    "What vendors answered, by provider: refusals by their class.",
                    "cps",
                    (rate(providers.PROVIDER_CALLS, "provider", "outcome"),),
                ),
                Panel(
                    "Keys at rest",
                    "Keys that are left alone, because they were refused or have nothing left.",
                    "short",
                    (largest(providers.PROVIDER_KEYS_RESTING, "provider"),),
                ),
                Panel(
                    "Off for",
                    "How long it takes until a key of a provider may be used again.",
                    "s",
                    (largest(providers.PROVIDER_OFF_SECONDS, "provider"),),
                ),
                Panel(
                    "Prompt caches",
                    "Tokens of prompts that vendors read from their caches and wrote to them, and what this cluster expected"
                    " them to read where a route chooses by that.",
                    "short",
                    (
                        called(
                            rate(providers.PROVIDER_CACHE_READ_TOKENS, "provider"),
                            "read {{provider}}",
                        ),
                        called(
                            rate(providers.PROVIDER_CACHE_WRITTEN_TOKENS, "provider"),
                            "written {{provider}}",
                        ),
                        called(
                            rate(providers.PROVIDER_CACHE_EXPECTED_TOKENS, "provider"),
                            "expected {{provider}}",
                        ),
                    ),
                ),
                Panel(
                    "Splits",
                    "Requests of routes with a split, by side and how they ended.",
                    "reqps",
                    (rate(providers.SPLIT_REQUESTS, "split", "outcome"),),
                ),
                Panel(
                    "Shadows",
                    "Copies of requests, by what became of them and whether their calls are equal.",
                    "reqps",
                    (
                        rate(providers.SHADOW_REQUESTS, "model", "outcome"),
                        rate(providers.SHADOW_CALLS, "model", "calls"),
                    ),
                ),
            ),
        ),
        Section(
            "Servers of tools",
            (
                Panel(
                    "Calls by outcome",
                    "Calls of tools that run on this side, by server and how they ended.",
                    "cps",
                    (rate(mcp.MCP_CALLS, "server", "outcome"),),
                ),
                Panel(
                    "Time of a call",
                    "With the wait for a free one of the server's `concurrency`.",
                    "s",
                    (
                        quantile(mcp.MCP_CALL_SECONDS, 0.5, "server"),
                        quantile(mcp.MCP_CALL_SECONDS, 0.95, "server"),
                    ),
                ),
                Panel(
                    "Size of results",
                    "What tools answered, before it is cut for the model.",
                    "bytes",
                    (quantile(mcp.MCP_RESULT_BYTES, 0.95, "server"),),
                ),
                Panel(
                    "Passes of models",
                    "Generations of models that may call tools of this side; a request may have several.",
                    "cps",
                    (rate(mcp.TOOL_PASSES, "model"),),
                ),
                Panel(
                    "Lists and connections",
                    "Lists of tools that requests wanted, by outcome, and connections that are kept.",
                    "short",
                    (
                        rate(mcp.MCP_LISTS, "server", "outcome"),
                        called(total(mcp.MCP_SESSIONS), "connections"),
                    ),
                ),
                Panel(
                    "Approvals",
                    "Runs that wait for an operator's word, and what came of those that did.",
                    "short",
                    (
                        called(total(mcp.MCP_APPROVALS_WAITING), "waiting"),
                        rate(mcp.MCP_APPROVALS, "answer"),
                    ),
                ),
                Panel(
                    "Searches for tools",
                    "By the way that is set; any outcome but `ok` was a search by words instead.",
                    "cps",
                    (rate(mcp.MCP_TOOL_SEARCHES, "search", "outcome"),),
                ),
            ),
        ),
        Section(
            "In line",
            (
                Panel(
                    "Waiting",
                    "Now, by class.",
                    "short",
                    (total(resilience.QUEUE_WAITING, "model", "class"),),
                ),
                Panel(
                    "How it ended",
                    "Refused and expired ones got 503: workers are missing.",
                    "reqps",
                    (
                        recorded("smg:queue_requests:rate5m", "{{model}} {{outcome}}"),
                        called(rate(resilience.QUEUE_LEFT, "class"), "all of class {{class}}"),
                    ),
                ),
                Panel(
                    "Mean wait",
                    "Of those that were served.",
                    "s",
                    (
                        mean(
                            resilience.QUEUE_SECONDS,
                            resilience.QUEUE_LEFT,
                            "model",
                            outcome="served",
                        ),
                    ),
                ),
            ),
        ),
        Section(
            "Caches of prompts",
            (
                Panel(
                    "Token caches",
                    "Part of prompts (l0) and prefixes (l1) whose ids were remembered.",
                    "percentunit",
                    (
                        ratio(
                            rate(declared.TOKEN_CACHE_HITS, "cache"),
                            Query(
                                f"({rate(declared.TOKEN_CACHE_HITS, 'cache').expression}"
                                f" + {rate(declared.TOKEN_CACHE_MISSES, 'cache').expression})",
                                "",
                            ),
                            "hits",
                            "cache",
                        ),
                    ),
                    most=1.0,
                ),
                Panel(
                    "Their bytes",
                    "Bounded by tokens.*.",
                    "bytes",
                    (total(declared.TOKEN_CACHE_BYTES, "instance", "cache"),),
                ),
                Panel(
                    "Their entries",
                    "Prompts and prefixes.",
                    "short",
                    (total(declared.TOKEN_CACHE_ENTRIES, "instance", "cache"),),
                ),
                Panel(
                    "Known blocks",
                    "Blocks of prompts of which a node knows who has them; far apart, nodes do not hear each other.",
                    "short",
                    (total(kv.KV_INDEX_BLOCKS, "instance"),),
                ),
                Panel(
                    "Events",
                    "Batches that engines sent, and blocks forgotten because there were too many.",
                    "cps",
                    (rate(kv.KV_BATCHES), rate(kv.KV_INDEX_EVICTED)),
                ),
                Panel(
                    "Troubles with events",
                    "Subscriptions that ended, caches told anew, blocks without a place, and mistakes of ours.",
                    "cps",
                    (
                        called(rate(kv.KV_SUBSCRIPTIONS_ENDED, "reason"), "ended: {{reason}}"),
                        rate(kv.KV_RESYNCS),
                        called(rate(kv.KV_BLOCKS_UNPLACED, "reason"), "unplaced: {{reason}}"),
                        rate(kv.KV_STUMBLES),
                    ),
                ),
                Panel(
                    "Told between nodes",
                    "Blocks of engines' caches that nodes told each other of.",
                    "cps",
                    (rate(hints.PREFIX_HINTS, "what"),),
                ),
                Panel(
                    "Traffic for that",
                    "Bytes that nodes sent each other about prefixes.",
                    "Bps",
                    (rate(hints.PREFIX_HINT_BYTES, "instance"),),
                ),
                Panel(
                    "Calls and troubles",
                    "Calls between nodes about prefixes, and what went wrong with them.",
                    "cps",
                    (
                        rate(hints.PREFIX_HINT_CALLS, "outcome"),
                        called(rate(hints.PREFIX_HINT_TROUBLES, "what"), "trouble: {{what}}"),
                    ),
                ),
                Panel(
                    "Known from others",
                    "Workers whose caches a node knows from another one.",
                    "short",
                    (total(hints.PREFIX_TOLD_WORKERS, "instance"),),
                ),
                Panel(
                    "Since their last word",
                    "Of a node that is believed about prefixes; one at rest speaks every quarter of an hour or more seldom.",
                    "s",
                    (largest(hints.PREFIX_STALE_SECONDS, "instance", "node"),),
                ),
            ),
        ),
        DISCOVERY,
    ),
)
