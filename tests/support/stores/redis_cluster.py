"""A Redis cluster of one server for tests.

It has all slots and yet refuses a call that reaches into two of them, so it shows whether calls stay within theirs without
three servers for every worker of the tests.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import redis

from smg_chaos.stores.redis import Durability
from smg_chaos.stores.server_user import ServerError
from support.processes.servers import own_port
from support.stores.redis_server import Redis, running_redis

_UP_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.02


def client_of(server: Redis) -> redis.Redis:
    """Return a connection of the test's own, to be closed by it."""
    return redis.Redis(port=server.port, socket_timeout=10.0)


@contextmanager
def running_cluster(
    log_folder: Path, *, durability: Durability = "none"
) -> Iterator[tuple[Redis, str]]:
    """Run one, and give it all slots; the second is its URL for a store."""
    with own_port() as bus_port:
        options = ("--cluster-enabled", "yes", "--cluster-port", str(bus_port))
        with running_redis(
            log_folder, own=True, durability=durability, arguments=options
        ) as server:
            with client_of(server) as client:
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
                _wait_until_up(client)
            yield server, f"redis+cluster://127.0.0.1:{server.port}"


def _wait_until_up(client: redis.Redis) -> None:
    give_up_s = time.monotonic() + _UP_TIMEOUT_S
    while client.cluster("INFO")["cluster_state"] != "ok":
        if time.monotonic() > give_up_s:
            raise ServerError("the cluster of one server does not come up")
        time.sleep(_POLL_S)
