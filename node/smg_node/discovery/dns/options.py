"""Options of one DNS source: the name that is asked for, and what its addresses become."""

from dataclasses import dataclass
from typing import Final

from smg_node.config.worker_url import WorkerUrl, parse_worker_url

_PLACEHOLDER: Final = "worker:1"


@dataclass(frozen=True, slots=True)
class DnsOptions:
    """What a source asks for, and whom.

    A name that begins with `_` has SRV records, with ports of their own; any other has addresses, whose engines listen at
    `port`. `servers` are `HOST[:PORT]`; without any, those of the machine are asked. `scheme` is empty where it is to
    be found out what answers. `spec` has the parameters of a worker URL: `priority=60&label.pool=chat`. `keep`: its workers stay when
    it is taken out of the settings.
    """

    name: str
    port: int = 0
    servers: tuple[str, ...] = ()
    scheme: str = ""
    role: str = "regular"
    spec: str = ""
    keep: bool = False

    @property
    def is_srv(self) -> bool:
        """Whether the name has SRV records."""
        return self.name.startswith("_")

    def worker(self) -> WorkerUrl:
        """Return what is said of every worker of the source; SmgError `invalid_worker_url` if the spec is none.

        Its host and port are placeholders.
        """
        scheme = f"{self.scheme}://" if self.scheme else ""
        spec = self.spec.lstrip("?&")
        if self.role != "regular":
            spec = f"role={self.role}&{spec}" if spec else f"role={self.role}"
        return parse_worker_url(f"{scheme}{_PLACEHOLDER}{'?' if spec else ''}{spec}")
