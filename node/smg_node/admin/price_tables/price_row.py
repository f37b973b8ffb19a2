"""Price row: one model of a published table, as the price it would be here, and what of it cannot be said here. Pure."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Protocol


class PriceRow(NamedTuple):
    """One row. `lost` are the names of amounts that no price here has a place for: of seconds, images, hours of a day."""

    name: str
    price: Mapping[str, Any]
    lost: tuple[str, ...] = ()


class NamedModel(NamedTuple):
    """A model at a provider: `to` as routes name it, and what says which vendor's it is."""

    to: str
    kind: str
    base: str = ""
    region: str = ""

    @property
    def model(self) -> str:
        """The vendor's name."""
        return self.to.partition("/")[2]


class PriceTable(Protocol):
    """A published table."""

    def rows(self) -> Iterator[PriceRow]:
        """Yield every model with a price, under the table's own name."""
        ...

    def find(self, model: NamedModel) -> PriceRow | None:
        """Return the row of a provider's model; None if the table has none."""
        ...


def number_of(value: object) -> Decimal | None:
    """Return an amount that is a number of at least 0; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    found = Decimal(repr(value))
    return found if found.is_finite() and found >= 0 else None


def plain_number(value: Decimal) -> float | int:
    """Return an amount as JSON has it: without a fraction if there is none."""
    return int(value) if value == value.to_integral_value() else float(value)
