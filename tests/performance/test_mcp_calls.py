"""A call of a tool costs a fraction of what it costs with the official SDK's client, measured in turns in one run."""

from smg_chaos.mcp.cost import RATIO_MAX, WAYS, measure, table
from support.mcp.real_servers import python


def test_a_call_by_http_takes_a_fraction_of_the_sdks_cpu_time() -> None:
    rows = measure(python(), 200, 3, lambda line: None, ways=(WAYS[0], WAYS[3]))
    assert all(row.ratio <= RATIO_MAX for row in rows), table(rows)
