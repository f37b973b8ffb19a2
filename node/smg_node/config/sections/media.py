"""Media knobs: where pictures come from, how large they may be, and what may be kept and worked on."""

from typing import Literal

from pydantic import field_validator

from smg_node.config.schema.declaration import Section, choice, number, switch, text, words
from smg_node.config.schema.host_entries import check_host_entries
from smg_node.config.schema.json_object import check_json_object


class Media(Section):
    """Pictures in requests, for models that see."""

    fetch: Literal["public", "none", "hosts"] = choice(
        "public",
        "Which http and https URLs of pictures are fetched: those of hosts with public addresses only, none, or"
        " those of fetch_hosts.",
    )
    fetch_hosts: tuple[str, ...] = words(
        (),
        "Hosts that pictures are fetched from if fetch is `hosts`, as pics.example.com or *.example.com. One with :PORT"
        " also opens that port, in any mode; without, only 80 and 443 are open.",
        most=1024,
        metavar="HOST",
    )
    fetch_private_hosts: tuple[str, ...] = words(
        (),
        "Hosts, with :PORT for that port, and networks (CIDR) that may be on private addresses, which no others may.",
        most=1024,
        metavar="HOST",
    )
    url_cache: bool = switch(
        False,
        "Whether a fetched picture is used again for as long as its origin allows shared caches to (cache-control).",
    )
    where: Literal["auto", "node", "engine"] = choice(
        "auto",
        "Who makes tensors of pictures: this node if it knows the model's family and else the engine, always the"
        " node, or always the engine.",
    )
    image_bytes_max: int = number(
        33_554_432,
        "Bytes of one picture as it is sent or fetched, at most.",
        low=1_024,
        high=268_435_456,
        why="a file is held in memory whole; engines that fetch by themselves take 32 MiB",
    )
    image_pixels_max: int = number(
        40_000_000,
        "Pixels of one picture, at most; its header is asked before anything is decoded.",
        low=1_024,
        high=178_956_970,
        why="a pixel takes 3 bytes and more while it is worked on; the top is what the decoder takes for an attack",
    )
    low_pixels: int = number(
        262_144,
        "Area that a picture is made smaller to where the client asks for `detail: low`, in pixels.",
        low=1_024,
        high=16_777_216,
        why="512 by 512 is what clients expect; a model's own smallest size goes before it",
    )
    cache_bytes: int = number(
        268_435_456,
        "Bytes of prepared pictures that are kept for the next turn of a chat; 0 keeps none.",
        low=0,
        high=68_719_476_736,
        why="a picture takes 1 to 12 MB, and every turn of a chat sends all of its pictures again",
    )
    tokens_per_s: float = number(
        20_000,
        "Tokens of pictures a second that the encoder of an engine is expected to work off until that was measured.",
        low=200,
        high=2_000_000,
        why="measured rates are held to the same bounds; a request is placed by it only where a picture is not cached",
    )
    tenants_apart: bool = switch(
        False,
        "Whether equal pictures of different tenants are different ones to all caches of this node and of engines that go"
        " by its identities, so that no tenant can tell by the time an answer takes what another one has sent.",
    )
    threads: int = number(
        0,
        "Threads that decode and resize; 0 is one for each core.",
        low=0,
        high=256,
        why="more than a machine's cores only take memory",
    )
    inflight_bytes: int = number(
        536_870_912,
        "Bytes of pictures that are fetched and worked on at a time; beyond it requests are told to come back later.",
        low=1_048_576,
        high=68_719_476_736,
        why="a picture of 12 MP takes 50 MB meanwhile",
    )

    @field_validator("fetch_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        check_host_entries(hosts, networks=False)
        return hosts

    @field_validator("fetch_private_hosts")
    @classmethod
    def _private_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        check_host_entries(hosts, networks=True)
        return hosts


class ModelMedia(Section):
    """How pictures are prepared for one model."""

    processor: str | None = text(
        None,
        'Numbers of its image processor over those of its files, as JSON with the keys of preprocessor_config.json: {"max_pixels": 1003520}. Others than image processors read, and numbers that none can work with, are refused.',
        most=4_096,
        metavar="JSON",
        shown="from its files",
    )

    @field_validator("processor")
    @classmethod
    def _object(cls, said: str | None) -> str | None:
        if said is not None:
            from smg_node.config.schema.processor_numbers import check_processor_numbers

            check_processor_numbers(check_json_object(said))
        return said
