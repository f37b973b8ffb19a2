"""Requests dashboard: what clients are served, the whole cluster at a glance."""

from typing import Final

from smg_node.telemetry.grafana.panels import (
    Board,
    Panel,
    Query,
    Section,
    called,
    or_zero,
    quantile,
    rate,
    recorded,
    smallest,
    total,
)
from smg_node.telemetry.metrics.declared import media, mesh, resilience, store
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared.access import issuers


def _recorded(title: str, name: str, meaning: str) -> Panel:
    """Return a panel with the three quantiles that are recorded of a time."""
    parts = tuple(
        recorded(f"smg:{name}:{part}_5m", f"{part} {{{{model}}}}") for part in ("p50", "p95", "p99")
    )
    return Panel(title, meaning, "s", parts, width=12)


OVERVIEW: Final = Board(
    "overview",
    "smg-node: overview",
    "Is the cluster well, and what are its clients getting? Numbers over five minutes are recorded by Prometheus.",
    (
        Section(
            "Now",
            (
                Panel(
                    "Nodes that answer",
                    "Nodes that Prometheus reaches, of those it looks for.",
                    "short",
                    (Query('sum(up{job=~"$job"})', "up"), Query('count(up{job=~"$job"})', "all")),
                    "stat",
                    width=4,
                ),
                Panel(
                    "Workers ready",
                    "The fewest that any node may give work to.",
                    "short",
                    (called(smallest(declared.WORKERS_READY, "role"), "{{role}}"),),
                    "stat",
                    width=4,
                ),
                Panel(
                    "Requests open",
                    "HTTP requests under way on all nodes.",
                    "short",
                    (total(declared.HTTP_INFLIGHT),),
                    "stat",
                    width=4,
                ),
                Panel(
                    "Waiting in line",
                    "Requests that wait because all workers of their model are full.",
                    "short",
                    (or_zero(total(resilience.QUEUE_WAITING)),),
                    "stat",
                    width=4,
                ),
                Panel(
                    "Store",
                    "1 if every node reaches the store of history; 0 if one does not.",
                    "bool",
                    (smallest(store.STORE_UP),),
                    "stat",
                    width=4,
                ),
                Panel(
                    "Cut off",
                    "Nodes that believe that they are the ones cut off from the cluster.",
                    "short",
                    (total(mesh.MESH_ISOLATED),),
                    "stat",
                    width=4,
                ),
            ),
        ),
        Section(
            "Generations",
            (
                Panel(
                    "Generations",
                    "By how they ended. Failed ones are those that no other worker could save.",
                    "reqps",
                    (recorded("smg:generations:rate5m", "{{model}} {{outcome}}"),),
                    width=12,
                ),
                Panel(
                    "Failed",
                    "Part of the generations that failed; above 5 % somebody is woken.",
                    "percentunit",
                    (recorded("smg:generations_failed:ratio5m", "{{model}}"),),
                    width=12,
                ),
                _recorded(
                    "Time to the first token",
                    "time_to_first_token_seconds",
                    "From the request to its first token: waiting in line and prompts are in it.",
                ),
                _recorded(
                    "Time per token",
                    "time_per_output_token_seconds",
                    "Mean time for each token after the first, of each answer.",
                ),
                Panel(
                    "Tokens generated",
                    "Tokens of answers.",
                    "cps",
                    (recorded("smg:completion_tokens:rate5m", "{{model}}"),),
                ),
                Panel(
                    "Tokens of prompts",
                    "Those that engines had in their caches are in it.",
                    "cps",
                    (recorded("smg:prompt_tokens:rate5m", "{{model}}"),),
                ),
                Panel(
                    "Prompts in caches",
                    "Part of the tokens of prompts that engines had cached: what routing by prefix is worth.",
                    "percentunit",
                    (recorded("smg:prompt_tokens_cached:ratio5m", "{{model}}"),),
                    most=1.0,
                ),
                Panel(
                    "By dialect and code",
                    "Generations by the API that asked and the code of the error they ended with.",
                    "reqps",
                    (rate(declared.GENERATIONS, "dialect", "code"),),
                ),
                Panel(
                    "Duration",
                    "From the request to the end of its generation.",
                    "s",
                    (
                        quantile(declared.GENERATION_SECONDS, 0.5, "model"),
                        quantile(declared.GENERATION_SECONDS, 0.95, "model"),
                    ),
                ),
                Panel(
                    "Saved",
                    "Answers that had begun when their worker was lost, and went on at another one.",
                    "cps",
                    (rate(declared.CONTINUATIONS, "model"),),
                ),
            ),
        ),
        Section(
            "HTTP",
            (
                Panel(
                    "Requests",
                    "Answered requests by route and status; 499 went away first.",
                    "reqps",
                    (recorded("smg:http_requests:rate5m", "{{route}} {{status}}"),),
                    width=12,
                ),
                Panel(
                    "Open requests of a node",
                    "On average: what nodes are scaled by.",
                    "short",
                    (
                        recorded("smg:http_requests_inflight:avg", "a node"),
                        total(declared.HTTP_INFLIGHT, "instance"),
                    ),
                    width=12,
                ),
                Panel(
                    "Duration",
                    "From the head of a request to the last byte of its answer.",
                    "s",
                    (quantile(declared.HTTP_SECONDS, 0.95, "route"),),
                ),
                Panel(
                    "Connections",
                    "Open client connections, and how many of them are WebSockets of a route.",
                    "short",
                    (
                        total(declared.HTTP_CONNECTIONS, "instance"),
                        total(declared.HTTP_SOCKETS, "route"),
                    ),
                ),
                Panel(
                    "Connections refused",
                    "Turned away or cut by a limit of the server.",
                    "cps",
                    (rate(declared.HTTP_REFUSED, "reason"),),
                ),
                Panel(
                    "TLS handshakes",
                    "What became of them; refused: as many as may be were under way.",
                    "cps",
                    (rate(declared.TLS_HANDSHAKES, "outcome"),),
                ),
                Panel(
                    "Certificates renewed",
                    "Files of the listeners taken anew, and those that would not do.",
                    "cps",
                    (
                        rate(declared.TLS_RELOADS, "instance"),
                        rate(declared.TLS_RELOAD_FAILURES, "instance"),
                    ),
                ),
                Panel(
                    "Certificates valid for",
                    "Alerts tell of less than two weeks.",
                    "s",
                    (total(declared.TLS_EXPIRES, "instance", "pair"),),
                ),
                Panel(
                    "Keys of token issuers fetched",
                    "By one node for all; failed: the issuer is away, and its last keys count for a day.",
                    "cps",
                    (rate(issuers.ISSUER_FETCHES, "issuer", "outcome"),),
                ),
                Panel(
                    "Age of issuers' keys",
                    "Since they were last fetched by any node.",
                    "s",
                    (total(issuers.ISSUER_KEYS_AGE, "instance", "issuer"),),
                ),
                Panel(
                    "Keys of token issuers",
                    "Those that count, and those of their sets that are not used.",
                    "short",
                    (
                        total(issuers.ISSUER_KEYS, "instance", "issuer"),
                        total(issuers.ISSUER_KEYS_SKIPPED, "issuer", "reason"),
                    ),
                ),
                Panel(
                    "Opaque tokens asked about",
                    "Calls to issuers about tokens that only they can read.",
                    "cps",
                    (rate(issuers.INTROSPECTIONS, "outcome"),),
                ),
                Panel(
                    "Subjects denied",
                    "Whose tokens are refused on all nodes.",
                    "short",
                    (total(issuers.DENIALS, "instance"),),
                ),
                Panel(
                    "Parameters without effect",
                    "What clients send and engines cannot do; the answer's headers name it.",
                    "cps",
                    (rate(declared.IGNORED_PARAMETERS, "parameter"),),
                ),
                Panel(
                    "Oddities of answers",
                    "What models printed against their own format: a chat template or a parser may be the wrong one.",
                    "cps",
                    (rate(declared.ODDITIES, "model", "what"),),
                ),
                Panel(
                    "Joined events",
                    "Events of streams that went out with the one before them, because of stream.coalesce_ms.",
                    "cps",
                    (rate(declared.JOINED_EVENTS),),
                ),
            ),
        ),
        Section(
            "Pictures, videos and sound",
            (
                Panel(
                    "Media by way",
                    "Pictures, videos and sound handed to engines: as tensors, as references, or as files.",
                    "cps",
                    (rate(media.MEDIA_ITEMS, "modality", "way"),),
                ),
                Panel(
                    "Time of a picture",
                    "By stage, nineteen of twenty.",
                    "s",
                    (quantile(media.MEDIA_SECONDS, 0.95, "stage"),),
                ),
                Panel(
                    "Pictures seen before",
                    "Whose patches were kept, were being made for another request, or had to be made.",
                    "cps",
                    (rate(media.MEDIA_CACHE, "outcome"),),
                ),
                Panel(
                    "Refused for media",
                    "By the code of the error.",
                    "cps",
                    (rate(media.MEDIA_REFUSALS, "reason"),),
                ),
                Panel(
                    "Files of media",
                    "Bytes in requests and fetched.",
                    "Bps",
                    (rate(media.MEDIA_BYTES, "modality", "source"),),
                ),
                Panel(
                    "Memory of media",
                    "What those under way take, and what is kept.",
                    "bytes",
                    (total(media.MEDIA_INFLIGHT_BYTES), total(media.MEDIA_CACHE_BYTES)),
                ),
                Panel(
                    "Pictures under way",
                    "Being made, or waiting for a thread.",
                    "short",
                    (total(media.MEDIA_UNDER_WAY),),
                ),
                Panel(
                    "Pictures encoded apart",
                    "By engines that do only that, by how the call went.",
                    "cps",
                    (rate(media.ENCODE_ITEMS, "outcome"),),
                ),
                Panel(
                    "Time until a picture is accepted",
                    "By such an engine, nineteen of twenty.",
                    "s",
                    (quantile(media.ENCODE_SECONDS, 0.95, "outcome"),),
                ),
            ),
        ),
    ),
)
