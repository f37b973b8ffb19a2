"""Endpoints of access tokens that answer what a test says, and keep what they were asked; files and environment beside."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl


class Asked(NamedTuple):
    """One request that an endpoint got; the fields of a form in `form`."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), strict_parsing=bool(self.body)))


class FakeEndpoints:
    """A `Fetch`: each URL answers with its answers in order, the last one for ever; an exception is raised."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = {
            url: list(said) if isinstance(said, list) else [said] for url, said in answers.items()
        }
        self.asked: list[Asked] = []

    async def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        self.asked.append(Asked(method, url, headers, body))
        left = self._answers[url]
        said = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(said, Exception):
            raise said
        status, answer = said if isinstance(said, tuple) else (200, said)
        return status, answer if isinstance(answer, bytes) else json.dumps(answer).encode()


class FakeSources:
    """Files and variables by name."""

    def __init__(
        self, files: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._files = dict(files or {})
        self._env = dict(env or {})

    def file(self, path: str) -> str:
        if path not in self._files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self._files[path]

    def env(self, name: str) -> str | None:
        return self._env.get(name)
