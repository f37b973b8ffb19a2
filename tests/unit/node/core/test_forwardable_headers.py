"""Which headers of a client servers of tools may be told: never those that let it in here."""

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.forwardable_headers import forwardable


def test_what_lets_a_client_in_stays_here() -> None:
    headers = {
        "Authorization": "Bearer k",
        "x-api-key": "k",
        "X-Goog-Api-Key": "k",
        "cookie": "k",
        "proxy-authorization": "k",
        "mcp-session-id": "k",
        "x-smg-target-worker": "w",
        "host": "h",
        "content-length": "1",
        "connection": "close, X-Hop",
        "x-hop": "1",
        "X-Tenant": "t",
        "traceparent": "p",
    }
    assert forwardable(headers) == {"x-tenant": "t", "traceparent": "p"}


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=12)))
def test_names_are_in_lower_case_and_values_as_they_were(headers: dict[str, str]) -> None:
    told = forwardable(headers)
    lowered = {(name.lower(), value) for name, value in headers.items()}
    assert set(told.items()) <= lowered
