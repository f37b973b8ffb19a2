import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.telemetry.traces.trace_context import TraceContext, parse
from support.tools.example_counts import example_count

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


def test_a_good_parent_is_read_and_written_again() -> None:
    context = parse(GOOD, "vendor=1, other=2")
    assert context == TraceContext(TRACE, SPAN, True, "vendor=1, other=2")
    assert context.headers() == {"traceparent": GOOD, "tracestate": "vendor=1, other=2"}


def test_unknown_flags_are_dropped_and_the_known_one_kept() -> None:
    assert parse(f"00-{TRACE}-{SPAN}-ff") == TraceContext(TRACE, SPAN, True)
    assert parse(f"00-{TRACE}-{SPAN}-02") == TraceContext(TRACE, SPAN, False)


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert parse(f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be") is not None
    assert parse(f"cc-{TRACE}-{SPAN}-01.what") is None


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00",
        GOOD.upper(),
        GOOD + "-more",
        GOOD[:-1],
        GOOD.replace("-", "_"),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0١",
        "x" * 100_000,
    ],
)
def test_what_is_not_exactly_right_is_none(parent: str) -> None:
    assert parse(parent) is None


@pytest.mark.parametrize("state", ["a=\n1", "é=1", ",".join(["a=1"] * 40), "a" * 2000, "\x00"])
def test_a_state_nobody_can_trust_is_dropped_and_the_trace_goes_on(state: str) -> None:
    assert parse(GOOD, state) == TraceContext(TRACE, SPAN, True)


@settings(max_examples=example_count(300))
@given(
    st.text(max_size=80) | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{30,33}-[0-9a-f]{16}-[0-9a-f]{2}.?"),
    st.text(),
)
def test_any_two_headers_give_a_context_that_survives_a_round_trip_or_none(
    parent: str, state: str
) -> None:
    context = parse(parent, state)
    if context is not None:
        headers = context.headers()
        assert parse(headers["traceparent"], headers.get("tracestate", "")) == context
        assert all(value.isascii() and value.isprintable() for value in headers.values())
