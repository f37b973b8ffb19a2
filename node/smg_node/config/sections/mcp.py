"""MCP knobs: servers of tools that this node calls for models, the file that defines them, and their limits."""

import json
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import field_validator

from smg_node.config.schema.declaration import Section, choice, number, place, text, words
from smg_node.config.schema.definition_file import read_definition_file
from smg_node.config.schema.host_entries import check_host_entries

_PARTS: Final = ("servers",)


class Mcp(Section):
    """MCP servers, whose tools run on this side of answers."""

    file: Path | None = place(
        None,
        "YAML file of MCP `servers`, whose tools run on this side of answers.",
        short="--mcp",
        metavar="FILE",
    )
    dynamic: Literal["off", "listed", "any"] = choice(
        "off",
        "Whether clients may name servers by URL: not at all, those of dynamic_hosts, or any on public addresses.",
    )
    dynamic_hosts: tuple[str, ...] = words(
        (),
        "Hosts that clients' URLs may name, as tools.example.com or *.example.com, with :PORT for that port only; also"
        " networks (CIDR). These may be on private addresses, which all others may not.",
        most=1024,
        metavar="HOST",
    )
    proxy: str = text(
        "",
        "URL of the HTTP proxy that servers are called through; that of the environment is not used. It decides by"
        " itself which addresses clients' URLs may lead to.",
        most=2048,
        metavar="URL",
        in_file=True,
    )
    connect_s: float = number(
        10,
        "How long a connection to a server may take.",
        low=0.1,
        high=300,
        why="a server that takes longer is not there",
    )
    list_s: float = number(
        10,
        "How long a server may take to be opened, and to list its tools.",
        low=0.1,
        high=300,
        why="requests wait for it",
    )
    call_idle_s: float = number(
        60,
        "How long a call may take without progress.",
        low=0.1,
        high=3_600,
        why="a model and its client wait meanwhile",
    )
    call_total_s: float = number(
        300,
        "How long a call may take in all.",
        low=0.1,
        high=86_400,
        why="a model and its client wait meanwhile",
    )
    answer_bytes_max: int = number(
        16_777_216,
        "Bytes of one message of a server, at most.",
        low=65_536,
        high=268_435_456,
        why="a message is held in memory whole",
    )
    output_bytes_max: int = number(
        262_144,
        "Bytes of a tool's result that a model is shown, at most; the rest is cut off with a mark.",
        low=1_024,
        high=16_777_216,
        why="all of it becomes tokens of the next prompt",
    )
    list_ttl_s: float = number(
        300,
        "How long a list of tools is used, where its server does not say how long.",
        low=1,
        high=86_400,
        why="every new list is a request, and every change of a list a prompt without a cached beginning",
    )
    session_idle_s: float = number(
        300,
        "How long a connection is kept that nobody uses, and a session that no node uses; a program's process ends with it.",
        low=1,
        high=86_400,
        why="servers forget sessions, too",
    )
    rounds_max: int = number(
        10,
        "How often a model may call tools of this side in one answer, one pass after the other.",
        low=1,
        high=1_000,
        why="a model in a loop never ends by itself",
    )
    calls_parallel: int = number(
        8,
        "Calls that one answer may have open at a time.",
        low=1,
        high=256,
        why="a model may ask for any number at once",
    )
    search: Literal["bm25", "embeddings", "hybrid"] = choice(
        "bm25",
        "How tools that a prompt leaves out are found: by their words, by their meaning as search_model has it, or by both.",
    )
    search_model: str = text(
        "",
        "Embedding model of this cluster's own that tools and questions are compared by; while it is away they are found"
        " by their words.",
        most=256,
        metavar="NAME",
    )
    defer_over_tokens: int = number(
        0,
        "Where the tools of a request's servers are more prompt tokens than this, they are left out of the prompt, and"
        " the model searches for them; 0 is never.",
        low=0,
        high=10_000_000,
        why="a definition of a tool is some hundred tokens, in each pass of each answer",
    )

    approval_wait_s: float = number(
        300,
        "How long an answer of an API without approvals waits for an operator's word.",
        low=0,
        high=86_400,
        why="its client waits meanwhile",
    )

    @property
    def definitions(self) -> str:
        """What the file says, as JSON: an object of `servers`; "" without a file."""
        return "" if self.file is None else json.dumps(_read(self.file))

    @field_validator("file")
    @classmethod
    def _readable(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        path = path.expanduser()
        _read(path)
        return path

    @field_validator("dynamic_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        check_host_entries(hosts, networks=True)
        return hosts

    @field_validator("proxy")
    @classmethod
    def _proxy(cls, url: str) -> str:
        if not url:
            return url
        try:
            parts = urlsplit(url)
            fine = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fine = False
        if not fine or not url.isprintable() or " " in url:
            raise ValueError("it must be a URL such as http://proxy:3128")
        return url


def _read(path: Path) -> dict[str, Any]:
    return read_definition_file(path, _PARTS)
