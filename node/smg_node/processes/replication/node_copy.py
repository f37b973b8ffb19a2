"""Node copy: shared state in a data process, sent by its control process, behind the usual views.

    copy = NodeCopy(node, uplink, …)
    await copy.arrived.wait()

It is a `cluster.workers.shared_port.SharedPort`, so that the registry, the verdicts and the fleet
of a data process are those of any node. A data process has a name that is no member's: so it is
never chosen to probe a worker, and follows the members' verdicts. Without a control process it goes
on with what it received last; after `VERDICTS_HOLD_S` the verdicts do not count any more, and it
probes workers itself.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from smg_mesh.shared import (
    AccessState,
    CarriedSecrets,
    Keys,
    LimitsView,
    ProvidersView,
    SettingsView,
    StateError,
    WorkerRegistry,
)
from smg_node.core.ports import Clock
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.copied_caches import CopiedCaches
from smg_node.processes.replication.copied_ports import (
    CopiedLoad,
    CopiedRunning,
    CopiedSticky,
    CopiedVerdicts,
)
from smg_node.processes.replication.copied_rates import CopiedRates
from smg_node.processes.replication.copied_sessions import CopiedSessions
from smg_node.processes.replication.namespace_copy import CopiedNamespace
from smg_node.processes.replication.state_messages import (
    CHANGES,
    NAMESPACES,
    SNAPSHOT,
    Changes,
    Node,
    read,
)

VERDICTS_HOLD_S: Final = 15.0
"""As long as a member's own word holds at least."""
SERVES_ALONE_S: Final = 60.0
"""So long a process without a control process calls itself ready: keys and limits may have changed since."""

_log = logging.getLogger("smg_node.processes")


class NodeCopy:
    """Copy of one data process. `node` is the node's name."""

    def __init__(self, node: str, uplink: Uplink, clock: Clock) -> None:
        self.name: Final = f"{node}/{uplink.process}"
        self.arrived: Final = asyncio.Event()
        """Set once there was a snapshot."""
        self._uplink: Final = uplink
        self._clock: Final = clock
        self._copies: Final = {name: CopiedNamespace(name) for name in NAMESPACES}
        self.workers: Final = WorkerRegistry(self._copies["workers"], self.name)
        self.settings: Final = SettingsView(self._copies["settings"], self.name)
        self.providers: Final = ProvidersView(self._copies["providers"], self.name)
        self.limits: Final = LimitsView(self._copies["limits"], wall_ms=clock.now_ms)
        self.keys: Final = Keys(self._copies["keys"])
        self.access: Final = AccessState(self._copies["access"])
        self.verdicts: Final = CopiedVerdicts(self._verdicts_hold)
        self.load: Final = CopiedLoad(uplink)
        self.sticky: Final = CopiedSticky(uplink, clock.now_ms)
        self.prompt_caches: Final = CopiedCaches(uplink)
        self.tool_sessions: Final = CopiedSessions(uplink, clock.now_ms)
        self.running: Final = CopiedRunning()
        self.rates: Final = CopiedRates(uplink)
        self._secrets: dict[bytes, str | None] = {}
        self._carried_keys: tuple[bytes, ...] | None = None
        self.carried: Final = CarriedSecrets(self._keys_of_carried)
        """Seals what clients carry."""
        self._node = Node()
        self._number = -1
        self._alone_since_s: float | None = clock.monotonic_s()
        self._lapse: asyncio.TimerHandle | None = None
        self._members: list[Callable[[Sequence[str]], None]] = []
        self._waiting: list[Callable[[], None]] = []
        self._nodes: list[Callable[[Node], None]] = []
        uplink.on(SNAPSHOT, self._begin)
        uplink.on(CHANGES, self._go_on)
        uplink.closed(self._cut)

    # ── What the control process says ────────────────────────────────────────

    def _begin(self, content: bytes) -> None:
        said = read(content, Changes)
        self._number = said.number
        # Before the rows: who hears of a row opens its secret at once.
        self._secrets = dict(said.secrets)
        self._carried_keys = said.carried
        for name, copied in self._copies.items():
            copied.replace(said.rows.get(name, {}))
        self._alone_since_s = None
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None
        self.verdicts.replace(said.sights)
        self.load.replace(said.calls)
        self.sticky.replace(said.bindings)
        self._take_node(said.node)
        self.arrived.set()

    def _go_on(self, content: bytes) -> None:
        said = read(content, Changes)
        if said.number != self._number + 1:
            _log.error("change %d of the node came after %d", said.number, self._number)
            self._uplink.begin_anew()
            return
        self._number = said.number
        self._secrets.update(said.secrets)
        if said.carried is not None:
            self._carried_keys = said.carried
        for name, rows in said.rows.items():
            self._copies[name].change(rows)
        self.verdicts.change(said.sights)
        self.load.change(said.calls)
        self.sticky.change(said.bindings)
        self._take_node(said.node)

    def _take_node(self, node: Node | None) -> None:
        if node is None or node == self._node:
            return
        before, self._node = self._node, node
        if node.living != before.living:
            for heard in self._members:
                heard(node.living)
        if node.held and not before.held:
            for arrived in self._waiting:
                arrived()
        for told in self._nodes:
            told(node)

    def _cut(self) -> None:
        self._alone_since_s = self._clock.monotonic_s()
        loop = asyncio.get_running_loop()
        self._lapse = loop.call_later(VERDICTS_HOLD_S, self.verdicts.tell_all)

    def _verdicts_hold(self) -> bool:
        alone_s = self.alone_s
        return alone_s is None or alone_s < VERDICTS_HOLD_S

    # ── What it is ───────────────────────────────────────────────────────────

    @property
    def node(self) -> Node:
        """The last report of the node as a whole."""
        return self._node

    @property
    def alone_s(self) -> float | None:
        """For how long there has been no control process; None while there is one."""
        since_s = self._alone_since_s
        return None if since_s is None else self._clock.monotonic_s() - since_s

    @property
    def held(self) -> bool:
        """Whether the node holds the cluster's state."""
        return self._node.held

    def living(self) -> Sequence[str]:
        """Return the names of the living members."""
        return self._node.living

    def digest(self) -> str:
        """Return nothing: a process's copy is never compared."""
        return ""

    def watch_node(self, heard: Callable[[Node], None]) -> None:
        """Call `heard` whenever the node as a whole has changed."""
        self._nodes.append(heard)

    def watch_members(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Report the living members whenever they change."""
        self._members.append(heard)

    def watch_forgotten(self, heard: Callable[[], None]) -> None:
        """Do nothing: a data process lists no workers itself."""

    def watch_held(self, heard: Callable[[], None]) -> None:
        """Report once when the cluster's state is here."""
        self._waiting.append(heard)

    def seal(self, secret: str) -> bytes:
        """Refuse: secrets are written by the control process."""
        self._refuse()

    def open_secret(self, sealed: bytes) -> str | None:
        """Return a secret that the control process could decrypt."""
        return self._secrets.get(sealed)

    def _keys_of_carried(self) -> tuple[bytes, ...]:
        if self._carried_keys is None:
            # Without them nothing may be sealed: it would be plain.
            self._refuse()
        return self._carried_keys

    def _refuse(self) -> NoReturn:
        raise StateError("closed", "the shared state is written by the control process")


def why_not_ready(copy: NodeCopy) -> Sequence[str]:
    """Return the reasons a data process is not ready, besides its workers and its own shutdown."""
    alone_s = copy.alone_s
    if alone_s is not None and alone_s > SERVES_ALONE_S:
        return (f"there has been no control process for {int(alone_s)} s",)
    return copy.node.reasons
