"""Client events of a Responses socket: whatever comes is read, or refused with a reason."""

from hypothesis import given
from hypothesis import strategies as st

from smg_node.dialects.responses.sockets.client_events import Create, LanedError, read_event

FIELDS = ("type", "stream_id", "generate", "stream", "background", "prompt_cache_options", "input")
VALUES = (
    *('"response.create"', '"response.steer"', '"a.b"', '""', "true", "false", "null", "1"),
    *("1e999", "9" * 400, "[]", "{}", '{"prewarm":true}', '{"prewarm":1e999}', '"\\u0041"'),
    *('"\\ud800"', "[" * 990 + "]" * 990, '{"a":' * 985 + "1" + "}" * 985, "[1,]", " null ", "nul"),
)


@given(
    st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(VALUES)),
    st.sampled_from(("previous_response_id", "response")),
    st.sampled_from(VALUES),
)
def test_whatever_comes_is_read_or_refused(fields: dict[str, str], name: str, value: str) -> None:
    said = ",".join(f'"{key}": {text}' for key, text in {**fields, name: value}.items())
    try:
        wish = read_event(f"{{{said}}}")
    except LanedError:
        return
    assert isinstance(wish.previous_id, str)
    if isinstance(wish, Create):
        assert bytes(wish.body["stream"]) == b"true"


def test_what_is_prepared_only_is_said_in_either_way() -> None:
    for said in ('"generate": false', '"prompt_cache_options": {"prewarm": true}'):
        wish = read_event(f'{{"type": "response.create", {said}}}')
        assert isinstance(wish, Create)
        assert not wish.generates
