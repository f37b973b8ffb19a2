"""Opening: playbooks of what a server answers, and what it is asked next."""

import json
from typing import Any

import pytest
from msgspec import Raw

from smg_node.mcp.failures import (
    Failure,
    FailureKind,
    bare_status,
    lost,
    timed_out,
    unreadable,
)
from smg_node.mcp.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN, REVISIONS, revision_named
from smg_node.mcp.session.opening import (
    Ask,
    Opened,
    Opening,
    OpeningPlan,
    Restart,
    Step,
    Transport,
    UseSse,
    Verdict,
)
from smg_node.mcp.session.session import Outcome, RequestIds, Success


def opening(
    transport: Transport | None = None, protocol: str = "", verdict: Verdict | None = None
) -> Opening:
    plan = OpeningPlan(transport, revision_named(protocol))
    return Opening(plan, RequestIds("a.1"), verdict)


def ok(**fields: Any) -> Success:
    return Success(Raw(json.dumps(fields).encode()))


def error(code: int, status: int = 0, **about: Any) -> Failure:
    data = json.dumps(about).encode()
    return Failure(FailureKind.PROTOCOL, code, "no", error_data=data, status=status)


def asks(step: Step) -> str:
    assert isinstance(step, Ask), step
    return step.request.method


MODERN = ok(
    supportedVersions=["2025-11-25", "2026-07-28"],
    capabilities={"tools": {}},
    _meta={"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
)
AGREED = ok(
    protocolVersion="2025-06-18", capabilities={}, serverInfo={"name": "old", "version": "2"}
)


def test_a_modern_server_is_open_after_one_question() -> None:
    machine = opening()
    assert asks(machine.first()) == "server/discover"
    opened = machine.heard(MODERN)
    assert isinstance(opened, Opened)
    assert opened.verdict == Verdict(Transport.HTTP, NEWEST_MODERN)
    assert not opened.handshake
    assert (opened.session.facts.name, opened.session.facts.version) == ("s", "1")


@pytest.mark.parametrize(
    "refusal",
    [
        error(-32601),
        error(-32600, 400),
        error(-32000, 400),
        error(-32603, 500),
        bare_status(400),
        bare_status(404),
        bare_status(405),
        bare_status(406),
        unreadable("x"),
        ok(supportedVersions=["2025-11-25"]),
        ok(supportedVersions="2026-07-28"),
        ok(),
        ok(supportedVersions=[{}, 3]),
    ],
)
def test_what_an_older_server_may_say_leads_to_a_handshake(refusal: Outcome) -> None:
    machine = opening()
    machine.first()
    step = machine.heard(refusal)
    assert asks(step) == "initialize"
    opened = machine.heard(AGREED, "s-1")
    assert isinstance(opened, Opened)
    assert opened.handshake
    assert opened.verdict.revision.name == "2025-06-18"
    assert opened.session.session_id == "s-1"
    assert opened.session.facts.name == "old"


@pytest.mark.parametrize(
    "failure",
    [
        bare_status(401),
        bare_status(403),
        bare_status(429),
        bare_status(500),
        bare_status(503),
        bare_status(302),
        error(-32001, 401),
        lost("failed to connect", sent=False),
        lost("broke", sent=True),
        timed_out("late"),
    ],
)
def test_what_says_nothing_of_the_protocol_is_an_error(failure: Failure) -> None:
    machine = opening()
    machine.first()
    assert machine.heard(failure) == failure


def test_a_revision_that_is_refused_is_asked_again_in_a_common_one_and_not_for_ever() -> None:
    machine = opening()
    machine.first()
    refusal = error(-32022, 400, supported=["2026-07-28"])
    assert asks(machine.heard(refusal)) == "server/discover"
    assert machine.heard(refusal) == refusal


def test_a_server_of_old_revisions_only_says_so() -> None:
    machine = opening()
    machine.first()
    assert asks(machine.heard(error(-32022, 400, supported=["2025-11-25"]))) == "initialize"


def test_a_server_without_a_common_revision_is_a_failure_that_names_them() -> None:
    machine = opening()
    machine.first()
    failure = machine.heard(error(-32022, 400, supported=["2099-01-01"]))
    assert isinstance(failure, Failure)
    assert "2099-01-01" in failure.message


@pytest.mark.parametrize("status", [400, 404, 405])
def test_the_old_transport_is_tried_last(status: int) -> None:
    machine = opening()
    machine.first()
    machine.heard(bare_status(status))
    assert machine.heard(bare_status(status)) == UseSse()
    assert asks(machine.went_on()) == "initialize"
    opened = machine.heard(AGREED)
    assert isinstance(opened, Opened)
    assert opened.verdict.transport is Transport.SSE
    assert not opened.session.by_http


def test_without_an_old_stream_the_first_refusal_counts() -> None:
    machine = opening()
    machine.first()
    machine.heard(bare_status(404))
    machine.heard(bare_status(405))
    assert machine.went_on(bare_status(410)) == bare_status(405)


@pytest.mark.parametrize("refusal", [bare_status(406), bare_status(500), error(-32602, 400)])
def test_other_refusals_of_a_handshake_are_errors(refusal: Failure) -> None:
    machine = opening()
    machine.first()
    machine.heard(bare_status(404))
    assert machine.heard(refusal) == refusal


def test_a_named_transport_is_no_question() -> None:
    assert opening(Transport.SSE).first() == UseSse()
    machine = opening(Transport.HTTP)
    machine.first()
    machine.heard(bare_status(404))
    assert machine.heard(bare_status(404)) == bare_status(404)


def test_a_named_revision_is_no_question() -> None:
    opened = opening(protocol="2026-07-28").first()
    assert isinstance(opened, Opened)
    step = opening(protocol="2025-03-26").first()
    assert asks(step) == "initialize"
    assert isinstance(step, Ask)
    assert json.loads(step.request.body)["params"]["protocolVersion"] == "2025-03-26"


@pytest.mark.parametrize("agreed", ["2026-07-28", "2099-01-01", None, 7, ["x"]])
def test_a_revision_that_no_handshake_leads_to_is_a_failure(agreed: Any) -> None:
    machine = opening(protocol="2025-11-25")
    machine.first()
    assert isinstance(machine.heard(ok(protocolVersion=agreed)), Failure)


def test_a_session_id_that_no_header_holds_is_a_failure() -> None:
    machine = opening(protocol="2025-11-25")
    machine.first()
    assert isinstance(machine.heard(AGREED, "a\tb"), Failure)


def test_a_handshake_refused_by_a_modern_server_leads_back() -> None:
    machine = opening()
    machine.first()
    machine.heard(unreadable("x"))
    refusal = error(-32022, 400, supported=["2026-07-28"])
    assert asks(machine.heard(refusal)) == "server/discover"
    assert isinstance(machine.heard(MODERN), Opened)


def test_a_process_that_stays_silent_or_ends_is_given_a_handshake() -> None:
    silent = opening(Transport.STDIO)
    silent.first()
    assert asks(silent.heard(timed_out("late"))) == "initialize"
    ended = opening(Transport.STDIO)
    ended.first()
    assert ended.heard(lost("its process has ended", sent=True)) == Restart()
    assert asks(ended.went_on()) == "initialize"
    unstarted = opening(Transport.STDIO)
    unstarted.first()
    failure = lost("cannot be run", sent=False)
    assert unstarted.heard(failure) == failure


def test_a_verdict_saves_the_question() -> None:
    modern = opening(verdict=Verdict(Transport.HTTP, NEWEST_MODERN)).first()
    assert isinstance(modern, Opened)
    assert asks(opening(verdict=Verdict(Transport.HTTP, NEWEST_HANDSHAKE)).first()) == "initialize"
    assert opening(verdict=Verdict(Transport.SSE, REVISIONS[0])).first() == UseSse()


def test_a_verdict_that_is_contradicted_is_asked_anew() -> None:
    machine = opening(verdict=Verdict(Transport.HTTP, NEWEST_HANDSHAKE))
    machine.first()
    assert asks(machine.heard(error(-32601, 400))) == "server/discover"
    assert isinstance(machine.heard(MODERN), Opened)
    stream = opening(verdict=Verdict(Transport.SSE, NEWEST_HANDSHAKE))
    stream.first()
    assert asks(stream.went_on(bare_status(405))) == "server/discover"


def test_a_verdict_survives_what_says_nothing() -> None:
    machine = opening(verdict=Verdict(Transport.HTTP, NEWEST_HANDSHAKE))
    machine.first()
    assert machine.heard(bare_status(503)) == bare_status(503)
