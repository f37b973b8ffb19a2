"""Options of one Kubernetes source: what is selected, and what its pods become."""

from dataclasses import dataclass
from typing import Final

PORTS_ANNOTATION: Final = "smg.ai/worker-ports"
BOOTSTRAP_ANNOTATION: Final = "sglang.ai/bootstrap-port"
CONNECTOR_ANNOTATION: Final = "smg.ai/kv-connector"
ENGINE_ID_ANNOTATION: Final = "smg.ai/kv-engine-id"

EVERYWHERE: Final = "*"
"""As `namespace`: all namespaces."""


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """What a source selects, either pods by `selector` or the endpoints of `service`, and what they become.

    `namespace` is empty for the one that the node itself is in, or that its kubeconfig names. `port` is a number or the
    name of a container port; empty, a pod that names one TCP port has that one. `scheme` is empty where it is to be
    found out what answers. `role_from` is empty or `label:KEY`; `model_from` is empty, `namespace`, `label:KEY` or
    `annotation:KEY`. `spec` has the parameters of a worker URL: `priority=60&label.pool=chat`. `kubeconfig` is the
    path of a file, empty for a pod's own account. `keep`: its workers stay when it is taken out of the settings.
    """

    selector: str = ""
    service: str = ""
    namespace: str = ""
    port: str = ""
    scheme: str = ""
    role: str = "regular"
    role_from: str = ""
    model_from: str = ""
    spec: str = ""
    keep: bool = False
    ports_annotation: str = PORTS_ANNOTATION
    bootstrap_annotation: str = BOOTSTRAP_ANNOTATION
    connector_annotation: str = CONNECTOR_ANNOTATION
    engine_id_annotation: str = ENGINE_ID_ANNOTATION
    kubeconfig: str = ""
