"""Watches: what a watch says of the writes after a version, and when it says that it lives."""

from collections.abc import Iterator, Mapping
from typing import Any

from smg_chaos.kubernetes.answers import expired, line
from smg_chaos.kubernetes.listing import labels_of, selector_of, version_of
from smg_chaos.kubernetes.selectors import matches
from smg_chaos.kubernetes.versions import CompactedError, Key, Versions, Write


class Watch:
    """One watch. `version` is what it has told so far; a version of the future tells nothing until it is reached."""

    def __init__(
        self, versions: Versions, resource: str, namespace: str, query: Mapping[str, str]
    ) -> None:
        """RefusedError for a selector or a version that is none."""
        self._versions = versions
        self._resource = resource
        self._namespace = namespace
        self._wanted = selector_of(query)
        self.version = version_of(query)
        self._is_new = self.version == 0
        self._begun = self.version

    @property
    def is_early(self) -> bool:
        """Whether it begins at a version that is to come."""
        return self.version > self._versions.version

    @property
    def has_news(self) -> bool:
        """Whether a bookmark would bring a newer version: where nothing was written since it began there is none."""
        return self._begun < self.version <= self._versions.version

    def lines(self) -> Iterator[bytes]:
        """Yield what there is to say since the last time; RefusedError if some of it is not known any more."""
        if self.is_early:
            return
        if self._is_new:
            # A watch from no version begins with all that is there.
            self._is_new = False
            self.version = self._versions.version
            for key, item in sorted(self._versions.objects.items()):
                if self._is_here(key) and self._matches(item):
                    yield line("ADDED", item)
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
        if not self._is_here(write.key):
            return None
        before = write.before if self._matches(write.before) else None
        after = write.after if self._matches(write.after) else None
        if after is not None:
            return ("ADDED" if before is None else "MODIFIED"), after
        if before is None:
            return None
        metadata = {**before["metadata"], "resourceVersion": str(write.version)}
        return "DELETED", {**before, "metadata": metadata}

    def _is_here(self, key: Key) -> bool:
        return key[0] == self._resource and self._namespace in ("", key[1])

    def _matches(self, item: Mapping[str, Any] | None) -> bool:
        return item is not None and matches(self._wanted, labels_of(item))
