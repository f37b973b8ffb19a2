"""Server checks at start: what a server's settings mean for history that has to last."""

from collections.abc import Mapping, Sequence
from typing import Final

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.redis.server import RedisServer

_UNTOLD: Final = "redis does not tell its settings: see that maxmemory-policy is noeviction and that appendonly is yes"


async def look(server: RedisServer) -> Sequence[str]:
    """Return what history may suffer from on this server; UNAVAILABLE where it cannot be kept at all."""
    told = await server.told("server")
    if "cluster" in (told.get("redis_mode"), told.get("server_mode")) and server.alone:
        raise StoreError(
            StoreErrorKind.UNAVAILABLE, "this server is one of a cluster: use redis+cluster://"
        )
    settings = {
        name: await server.setting(name)
        for name in ("maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "save")
    }
    return warnings_of(settings)


def warnings_of(settings: Mapping[str, str | None]) -> Sequence[str]:
    """Return what these settings mean, in sentences; None is a setting that is not told."""
    if all(value is None for value in settings.values()):
        return (_UNTOLD,)
    return tuple(said for said in (_memory(settings), _disk(settings)) if said)


def _memory(settings: Mapping[str, str | None]) -> str:
    policy = settings.get("maxmemory-policy")
    if policy in (None, "noeviction"):
        return ""
    limit = settings.get("maxmemory")
    when = "as soon as maxmemory is set" if limit in (None, "0") else f"at {limit} bytes"
    return f"redis has maxmemory-policy {policy}: {when} it forgets history; set it to noeviction"


def _disk(settings: Mapping[str, str | None]) -> str:
    appending, syncing = settings.get("appendonly"), settings.get("appendfsync")
    if appending == "no":
        kept = "all since its last snapshot" if settings.get("save") else "everything"
        return f"redis has appendonly no: {kept} is lost when it ends; set it to yes"
    if syncing == "no":
        return (
            "redis has appendfsync no: what the system had not written yet is lost with the machine"
        )
    if syncing == "everysec":
        return (
            "redis has appendfsync everysec: up to two seconds are lost with the machine, nothing with the process; "
            "with always nothing is, and each commit waits for the disk"
        )
    return ""
