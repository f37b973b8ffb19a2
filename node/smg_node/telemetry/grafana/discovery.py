"""Discovery section: what sources of workers show, how old that is, and what is held back."""

from typing import Final

from smg_node.telemetry.grafana.panels import Panel, Section, largest, rate, total
from smg_node.telemetry.metrics.declared import shared_state as state

DISCOVERY: Final = Section(
    "Discovery",
    (
        Panel(
            "Endpoints shown",
            "By the source, on the node that writes and the one that stands by.",
            "short",
            (total(state.DISCOVERY_SIGHTINGS, "instance", "source"),),
        ),
        Panel(
            "Age of views",
            "Since the view was known to be whole; over 90 s nothing is dropped or added.",
            "s",
            (total(state.DISCOVERY_AGE, "instance", "source"),),
        ),
        Panel(
            "Failing",
            "1 while the source does not answer: all workers stay, and probers see to them.",
            "short",
            (largest(state.DISCOVERY_FAILING, "instance", "source"),),
        ),
        Panel(
            "Writers",
            "One a source; for a moment none or two while it changes hands.",
            "short",
            (total(state.DISCOVERY_WRITER, "source"),),
        ),
        Panel(
            "Held, refused, unusable",
            "Kept although no endpoint is shown any more; shown and not registered; shown and no worker.",
            "short",
            (
                total(state.DISCOVERY_HELD, "source"),
                total(state.DISCOVERY_REFUSED, "source"),
                total(state.DISCOVERY_UNUSABLE, "source"),
            ),
        ),
        Panel(
            "Written",
            "Workers added, changed, dropped, and those that became ready or unready.",
            "cps",
            (rate(state.DISCOVERY_WRITES, "source", "reason"),),
        ),
    ),
)
