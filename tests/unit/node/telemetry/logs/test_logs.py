import contextlib
import io
import json
import logging
import os
import sys
import time
from collections.abc import Iterator

import pytest

from smg_node.telemetry.logs.access_log import AT_ONCE, AccessLine, AccessLog
from smg_node.telemetry.logs.line_sink import LineSink
from smg_node.telemetry.logs.logs import ConsoleLines, JsonLines, open_logs, without_secrets
from smg_node.telemetry.traces import request_scope as scope
from support.http.access_lines import LineList


@pytest.fixture(autouse=True)
def _outside_of_any_request() -> Iterator[None]:
    yield
    scope.enter(("", scope.NO_TRACE))


def record(message: str, *args: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("smg_node.http", logging.WARNING, "f.py", 1, message, args, None)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_a_json_line_has_time_level_message_fields_and_the_request() -> None:
    scope.enter(("req_1", scope.Trace("a" * 32)))
    line = json.loads(JsonLines().format(record("hello %s", "you", fields={"worker": "w", "n": 2})))
    assert line["time"].endswith("Z")
    del line["time"]
    assert line == {
        "level": "warning",
        "logger": "smg_node.http",
        "message": "hello you",
        "request_id": "req_1",
        "trace_id": "a" * 32,
        "worker": "w",
        "n": 2,
    }


def test_fields_cannot_replace_what_a_line_is() -> None:
    line = json.loads(JsonLines().format(record("m", fields={"level": "x", "message": "y"})))
    assert (line["level"], line["message"]) == ("warning", "m")


def test_outside_a_request_there_is_no_request_id() -> None:
    assert "request_id" not in json.loads(JsonLines().format(record("m")))


def test_a_traceback_is_part_of_the_one_line() -> None:
    try:
        raise ValueError("boom")
    except ValueError:
        made = record("failed", exc_info=sys.exc_info())
    text = JsonLines().format(made)
    assert "\n" not in text
    assert "ValueError: boom" in json.loads(text)["error"]
    assert "ValueError: boom" in ConsoleLines().format(made)


def test_a_message_that_is_no_text_is_written_all_the_same() -> None:
    made = record("broken \ud800 %s", "\udfff", fields={"name": "\ud800"})
    line = json.loads(JsonLines().format(made))
    assert line["message"] == "broken \\ud800 \\udfff"
    assert line["name"] == "\\ud800"


def test_a_console_line_is_for_eyes() -> None:
    scope.enter(("req_1", scope.NO_TRACE))
    text = ConsoleLines().format(record("hello", fields={"worker": "w"}))
    assert text.endswith("warning http: hello worker=w request_id=req_1")


@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Bearer abc.def-ghi",
        "authorization=Basic dXNlcjpwYXNz",
        "x-api-key: abcdefgh12",
        '{"api_key": "abcdefgh12"}',
        "api-key='abcdefgh12'",
        "key sk-abcdefgh12abcdefgh12 was used",
        "postgresql://user:abcdefgh12@host/db",
        "token=abcdefgh12&x=1",
        "password: abcdefgh12",
    ],
)
def test_what_looks_like_a_credential_is_blanked(secret: str) -> None:
    text = without_secrets(secret)
    assert "***" in text
    for leak in ("abc.def-ghi", "abcdefgh12", "dXNlcjpwYXNz"):
        assert leak not in text


@pytest.mark.parametrize(
    "text", ["max_tokens: 512", "tokens=17", "the token budget", "task-force", "risk-averse people"]
)
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert without_secrets(text) == text


def test_logging_goes_to_the_sink_as_long_as_it_is_open() -> None:
    stream = io.BytesIO()
    before = logging.getLogger().level
    logs, sink = open_logs(stream, line_format="auto", level="info")
    logging.getLogger("smg_node.x").info("one")
    logging.getLogger("smg_node.x").debug("too small")
    logging.getLogger("smg_node.x").info("sent Bearer abcdefghijk")
    logs.close()
    logging.getLogger("smg_node.x").error("after")
    sink.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in lines] == ["one", "sent Bearer ***"]
    assert logging.getLogger().level == before


def test_a_sink_writes_in_order_and_everything_at_the_end() -> None:
    stream = io.BytesIO()
    sink = LineSink(stream)
    for n in range(1000):
        sink.put(b"%d\n" % n)
    sink.close()
    sink.close()
    assert stream.getvalue() == b"".join(b"%d\n" % n for n in range(1000))
    assert sink.dropped == 0


def test_a_reader_that_has_stopped_costs_lines_and_not_the_node() -> None:
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "wb")
    sink = LineSink(stream, buffer_bytes_max=100_000)
    for _ in range(50):
        sink.put(b"x" * 9_999 + b"\n")
    assert 0 < sink.dropped < 50
    os.close(reading)  # unblocks the writer with an error, so that the test can end
    sink.close(10)
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def test_a_stream_that_breaks_is_counted_and_not_raised() -> None:
    stream = io.BytesIO()
    sink = LineSink(stream)
    stream.close()
    sink.put(b"x\n")
    sink.close()
    assert sink.dropped == 1


def line(request_id: str = "r") -> AccessLine:
    return AccessLine(
        time_ms=5, request_id=request_id, method="GET", path="/a\nb", status=200, duration_ms=1.25
    )


def test_an_access_line_is_json_without_what_is_empty() -> None:
    lines = LineList()
    AccessLog(lines).record(line())
    assert json.loads(lines.lines[0]) == {
        "log": "access",
        "time_ms": 5,
        "request_id": "r",
        "method": "GET",
        "path": "/a\nb",
        "status": 200,
        "duration_ms": 1.25,
    }
    assert lines.lines[0].count(b"\n") == 1


def test_a_readable_access_line_stays_one_line() -> None:
    lines = LineList()
    AccessLog(lines, readable=True).record(line())
    assert lines.lines == [b"00:00:00.005 info    access: GET /a b 200 1.2ms r\n"]


@pytest.mark.parametrize("count", [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE + 2])
@pytest.mark.parametrize("readable", [False, True])
def test_every_access_line_is_written_once_and_in_order(count: int, readable: bool) -> None:
    stream = io.BytesIO()
    sink = LineSink(stream)
    log = AccessLog(sink, readable=readable)
    for number in range(count):
        log.record(line(f"r{number}"))
    sink.close()
    written = stream.getvalue().splitlines()
    ids = [
        one.split()[-1].decode() if readable else json.loads(one)["request_id"] for one in written
    ]
    assert ids == [f"r{number}" for number in range(count)]


def test_access_lines_that_nobody_waits_for_are_written_soon() -> None:
    stream = io.BytesIO()
    sink = LineSink(stream)
    log = AccessLog(sink)
    for number in range(3):
        log.record(line(f"r{number}"))
        assert not stream.getvalue().count(b"\n") > number, "one at a time"
        ended_s = time.monotonic() + 10
        while stream.getvalue().count(b"\n") <= number and time.monotonic() < ended_s:
            time.sleep(0.01)
        assert stream.getvalue().count(b"\n") == number + 1
    sink.close()


def test_without_a_sink_nothing_is_written() -> None:
    log = AccessLog(None)
    assert not log.enabled
    log.record(line())
