"""Report figures of chapters: admitted, left unused, failed, repeated, and wrong headers."""

from collections.abc import Callable, Sequence
from typing import Final

from smg_chaos.gameday.limits.clients.client_messages import Reply
from smg_chaos.gameday.limits.clients.header_checks import Headers
from smg_chaos.gameday.limits.judge import (
    Allowance,
    Run,
    crossing,
    fullest,
    use_by_window,
    used,
)
from smg_chaos.gameday.limits.story import Chapter, Hurt, Record
from smg_chaos.statistics import Figure

SMEAR_US: Final = 10_000
"""Two ticks: so late may a node notice that a window is over. What is asked meanwhile, the judge cannot tell apart."""
LIMIT: Final = "admitted / limit, fullest run of windows"
_FINE_US: Final = 1_000


def within(
    name: str, record: Record, allowance: Allowance, allowed: Callable[[int], int] | None = None
) -> Figure:
    """Return the share by which arrivals filled the fullest run of windows; 1 is the maximum
    allowed.

    Its text has the sum, and how many requests crossed a border, so that their window is unknown.
    """
    spans = record.spans(allowance, SMEAR_US)
    run = fullest(spans, allowed or allowance.of)
    if run is None:
        return Figure(f"{name}: {LIMIT}", 0.0, "", 1.0, "nothing arrived")
    says = f"{_told(run)}; {crossing(spans)} of {len(spans)} crossed a border"
    return Figure(f"{name}: {LIMIT}", round(run.share, 4), "", 1.0, says)


def excess(name: str, record: Record, allowance: Allowance) -> Figure:
    """Return how many requests were admitted too many, in the worst run of windows."""
    spans = record.spans(allowance, SMEAR_US)
    run = fullest(spans, allowance.of)
    many = run.excess if run is not None else 0
    windows = len({span.last for span in spans})
    needed = smear_needed_us(record, allowance)
    border = "never" if needed is None else f"within {needed / 1000:.0f} ms"
    says = f"of {len(spans)} in {windows} windows; every charge fits {border}"
    return Figure(f"{name}: admitted over the limit", many, "", 0, says)


def smear_needed_us(record: Record, allowance: Allowance) -> int | None:
    """Return how late at least a node noticed the end of a window; None if no smear explains the
    arrivals.
    """

    def fits(smear_us: int) -> bool:
        run = fullest(record.spans(allowance, smear_us), allowance.of)
        return run is None or not run.excess

    low, high = 0, allowance.window_us // 2
    if fits(0):
        return 0
    if not fits(high):
        return None
    while high - low > _FINE_US:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _told(run: Run) -> str:
    where = "a window" if run.first == run.last else f"{run.last - run.first + 1} windows"
    return f"{run.charged} of {run.allowed} in {where}"


def unused(
    name: str, chapter: Chapter, record: Record, allowance: Allowance, most_percent: float | None
) -> Figure:
    """Return the share of the limit, in per cent, that no request used in the chapter's whole
    windows.
    """
    first, last = chapter.windows(allowance.window_us, after_us=allowance.window_us)
    spans = record.spans(allowance, 0)
    share = used(spans, allowance.of, first, last)
    says = f"of {last - first + 1} windows"
    return Figure(f"{name}: limit left unused", 100 * max(0.0, 1 - share), "%", most_percent, says)


def worst_unused(
    name: str,
    record: Record,
    allowance: Allowance,
    windows: tuple[int, int],
    most_percent: float | None,
) -> Figure:
    """Return the largest share of the limit left unused in one of these windows."""
    spans = record.spans(allowance, 0)
    shares = use_by_window(spans, allowance.of, *windows)
    if not shares:
        return Figure(f"{name}: limit left unused, worst window", None, "%", most_percent)
    told = " ".join(f"{share:.2f}" for share in shares[:12])
    value = 100 * max(0.0, 1 - min(shares))
    return Figure(f"{name}: limit left unused, worst window", value, "%", most_percent, told)


def failures(name: str, record: Record, hurt: Hurt, say: Callable[[str], None]) -> Figure:
    """Return how many requests were neither admitted nor refused by a node that was not hurt."""
    failed = record.failed(hurt)
    for answer in failed[:5]:
        say(f"{name}: request {answer.serial} at node {answer.node}: {answer.status} {answer.why}")
    counts = ", ".join(f"{count} {kind}" for kind, count in record.counts().items())
    return Figure(f"{name}: failed requests", len(failed), "", 0, counts)


def repeated(name: str, record: Record) -> Figure:
    """Return how many admitted requests came to the engines more than once: retried, and charged
    once.
    """
    again = sum(
        record.arrivals[answer.serial].calls > 1
        for answer in record.answers
        if answer.serial in record.arrivals
    )
    return Figure(f"{name}: requests that came to engines twice", again)


def headed(name: str, headers: Headers, say: Callable[[str], None]) -> Figure:
    """Return how many answers have impossible headers."""
    for line in headers.shown[:5]:
        say(f"{name}: {line}")
    states = ", ".join(f"{count} {state or 'none'}" for state, count in headers.states.items())
    parts = {
        "without": headers.silent,
        "negative": headers.negative,
        "rising": headers.rising,
        "more than 0 with a 429": headers.left_at_refusal,
    }
    wrong = "".join(f", {count} {what}" for what, count in parts.items() if count)
    unplaced = f", {headers.unplaced} too long on their way to tell" if headers.unplaced else ""
    says = f"of {headers.looked + headers.silent}{wrong}{unplaced}; {states}"
    return Figure(f"{name}: headers that cannot be true", headers.wrong, "", 0, says)


def loaded(replies: Sequence[Reply], least_idle: float) -> list[Figure]:
    """Return the cost of the load generator, and how much of the machine was idle."""
    if not replies:
        return []
    held = sum(reply.held_back for reply in replies)
    sent = sum(reply.sent for reply in replies)
    late = max(reply.late_p99_s for reply in replies)
    return [
        Figure("clients: requests held back", held, "", 0, f"{sent} sent"),
        Figure("clients: ask late, p99", late, "s"),
        Figure("machine idle, least of all chapters", 100 * least_idle, "%"),
    ]
