"""Knobs of the calls to engines."""

from typing import Literal

from smg_node.config.declare import Section, choice, number


class EngineCalls(Section):
    """How engines are called, and how long each part of a call may take."""

    transport: Literal["grpcio"] = choice("grpcio", "Library that speaks gRPC to the engines.")
    connect_s: float = number(
        5,
        "Seconds to connect to a worker before another one is tried.",
        low=0.05,
        high=600,
        why="below 50 ms a far engine is unreachable; above 10 minutes no client still waits",
    )
    first_event_s: float = number(
        600,
        "Seconds to the first token of an answer.",
        low=0.1,
        high=86_400,
        why="below 0.1 s no engine answers; a call never outlives a day",
    )
    stall_s: float = number(
        300,
        "Seconds between two tokens of an answer.",
        low=0.1,
        high=86_400,
        why="below 0.1 s ordinary batching is a stall; a call never outlives a day",
        aliases=("--stream-body-stall-timeout-secs",),
    )
    request_s: float = number(
        1800,
        "Seconds for a whole answer.",
        low=0.1,
        high=86_400,
        why="below 0.1 s no engine answers; a call never outlives a day",
        aliases=("--request-timeout-secs",),
    )
    ping_interval_s: float = number(
        30,
        "Seconds between HTTP/2 pings on a connection with open streams.",
        low=1,
        high=3600,
        why="engines close connections that ping more than once a second; routers forget idle ones in an hour",
    )
    message_max_bytes: int = number(
        67_108_864,
        "Largest gRPC message in either direction.",
        low=65_536,
        high=2_147_483_647,
        why="a tokenizer chunk needs 64 KiB; gRPC counts message bytes in 31 bits",
    )
