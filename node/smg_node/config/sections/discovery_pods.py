"""Pods knobs: selections of pods as flags of other gateways describe them, one for each role."""

import re
from typing import Final, Literal

from pydantic import field_validator, model_validator

from smg_node.config.schema.declaration import Section, choice, number, switch, text, words

_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_KEY: Final = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
    re.ASCII,
)
_PAIR: Final = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
    r"=(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?",
    re.ASCII,
)
_ROLES: Final = ("regular", "prefill", "decode", "encode")


class PodSelectors(Section):
    """Selections of pods by labels, one for each role, as flags give them."""

    enabled: bool = switch(
        False, "Whether pods of these labels become workers.", aliases=("--service-discovery",)
    )
    provider: Literal["kubernetes", "file"] = choice(
        "kubernetes",
        "Where --service-discovery looks: `file` is discovery.file alone.",
        aliases=("--discovery-provider",),
    )
    selector: tuple[str, ...] = words(
        (),
        "Labels of pods with engines that do everything.",
        most=32,
        metavar="KEY=VALUE",
        aliases=("--selector",),
    )
    prefill_selector: tuple[str, ...] = words(
        (),
        "Labels of pods with engines that only work prompts off.",
        most=32,
        metavar="KEY=VALUE",
        aliases=("--prefill-selector",),
    )
    decode_selector: tuple[str, ...] = words(
        (),
        "Labels of pods with engines that only draw the answers to such prompts.",
        most=32,
        metavar="KEY=VALUE",
        aliases=("--decode-selector",),
    )
    encode_selector: tuple[str, ...] = words(
        (),
        "Labels of pods with engines that only encode pictures.",
        most=32,
        metavar="KEY=VALUE",
        aliases=("--encode-selector",),
    )
    router_selector: tuple[str, ...] = words(
        (),
        "Labels of the pods of this cluster's nodes: as mesh.kubernetes_selector, in this namespace.",
        most=32,
        metavar="KEY=VALUE",
        aliases=("--router-selector",),
    )
    port: int = number(
        80,
        "Port of the engines in pods without the annotation smg.ai/worker-ports.",
        low=1,
        high=65_535,
        why="a port has 16 bits, and port 0 cannot be called",
        aliases=("--service-discovery-port",),
    )
    namespace: str = text(
        "*",
        "Namespace of the pods; `*` is all of them, and needs a ClusterRole.",
        most=63,
        metavar="NAMESPACE",
        aliases=("--service-discovery-namespace",),
    )
    model_from: str = text(
        "",
        "What names the model of a pod: `namespace`, `label:KEY` or `annotation:KEY`.",
        most=330,
        metavar="FROM",
        aliases=("--model-id-from",),
    )
    connector_annotation: str = text(
        "smg.ai/kv-connector",
        "Annotation of a pod that says how it hands requests over.",
        most=317,
        metavar="KEY",
        aliases=("--kv-connector-annotation",),
    )
    engine_id_annotation: str = text(
        "smg.ai/kv-engine-id",
        "Annotation of a pod that says what those call it that it hands requests to.",
        most=317,
        metavar="KEY",
        aliases=("--kv-engine-id-annotation",),
    )

    @field_validator(
        "selector", "prefill_selector", "decode_selector", "encode_selector", "router_selector"
    )
    @classmethod
    def _pairs(cls, said: tuple[str, ...]) -> tuple[str, ...]:
        for pair in said:
            if not _PAIR.fullmatch(pair):
                raise ValueError(f"{pair[:120]!r} is no label such as app=vllm")
        return said

    @field_validator("namespace")
    @classmethod
    def _namespace(cls, said: str) -> str:
        return checked_namespace(said)

    @field_validator("model_from")
    @classmethod
    def _model_from(cls, said: str) -> str:
        return checked_model_from(said)

    @field_validator("connector_annotation", "engine_id_annotation")
    @classmethod
    def _annotation(cls, said: str) -> str:
        return checked_annotation(said)

    @model_validator(mode="after")
    def _is_meant(self) -> "PodSelectors":
        given = any(self.selections.values()) or bool(self.router_selector)
        if given and not self.enabled:
            raise ValueError("selectors of pods need --service-discovery (discovery.pods.enabled)")
        if given and self.provider == "file":
            raise ValueError("selectors of pods and the provider file exclude each other")
        if self.enabled and not given and self.provider == "kubernetes":
            raise ValueError(
                "--service-discovery needs --selector, such as app=vllm; there is none for everything"
            )
        return self

    @property
    def selections(self) -> dict[str, tuple[str, ...]]:
        """The labels by role, also where there are none."""
        return {
            "regular": self.selector,
            "prefill": self.prefill_selector,
            "decode": self.decode_selector,
            "encode": self.encode_selector,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """What the sources are called that these selections are: `pods-ROLE`."""
        if not self.enabled or self.provider == "file":
            return ()
        return tuple(f"pods-{role}" for role in _ROLES if self.selections[role])


def checked_namespace(said: str) -> str:
    """Return a namespace, `*` for all, empty for the own one; ValueError if it can be none."""
    if said not in ("", "*") and not _NAMESPACE.fullmatch(said):
        raise ValueError(f"{said[:80]!r} is no name of a namespace, and not *")
    return said


def checked_model_from(said: str) -> str:
    """Return what names a pod's model; ValueError if it is none of the words for it."""
    if said == "namespace" or said.startswith(("label:", "annotation:")):
        return said if said == "namespace" else checked_from(said, ("label", "annotation"))
    if said:
        raise ValueError("it must be namespace, label:KEY or annotation:KEY")
    return said


def checked_from(said: str, kinds: tuple[str, ...]) -> str:
    """Return `KIND:KEY`, or nothing; ValueError for another kind, and for what can be no key."""
    if not said:
        return said
    kind, colon, key = said.partition(":")
    if kind not in kinds or not colon:
        raise ValueError(f"it must be {' or '.join(f'{kind}:KEY' for kind in kinds)}")
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key[:80]!r} is no key of a {kind}")
    return said


def checked_annotation(said: str) -> str:
    """Return the key of an annotation; ValueError if it can be none."""
    if not _KEY.fullmatch(said):
        raise ValueError(f"{said[:80]!r} is no key of an annotation")
    return said
