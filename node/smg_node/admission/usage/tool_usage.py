"""Tool usage: runs of tools by tenant, key, server and tool, counted in this node's usage book."""

from typing import Final, Literal, TypeAlias

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.core.generation.run_name import run_name
from smg_node.core.prices.call_price import read_call_price

RunOutcome: TypeAlias = Literal[
    "ok",
    "tool_error",
    "protocol",
    "http",
    "auth",
    "timeout",
    "lost",
    "refused",
    "limited",
]
"""What became of a run: well, or why not. Nothing was sent of one that was refused or limited."""
_NOT_MADE: Final = ("refused", "limited")


class ToolUsage:
    """Account of runs; `book` keeps it with what requests used."""

    def __init__(self, book: UsageBook) -> None:
        self._book: Final = book

    def ran(
        self,
        tenant: str,
        key_id: str,
        server: str,
        tool: str,
        outcome: RunOutcome,
        *,
        seconds: float,
        answer_bytes: int,
        price: str,
    ) -> None:
        """Count a run that is over, with what it cost by `price`, "" for nothing; one that was not made counts nothing.

        `server` is the name of a definition, "" for a server that a client gave. `answer_bytes` are those of its result.
        ValueError for what is no price.
        """
        if outcome in _NOT_MADE:
            return
        self._book.record_run(
            (tenant, key_id, "", "", run_name(server, tool)),
            failed=outcome != "ok",
            run_ms=max(0, round(seconds * 1000)),
            run_bytes=answer_bytes,
            pico=read_call_price(price) if price else 0,
        )
