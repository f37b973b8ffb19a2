"""Processes that share a session while nodes die, servers forget and time passes: at last all are in one, and none leaks."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.session.session import RequestIds, Session
from smg_node.mcp.session.shared_session import SharedSession
from support.mcp.shared_session_world import IDLE_MS, RecordWorld, opened

NAMES = "abc"


@dataclass
class Server:
    """A server of sessions, and what it has been told of each."""

    known: set[str] = field(default_factory=set)
    opened: int = 0
    calls: int = 0

    def open(self) -> Session:
        self.opened += 1
        session = opened(f"s-{self.opened}")
        self.known.add(session.session_id)
        return session

    def call(self, session: Session) -> bool:
        """Return whether the session is known."""
        if session.session_id not in self.known:
            return False
        session.known = True
        self.calls += 1
        return True


class Caller:
    """One process, as its channel does it."""

    def __init__(self, world: RecordWorld, name: str, server: Server) -> None:
        self._world = world
        self._name = name
        self._server = server
        self.restart()

    def restart(self) -> None:
        """Begin anew, knowing nothing."""
        self.shared: SharedSession = self._world.shared(self._name)
        self.session: Session | None = None

    def call(self) -> str:
        """Make a call, which is done in at most three sessions; return in which."""
        for _ in range(3):
            session = self._opened()
            if self._server.call(session):
                self.shared.used(session, lists=False)
                return session.session_id
            self.shared.forgotten(session)
            self.session = None
        raise AssertionError("a call that no session took")

    def idle(self) -> None:
        """Let go of the session, as after a time without use."""
        session, self.session = self.session, None
        if session is not None and self.shared.ends(session, leaving=False):
            self._server.known.discard(session.session_id)

    def look(self) -> None:
        """See who uses the session by now, as is done now and then."""
        self.shared.find()

    def _opened(self) -> Session:
        record = self.shared.find()
        if self.session is not None and record is not None:
            if record.id == self.session.session_id:
                return self.session
            self.session = None
        if self.session is None and record is not None:
            adopted = self.shared.adopted(record, RequestIds(self._name))
            self.session = adopted.session if adopted is not None else None
        if self.session is None:
            self.session = self._server.open()
            self.shared.agreed(self.session, lists=False)
        return self.session


STEPS = st.one_of(
    st.tuples(st.sampled_from(["call", "call", "call", "kill", "look"]), st.sampled_from(NAMES)),
    st.tuples(st.just("forget"), st.just("")),
    st.tuples(st.just("wait"), st.sampled_from(["1000", "40000", str(IDLE_MS + 1)])),
)


@given(st.lists(STEPS, max_size=40))
def test_whatever_happens_all_are_in_one_session_at_last_and_it_is_ended_once(
    steps: list[tuple[str, str]],
) -> None:
    world, server = RecordWorld(alive=set(NAMES)), Server()
    callers = {name: Caller(world, name, server) for name in NAMES}
    for step, what in steps:
        match step:
            case "call":
                callers[what].call()
            case "kill":
                callers[what].restart()
            case "look":
                callers[what].look()
            case "forget":
                server.known.clear()
                # Servers are not started anew all the time.
                world.now_ms += 61_000
            case "wait":
                world.now_ms += int(what)
            case _:
                raise AssertionError(step)
    calls = server.calls
    assert not any(one.shared.apart for one in callers.values())
    last = [callers[name].call() for name in NAMES * 2]
    assert len(set(last)) == 1
    assert server.calls == calls + len(last)
    for one in callers.values():
        one.look()
    world.now_ms += IDLE_MS + 1
    for one in callers.values():
        one.idle()
    assert last[0] not in server.known
