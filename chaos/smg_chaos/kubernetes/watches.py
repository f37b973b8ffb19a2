"""Watches: what a watch says of the writes after a version, and when it says that it lives."""

from collections.abc import Iterator, Mapping
from typing import Any

from smg_chaos.kubernetes.answers import RefusedError, expired, line
from smg_chaos.kubernetes.listing import labels_of, selector_of
from smg_chaos.kubernetes.selectors import matches
from smg_chaos.kubernetes.versions import CompactedError, Versions, Write


class Watch:
    """One watch. `version` is what it has told so far; a version of the future tells nothing until it is reached."""

    def __init__(
        self, versions: Versions, resource: str, namespace: str, query: Mapping[str, str]
    ) -> None:
        """RefusedError for a selector or a version that is none."""
        said = query.get("resourceVersion", "")
        if not (said.isascii() and said.isdigit()):
            raise RefusedError(
                500, "InternalError", f'strconv.ParseUint: parsing "{said}": invalid syntax'
            )
        self.version = int(said)
        self._versions = versions
        self._resource = resource
        self._namespace = namespace
        self._wanted = selector_of(query)

    @property
    def is_early(self) -> bool:
        """Whether it begins at a version that is to come."""
        return self.version > self._versions.version

    def lines(self) -> Iterator[bytes]:
        """Yield what there is to say since the last time; RefusedError if some of it is not known any more."""
        if self.is_early:
            return
        try:
            for write in self._versions.writes_after(self.version):
                self.version = write.version
                event = self._event(write)
                if event is not None:
                    yield line(*event)
        except CompactedError:
            raise expired(self.version, self._versions.compacted) from None
        self.version = self._versions.version

    def _event(self, write: Write) -> tuple[str, Mapping[str, Any]] | None:
        """Return what a write is to this watch: what does not match any more is deleted, as it matched last."""
        if write.key[0] != self._resource or self._namespace not in ("", write.key[1]):
            return None
        before = write.before if self._matches(write.before) else None
        after = write.after if self._matches(write.after) else None
        if after is not None:
            return ("ADDED" if before is None else "MODIFIED"), after
        if before is None:
            return None
        metadata = {**before["metadata"], "resourceVersion": str(write.version)}
        return "DELETED", {**before, "metadata": metadata}

    def _matches(self, item: Mapping[str, Any] | None) -> bool:
        return item is not None and matches(self._wanted, labels_of(item))
