"""Settings service: answers the HTTP surface about cluster settings, checks and writes changes.

A value is checked before it is written: what this version cannot read is refused. What another node
runs is asked of that node.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_mesh.shared import StateError
from smg_node.cluster.definition_ports import SharedValue
from smg_node.cluster.membership.errors import no_member
from smg_node.cluster.membership.member_query import MemberQueries, query_member
from smg_node.cluster.settings.live_settings import (
    CLUSTER,
    LiveSettings,
    RunningStore,
    SettingsStore,
    Strange,
)
from smg_node.config.schema.live_settings import LiveError, plain
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.ports.shared_state import (
    ConfigState,
    SettingChange,
    SettingDifference,
    SettingProblem,
    SettingRival,
    SettingView,
    StaleSettingError,
)

SETTINGS: Final = "node.settings"
_VALUE: Final = "value"


class ClusterSettings:
    """The settings of the whole cluster, as this node sees and changes them."""

    def __init__(
        self,
        name: str,
        live: LiveSettings,
        store: SettingsStore,
        running: RunningStore,
        mesh: MemberQueries | None,
    ) -> None:
        self._name = name
        self._live = live
        self._store = store
        self._running = running
        self._mesh = mesh
        if mesh is not None:
            mesh.answer(SETTINGS, self._asked)

    # ── Seeing ───────────────────────────────────────────────────────────────

    def settings(self, *, unset: bool) -> Sequence[SettingView]:
        """Return those that are set, with `unset` all that could be, sorted by key."""
        self._live.refresh()
        keys = {
            *(said.key for said in self._store.all()),
            *self._live.ignored(),
            *(self._live.known() if unset else ()),
        }
        strange = {one.key: one for one in self._store.unreadable()}
        return [self._view(key, strange.get(key)) for key in sorted(keys)]

    def setting(self, key: str) -> SettingView:
        """Return one, set or not; NOT_FOUND `setting_not_found` for an unknown key."""
        self._live.refresh()
        if self._store.get(key) is None and key not in self._live.ignored():
            self._known(key)
        return self._view(key, self._strange(key))

    def states(self) -> Mapping[str, ConfigState]:
        """Return the settings each living node, this one included, reports to run, by name."""
        said = {
            name: ConfigState(str(row.get("settings", "")), str(row.get("effective", "")))
            for name, row in self._running.all().items()
        }
        return dict(sorted({**said, self._name: self._live.state()}.items()))

    async def difference(self, node: str) -> Sequence[SettingDifference]:
        """Compare this node's own configuration (left) with the cluster (right), or with what
        `node` runs.
        """
        self._live.refresh()
        if node in ("", self._name):
            return self._from_cluster()
        if self._mesh is None:
            raise no_member(node)
        said = await query_member(self._mesh, node, SETTINGS)
        theirs = _runs(said, node)
        mine = self._runs()
        nothing = (None, "")
        return [
            SettingDifference(key, *mine.get(key, nothing), *theirs.get(key, nothing))
            for key in sorted({*mine, *theirs})
            if mine.get(key, nothing)[0] != theirs.get(key, nothing)[0]
        ]

    def _from_cluster(self) -> list[SettingDifference]:
        rows = []
        for view in self.settings(unset=False):
            if view.source == CLUSTER and view.value != view.own:
                whose = "default" if view.own == view.about.get("default") else "node"
                rows.append(SettingDifference(view.key, view.own, whose, view.value, CLUSTER))
        return rows

    def _runs(self) -> dict[str, tuple[Any, str]]:
        live = self._live
        return {
            key: (plain(live.value(key)), live.source(key))
            for key in live.known()
            if key not in live.ignored()
        }

    async def _asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer that wants to know what this node runs."""
        self._live.refresh()
        return msgspec.json.encode(self._runs())

    # ── Changing ─────────────────────────────────────────────────────────────

    def change(self, key: str, value: Any, *, version: int | None) -> SettingChange:
        """Set it on all nodes; see `SettingsService`."""
        self._known(key)
        try:
            read = self._live.table.read(key, value)
        except LiveError as error:
            where = f"{_VALUE}{error.where}"
            raise invalid(f"{key}: {error.message}", where, "invalid_setting") from error
        return self._write(key, plain(read), version=version)

    def unset(self, key: str, *, version: int | None) -> SettingChange:
        """Go back to each node's own value; NOT_FOUND if it is not set."""
        if self._store.get(key) is None and self._strange(key) is None:
            self._known(key)
            raise SmgError(
                ErrorKind.NOT_FOUND, f"{key} is not set", where="key", code="setting_not_set"
            )
        return self._write(key, None, version=version)

    def restore(self, values: Mapping[str, Any]) -> Sequence[SettingChange]:
        """Set all of these, None unsets; nothing is written if one of them cannot be."""
        problems = self.check({key: value for key, value in values.items() if value is not None})
        if problems:
            said = "; ".join(f"{problem.key}: {problem.message}" for problem in problems)
            raise invalid(f"it cannot be as it was: {said}", None, "invalid_setting")
        return [self._write(key, value, version=None) for key, value in sorted(values.items())]

    def check(self, values: Mapping[str, Any]) -> Sequence[SettingProblem]:
        """Return what is wrong with these, without effect."""
        problems = []
        for key, value in values.items():
            try:
                self._live.table.read(key, value)
            except LiveError as error:
                where = f"settings[{msgspec.json.encode(key).decode()}]{error.where}"
                problems.append(SettingProblem(key, error.message, where))
        return problems

    def _write(self, key: str, value: Any, *, version: int | None) -> SettingChange:
        before = self._store.get(key)
        try:
            if value is None:
                self._store.remove(key, version=version)
            else:
                self._store.set(key, value, version=version)
        except StateError as error:
            if error.reason == "stale":
                raise StaleSettingError(self._view(key, self._strange(key))) from error
            raise _refused(error) from error
        self._live.refresh()
        return SettingChange(None if before is None else before.value, self._view(key, None))

    def _known(self, key: str) -> None:
        try:
            self._live.table.find(key)
        except LiveError as error:
            raise SmgError(
                ErrorKind.NOT_FOUND, error.message, where="key", code="setting_not_found"
            ) from error

    # ── Showing ──────────────────────────────────────────────────────────────

    def _view(self, key: str, strange: Strange | None) -> SettingView:
        live = self._live
        try:
            knob, _ = live.table.find(key)
        except LiveError:
            own = effective = None
            source, about = "", {}
        else:
            own, effective = plain(live.own_value(key)), plain(live.value(key))
            source, about = live.source(key), dict(knob.about())
        said = self._store.get(key)
        written = said or strange
        return SettingView(
            key=key,
            is_set=written is not None,
            value=None if said is None else said.value,
            version="0" if written is None else str(written.version),
            owner="" if written is None else written.owner,
            time_ms=0 if said is None else said.time_ms,
            own=own,
            effective=effective,
            source=source,
            ignored=live.ignored().get(key, ""),
            conflicts=[_rival(other) for other in self._store.conflicts(key)],
            about=about,
        )

    def _strange(self, key: str) -> Strange | None:
        return next((strange for strange in self._store.unreadable() if strange.key == key), None)


def _rival(said: SharedValue) -> SettingRival:
    return SettingRival(said.value, str(said.version), said.owner, said.time_ms)


def _runs(said: bytes, node: str) -> dict[str, tuple[Any, str]]:
    try:
        return msgspec.json.decode(said, type=dict[str, tuple[Any, str]])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED, f"{node} says nothing that is understood here"
        ) from error


def _refused(error: StateError) -> SmgError:
    if error.reason == "too_large":
        return invalid(str(error), _VALUE, "setting_too_large")
    return SmgError(ErrorKind.OVERLOADED, str(error), code=f"state_{error.reason}")
