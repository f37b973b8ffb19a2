"""Limit views: the limits as each of three nodes sees them, over namespaces that can be cut and healed."""

from smg_mesh.escrow.limit_model import Limit
from smg_mesh.state.limits.limit_rule import Amount, LimitRule
from smg_mesh.state.limits.limit_window import WINDOWS
from smg_mesh.state.limits.limits_view import LimitsView
from support.state.fake_namespace import FakeNamespaces

SECOND = WINDOWS["second"]
MINUTE = WINDOWS["minute"]


class Views:
    """The limits as each of three nodes sees them."""

    def __init__(self) -> None:
        self.world = FakeNamespaces("a", "b", "c", name="limits")
        self._views = {
            name: LimitsView(self.world[name], wall_ms=lambda name=name: self.world[name].wall_ms)  # type: ignore[misc]  # bound now
            for name in "abc"
        }

    def __getitem__(self, name: str) -> LimitsView:
        return self._views[name]

    def limit(self, key: str, name: str = "a") -> Limit:
        found = self[name].get(key)
        assert found is not None
        return found


def requests(amount: int, window_ms: int = SECOND, **fields: object) -> LimitRule:
    return LimitRule(amounts=(Amount("requests", amount, window_ms),), **fields)  # type: ignore[arg-type]  # its own fields
