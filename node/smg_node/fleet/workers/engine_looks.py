"""Engine looks: whether an engine can be given work, in words for operators; and the end of its connections."""

from typing import Final

from smg_node.core.errors import SmgError
from smg_node.engines.engine import Engine
from smg_node.engines.transport.transport import TransportError
from smg_node.fleet.workers.worker import Worker

SEEN_MAX_CHARACTERS: Final = 300
"""So much of what a transport says of a failure is shown."""


async def seen_at(engine: Engine, timeout_s: float) -> str:
    """Return why an engine cannot be given work, in the words of whatever was seen; "" if it can."""
    try:
        fine = await engine.serving(timeout_s)
    except SmgError as error:
        return seen_in(error)
    return "" if fine else f"{engine.contract.value} answers but is not SERVING"


def seen_in(error: SmgError) -> str:
    """Return what an engine's failure was in words for operators, with those of the transport."""
    cause = error.__cause__
    more = cause.message[:SEEN_MAX_CHARACTERS] if isinstance(cause, TransportError) else ""
    return error.message if more in error.message else f"{error.message} ({more})"


async def close_engine(worker: Worker) -> None:
    """Close the worker's connections, if it has any."""
    engine, worker.engine = worker.engine, None
    if engine is not None:
        await engine.close()
