"""A node whose test asks for no history."""

from collections.abc import Callable

from smg_node.http.history_ports import History
from smg_node.pipeline.run import Generations

MakeHistory = Callable[[Generations], History]


def no_history(_generations: Generations) -> History:
    raise AssertionError("this test asks for no history")
