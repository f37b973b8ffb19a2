"""Answers that say that a session is not known, and those that only look so."""

import pytest

from smg_node.mcp.failures import Failure, FailureKind, bare_status, lost, refused, timed_out
from smg_node.mcp.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN, Revision
from smg_node.mcp.session.forgotten_session import (
    RESENDS_FEW,
    RESENDS_MANY,
    all_forgotten,
    forgets,
    resends,
)
from smg_node.mcp.session.session import RequestIds, Session

NO_SESSION = "Bad Request: No valid session ID provided"


def session(revision: Revision = NEWEST_HANDSHAKE, id_: str = "s-1") -> Session:
    made = Session(revision, RequestIds("a.1"), by_http=True)
    made.session_id = id_
    return made


def error(code: int, status: int, message: str) -> Failure:
    return Failure(FailureKind.PROTOCOL, code, message, status=status)


@pytest.mark.parametrize(
    ("failure", "so"),
    [
        (bare_status(404), True),
        (error(-32001, 404, "Session not found"), True),
        (error(-32601, 404, "no such thing"), True),
        # Servers made after the examples of the TypeScript SDK, and one whose transport serves one session.
        (error(-32000, 400, NO_SESSION), True),
        (error(-32000, 400, "Bad Request: Server not initialized"), True),
        (error(-32000, 400, "Bad Request: no idea"), False),
        (error(-32602, 400, NO_SESSION), False),
        (error(-32000, 0, NO_SESSION), False),
        (bare_status(400), False),
        (bare_status(410), False),
        (lost("404", sent=True), False),
        (timed_out("404"), False),
        (refused("404"), False),
    ],
)
def test_what_says_that_a_session_is_not_known(failure: Failure, so: bool) -> None:
    assert forgets(session(), failure) is so
    assert not forgets(session(id_=""), failure)
    assert not forgets(session(NEWEST_MODERN), failure)


def test_a_server_that_was_seen_scattered_or_has_just_answered_is_asked_more_often() -> None:
    new, known, scattered, ended = (session() for _ in range(4))
    known.known = scattered.known = scattered.scattered = ended.ended = True
    known.known_s = 100.0
    assert [resends(one, 200.0) for one in (new, known, scattered, ended)] == [
        RESENDS_MANY,
        RESENDS_FEW,
        RESENDS_MANY,
        0,
    ]
    assert resends(known, 101.0) == RESENDS_MANY
    assert resends(session(id_=""), 0.0) == resends(session(NEWEST_MODERN), 0.0) == 0


def test_a_call_that_no_session_took_was_not_sent() -> None:
    assert not all_forgotten().sent
