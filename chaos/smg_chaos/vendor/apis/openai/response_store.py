"""Response store: what a vendor keeps of Responses, so that a later request may go on from one."""

from collections import OrderedDict
from typing import Any, Final, NamedTuple

_KEPT_MAX: Final = 10_000


class Stored(NamedTuple):
    """One response: its items with those before it, and its object."""

    items: list[dict[str, Any]]
    response: dict[str, Any]


class ResponseStore:
    """The latest responses of one stand-in, which no other process has."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Stored] = OrderedDict()
        self._items: OrderedDict[str, None] = OrderedDict()

    def keep(self, items: list[dict[str, Any]], response: dict[str, Any]) -> None:
        """Keep a response."""
        self._kept[response["id"]] = Stored([*items, *response["output"]], response)
        for item in response["output"]:
            self._items[item["id"]] = None
        while len(self._kept) > _KEPT_MAX:
            _, gone = self._kept.popitem(last=False)
            for item in gone.response["output"]:
                self._items.pop(item["id"], None)

    def get(self, name: str) -> Stored | None:
        """Return a response that is kept."""
        return self._kept.get(name)

    def has_item(self, name: str) -> bool:
        """Return whether an item of a response that is kept has this id."""
        return name in self._items

    def remove(self, name: str) -> bool:
        """Forget a response; return whether it was kept."""
        return self._kept.pop(name, None) is not None
