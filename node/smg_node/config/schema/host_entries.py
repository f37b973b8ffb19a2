"""Host entries: lists of hosts and networks that an operator names, checked."""

import re
from collections.abc import Iterable
from ipaddress import ip_network
from typing import Final

_HOST: Final = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(:[0-9]{1,5})?")
_PORT_MAX: Final = 65_535


def check_host_entries(entries: Iterable[str], *, networks: bool) -> None:
    """Raise ValueError, in an operator's words, unless each is a host, `*.domain`, one with `:port`, or a network."""
    for entry in entries:
        port = int(entry.rpartition(":")[2]) if _HOST.fullmatch(entry) and ":" in entry else 1
        fine = _HOST.fullmatch(entry) is not None and 0 < port <= _PORT_MAX
        if not fine and not (networks and _is_network(entry)):
            last = " and 10.0.0.0/8" if networks else ""
            raise ValueError(
                f"{entry[:100]!r} is none of pics.example.com, *.example.com, example.com:8443{last}"
            )


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
