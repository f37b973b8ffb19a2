"""Forgotten sessions: answers that say that a server does not know a session, and how often it is asked again. Pure.

    404                              as the specification has it
    400, -32000, a word of sessions  as servers made after the examples of the TypeScript SDK have it

Such a request was not worked on, so it may be sent again whatever it does. Either the session is gone, or another replica
of the server has it, and what stands before them sends each request, or each connection, to any of them. So it is sent
again in the same session, on another connection: a few times to a server whose sessions have held so far, more often to
one that was seen to be scattered, or that forgets a session which it has opened or answered in just now.
"""

from typing import Final

from smg_node.mcp.failures import Failure, FailureKind, lost
from smg_node.mcp.session.session import Session

RESENDS_FEW: Final = 2
"""With three replicas in turn the one that knows the session is asked within these."""
RESENDS_MANY: Final = 15
"""Of three replicas asked by chance one is missed so often once in 650 times, and then the session is opened anew."""
OPENINGS_MAX: Final = 3
"""So many sessions in a row are opened for what is worth nothing without one."""
_JUST_NOW_S: Final = 5.0
MAY_FORGET: Final = (400, 404)
_GONE: Final = 404
_OLD_REFUSAL: Final = -32000
_WORDS: Final = ("session", "not initialized")


def forgets(session: Session, outcome: object) -> bool:
    """Whether an answer to a request of a session says that the session is not known."""
    if not isinstance(outcome, Failure) or not session.session_id or session.revision.modern:
        return False
    if outcome.kind is FailureKind.HTTP:
        return outcome.code == _GONE
    if outcome.kind is not FailureKind.PROTOCOL:
        return False
    if outcome.status == _GONE:
        return True
    refused = outcome.status == MAY_FORGET[0] and outcome.code == _OLD_REFUSAL
    return refused and any(word in outcome.message.lower() for word in _WORDS)


def resends(session: Session, now_s: float) -> int:
    """Return how often a request is sent again in a session that was not known; none if another is in its place."""
    if not session.session_id or session.revision.modern or session.ended:
        return 0
    just_now = now_s - session.known_s <= _JUST_NOW_S
    return RESENDS_MANY if session.scattered or just_now or not session.known else RESENDS_FEW


def all_forgotten() -> Failure:
    """Return the failure of a call in a server that forgets every session; nothing was run."""
    why = "the server forgets each session right after opening it: its replicas do not share them"
    return lost(why, sent=False)
