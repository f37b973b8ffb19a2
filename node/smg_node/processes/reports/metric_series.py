"""Metric series of one process, as they travel to the process that renders the page. Values."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from prometheus_client.metrics_core import Metric as Family

SCRAPE: Final = "metrics.scrape"
LAST: Final = "metrics.last"
"""What these are called on the bus: a question for what is counted now, and the last word of one that ends."""


class Series(msgspec.Struct, frozen=True, array_like=True):
    """One number with name and labels: a histogram has one for each bound, a sum and a count."""

    name: str
    labels: dict[str, str]
    value: float

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Key that is the same in every process that counts the same."""
        return self.name, tuple(self.labels.items())


class Counted(msgspec.Struct, frozen=True, array_like=True):
    """One metric of one process."""

    name: str
    kind: str
    meaning: str
    series: list[Series]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Counted]).decode


def counted(families: Iterable[Family]) -> list[Counted]:
    """Return the metrics that a registry has collected."""
    return [
        Counted(
            family.name,
            family.type,
            family.documentation,
            [Series(one.name, dict(one.labels), one.value) for one in family.samples],
        )
        for family in families
    ]


def family_of(
    metric: Counted, values: Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
) -> Family:
    """Return the Prometheus family with these values in their order."""
    family = Family(metric.name, metric.meaning, metric.kind)
    for (name, labels), value in values.items():
        family.add_sample(name, dict(labels), value)
    return family


def pack_counted(metrics: list[Counted]) -> bytes:
    """Return it as it travels."""
    return _encode(metrics)


def read_counted(content: bytes) -> list[Counted]:
    """Return the metrics of a process; ValueError for anything else."""
    try:
        return _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not what a process counts: {error}") from error
