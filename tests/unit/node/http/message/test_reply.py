import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import HTTP_STATUS, ErrorKind, SmgError
from smg_node.http.message.reply import HeadWriter, name_list
from smg_node.http.middleware.error_replies import error_reply
from support.tools.example_counts import example_count


class ManualClock:
    """A clock that stands still until told, at the beginning of all time."""

    def __init__(self) -> None:
        self._ms = 0

    def now_ms(self) -> int:
        return self._ms

    def monotonic_s(self) -> float:
        return 5 + self._ms / 1000

    def pass_s(self, time_s: float) -> None:
        self._ms += round(time_s * 1000)


def told(error: SmgError) -> dict[str, str]:
    return error_reply(error, route=None, dialects={}, request_id="r").headers


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_kind_of_error_has_an_answer_with_its_code(kind: ErrorKind) -> None:
    reply = error_reply(SmgError(kind, "words"), route=None, dialects={}, request_id="r")
    assert reply.status == HTTP_STATUS[kind]
    assert reply.headers["x-smg-error-code"]
    assert (b"words" in reply.body) == (kind is not ErrorKind.INTERNAL)


def test_a_full_node_says_when_to_come_again_and_never_after_more_than_a_minute() -> None:
    headers = told(SmgError(ErrorKind.RATE_LIMITED, "slow down", retry_after_s=3600))
    assert headers["retry-after"] == "60"
    assert headers["retry-after-ms"] == "60000"
    assert headers["x-should-retry"] == "true"


def test_part_of_a_second_is_rounded_up_in_seconds_and_kept_in_milliseconds() -> None:
    headers = told(SmgError(ErrorKind.OVERLOADED, "busy", retry_after_s=0.25))
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("1", "250")


@pytest.mark.parametrize("kind", [ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED])
def test_a_refusal_for_load_always_names_a_time(kind: ErrorKind) -> None:
    assert told(SmgError(kind, "full"))["retry-after"] == "1"


def test_a_conflict_is_worth_another_try_only_if_waiting_helps() -> None:
    assert told(SmgError(ErrorKind.CONFLICT, "no"))["x-should-retry"] == "false"
    broken = SmgError(ErrorKind.UPSTREAM_FAILED, "no")
    broken.once = True
    assert told(broken)["x-should-retry"] == "false"
    busy = SmgError(ErrorKind.CONFLICT, "busy", retry_after_s=2)
    assert told(busy)["x-should-retry"] == "true"


def test_what_cannot_be_done_is_not_tried_again() -> None:
    error = SmgError(ErrorKind.UPSTREAM_FAILED, "cannot", status=501)
    assert told(error)["x-should-retry"] == "false"


@pytest.mark.parametrize("kind", [ErrorKind.INVALID_REQUEST, ErrorKind.INTERNAL])
def test_other_errors_leave_retrying_to_the_client(kind: ErrorKind) -> None:
    assert not {"retry-after", "x-should-retry"} & set(told(SmgError(kind, "x")))


def test_a_missing_key_is_told_which_scheme_to_use() -> None:
    assert told(SmgError(ErrorKind.UNAUTHENTICATED, "who?"))["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("evil", ["a\nb: c", "a\r\nb: c", "a\rb"])
def test_a_header_cannot_smuggle_in_another(evil: str) -> None:
    with pytest.raises(AssertionError):
        HeadWriter(ManualClock()).head(200, "", {"x": evil})


def test_the_date_follows_the_clock() -> None:
    clock = ManualClock()
    heads = HeadWriter(clock)
    first = heads.head(200, "", {})
    assert b"date: Thu, 01 Jan 1970 00:00:00 GMT" in first
    clock.pass_s(0.2)
    assert heads.head(200, "", {}) == first
    clock.pass_s(0.6)
    assert heads.head(200, "", {}) == first
    clock.pass_s(0.2)
    assert b"00:00:01 GMT" in heads.head(200, "", {})


def test_a_head_has_the_lines_of_its_kind_then_its_headers_then_its_size() -> None:
    heads = HeadWriter(ManualClock())
    start = b"date: Thu, 01 Jan 1970 00:00:00 GMT\r\nserver: smg-node\r\n"
    start += b"x-content-type-options: nosniff\r\n"
    for _ in range(2):
        said = heads.head(404, "connection: close\r\ncontent-type: a/b", {"x": "1", "y": "é"}, 7)
        assert said == (
            b"HTTP/1.1 404 Not Found\r\n" + start + b"connection: close\r\ncontent-type: a/b\r\n"
            b"x: 1\r\ny: \xc3\xa9\r\ncontent-length: 7\r\n\r\n"
        )
        assert heads.head(204, "", {}) == b"HTTP/1.1 204 No Content\r\n" + start + b"\r\n"


def test_browsers_are_told_to_come_by_https_where_a_time_is_given() -> None:
    line = b"strict-transport-security: max-age=31536000\r\n"
    heads = HeadWriter(ManualClock(), 31_536_000)
    assert heads.head(200, "", {}).count(line) == 1
    form = heads.form((("x", None),), ())
    said = heads.filled(form, ("1",), "connection: close\r\n")
    assert said.count(line) == 1
    assert said == heads.head(200, "connection: close", {"x": "1"})
    plain = HeadWriter(ManualClock())
    assert b"strict" not in plain.head(200, "", {}) + plain.filled(
        plain.form((), ()), (), "connection: close\r\n"
    )


Q = "% \r\nd:é\ud800("
HEADS = st.tuples(
    st.sampled_from([200, 404, 499, 799]),
    st.sampled_from(["", "connection: close", "a: %s\r\nb: 100%"]),
    st.dictionaries(st.text("%sx-(", min_size=1, max_size=3), st.text(Q, max_size=4), max_size=3),
    st.none() | st.integers(0, 9),
)


@settings(max_examples=example_count(150))
@given(st.lists(HEADS, max_size=6))
def test_heads_of_any_kinds_say_what_their_lines_say_one_by_one(
    asked: list[tuple[int, str, dict[str, str], int | None]],
) -> None:
    heads = HeadWriter(ManualClock())
    for status, fixed, headers, size in asked + asked:
        first = heads.head(status, "", {}).removesuffix(b"\r\n\r\n").decode()
        lines = [first] + [fixed] * bool(fixed) + [f"{name}: {headers[name]}" for name in headers]
        lines += [] if size is None else [f"content-length: {size}"]
        if any("\r" in said or "\n" in said for said in headers.values()):
            with pytest.raises(AssertionError):
                heads.head(status, fixed, headers, size)
        else:
            whole = "\r\n".join([*lines, "", ""]).encode("utf-8", "replace")
            assert heads.head(status, fixed, headers, size) == whole


@pytest.mark.parametrize("evil", ["a\nb", "a\r\nb", "a\rb"])
def test_a_name_cannot_smuggle_in_a_header_either(evil: str) -> None:
    heads = HeadWriter(ManualClock())
    for _ in range(2):
        with pytest.raises(AssertionError):
            heads.head(200, "", {evil: "x"})


@settings(max_examples=example_count(200))
@given(st.lists(st.text(max_size=100), max_size=50))
def test_any_names_make_a_header_value(names: list[str]) -> None:
    value = name_list(names)
    assert value.isascii()
    assert value.isprintable()
    assert len(value) < 4096
    HeadWriter(ManualClock()).head(200, "", {"x-smg-ignored-params": value})


def test_names_beyond_the_first_are_counted() -> None:
    assert name_list(["a", "b é", "c[0].d"]) == "a, b??, c[0].d"
    assert name_list([f"p{n}" for n in range(40)]).endswith("p31, and 8 more")
