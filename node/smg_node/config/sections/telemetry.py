"""Telemetry knobs: log format and level, access log, traces."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import field_validator

from smg_node.config.schema.declaration import Section, choice, number, switch, text


class Telemetry(Section):
    """What the node says about itself, and to whom."""

    log_format: Literal["auto", "json", "console"] = choice(
        "auto", "Form of the log: `auto` is console on a terminal and JSON elsewhere."
    )
    log_level: Literal["debug", "info", "warning", "error"] = choice(
        "info", "Least important records that are logged.", aliases=("--log-level",)
    )
    access_log: bool = switch(True, "Whether every request is logged with status and durations.")
    trace_ratio: float = number(
        0,
        "Share of requests without an upstream sampling decision that are traced.",
        low=0,
        high=1,
        why="it is a share",
    )
    otlp_endpoint: str = text(
        "",
        "URL that traces are sent to (OTLP over HTTP), such as http://collector:4318. Empty: none.",
        most=2048,
        metavar="URL",
        aliases=("--otlp-traces-endpoint",),
        in_file=True,
    )

    @field_validator("otlp_endpoint")
    @classmethod
    def _endpoint(cls, url: str) -> str:
        if url == "":
            return url
        try:
            parts = urlsplit(url)
            fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fine = False
        if not fine or not url.isprintable() or " " in url:
            raise ValueError("it must be a URL such as http://collector:4318")
        return url
