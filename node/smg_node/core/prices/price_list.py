"""Price list: the prices of all models as they count now, of public names and of single providers' models. Pure.

a provider's model    the price under PROVIDER/MODEL, as routes name it, else that of the public name it serves
a public name         the price under that name, else the three numbers in the settings of the model
"""

from collections.abc import Callable, Mapping
from typing import Final

from smg_node.core.prices.price import Price

SETTINGS: Final = "settings"
DEFINITIONS: Final = "definitions"
SOURCES: Final = (SETTINGS, DEFINITIONS)
"""Sources of prices; a later one goes before an earlier one."""


class PriceList:
    """Prices of one moment, by name; it is not changed."""

    def __init__(self, prices: Mapping[str, Price] | None = None) -> None:
        self._prices: Final = dict(prices or {})

    def of(self, model: str, provider: str = "", theirs: str = "") -> Price | None:
        """Return what calls of `theirs` at a provider cost that serve the public name `model`, or those of the name
        itself; None if nobody has said.
        """
        own = self._prices.get(f"{provider}/{theirs}") if provider else None
        return self._prices.get(model) if own is None else own

    def __len__(self) -> int:
        return len(self._prices)


class PriceBook:
    """Where a process has its price list. `now` is another one after every change."""

    def __init__(self) -> None:
        self.now = PriceList()
        self._parts: dict[str, Mapping[str, Price]] = {}
        self._heard: list[Callable[[PriceList], None]] = []

    def set(self, source: str, prices: Mapping[str, Price]) -> None:
        """Take these as all prices of one source."""
        if self._parts.get(source, {}) == prices:
            return
        self._parts[source] = prices
        merged: dict[str, Price] = {}
        for name in SOURCES:
            merged.update(self._parts.get(name, {}))
        self.now = PriceList(merged)
        for heard in self._heard:
            heard(self.now)

    def watch(self, heard: Callable[[PriceList], None]) -> None:
        """Tell of the list now, and after each change."""
        self._heard.append(heard)
        heard(self.now)
