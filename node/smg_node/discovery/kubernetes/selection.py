"""Selection: which objects of the API a source asks for, by which paths, and how they are read."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from msgspec import Raw

from smg_node.discovery.kubernetes.objects import read_pod, read_slice
from smg_node.discovery.kubernetes.options import EVERYWHERE, KubernetesOptions
from smg_node.discovery.kubernetes.pods import PodReader
from smg_node.discovery.kubernetes.reading import ObjectKey, Reading, ReadObject
from smg_node.discovery.kubernetes.slices import SliceReader

PAGE_OBJECTS: Final = 500
_SERVICE_LABEL: Final = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class Objects:
    """What is asked for. `root` is the path of its API group; `selector` is in the server's own syntax, unescaped."""

    root: str
    resource: str
    selector: str

    def list_path(self, namespace: str, more: str) -> str:
        """Return the path of a page: the first one if `more` is empty, as new as the store itself."""
        path = f"{self._path(namespace)}&limit={PAGE_OBJECTS}"
        return f"{path}&continue={quote(more, safe='')}" if more else path

    def watch_path(self, namespace: str, version: str, timeout_s: int) -> str:
        """Return the path of a watch from that version on."""
        return (
            f"{self._path(namespace)}&watch=1&resourceVersion={quote(version, safe='')}"
            f"&allowWatchBookmarks=true&timeoutSeconds={timeout_s}"
        )

    def place(self, namespace: str) -> str:
        """Return the words for where it looks, as error messages name it."""
        where = "all namespaces" if namespace == EVERYWHERE else f"the namespace {namespace}"
        return f"{self.resource} in {where}"

    def _path(self, namespace: str) -> str:
        inside = "" if namespace == EVERYWHERE else f"/namespaces/{quote(namespace, safe='')}"
        return f"{self.root}{inside}/{self.resource}?labelSelector={quote(self.selector, safe='')}"


@dataclass(frozen=True, slots=True)
class Selection(Objects):
    """What a source asks for, and how it is read."""

    read: ReadObject


def selection_of(options: KubernetesOptions) -> Selection:
    """Return what the options select, pods or the endpoints of a service; SmgError where their spec is none of a worker URL."""
    if options.service:
        selector = f"{_SERVICE_LABEL}={options.service}"
        reader = _slices(SliceReader(options))
        return Selection("/apis/discovery.k8s.io/v1", "endpointslices", selector, reader)
    return Selection("/api/v1", "pods", options.selector.strip(), _pods(PodReader(options)))


def _pods(reader: PodReader) -> ReadObject:
    def read(text: Raw) -> tuple[ObjectKey, str, Reading]:
        pod = read_pod(text)
        key = (pod.metadata.namespace, pod.metadata.name)
        return key, pod.metadata.resource_version, reader.read(pod)

    return read


def _slices(reader: SliceReader) -> ReadObject:
    def read(text: Raw) -> tuple[ObjectKey, str, Reading]:
        found = read_slice(text)
        key = (found.metadata.namespace, found.metadata.name)
        return key, found.metadata.resource_version, reader.read(found)

    return read
