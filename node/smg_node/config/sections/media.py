"""Media knobs: where pictures, videos and sound come from, how large they may be, what may be kept and worked on."""

from typing import Literal

from pydantic import field_validator

from smg_node.config.schema.declaration import Section, choice, number, switch, text, words
from smg_node.config.schema.host_entries import check_host_entries
from smg_node.config.schema.json_object import check_json_object


class Media(Section):
    """Pictures, videos and sound in requests, for models that see and hear."""

    fetch: Literal["public", "none", "hosts"] = choice(
        "public",
        "Which http and https URLs of media are fetched, or handed to engines: those of hosts with public addresses only, none, or"
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
        "Who makes tensors of pictures and videos: this node if it knows the model's family and else the engine, always the"
        " node, or always the engine. Sound, and videos with pictures beside"
        " them, are always the engine's work; videos by themselves take the extra `video`, and an engine that takes"
        " their tensors (vLLM).",
    )
    clip_urls: Literal["fetched", "handed_on"] = choice(
        "fetched",
        "What becomes of http and https URLs of videos and sound: `fetched` by this node and handed to the engine as"
        " data, or `handed_on` for the engine to fetch, after a look at the addresses of their hosts. Where `where` is"
        " `engine`, all are handed on.",
    )
    image_bytes_max: int = number(
        33_554_432,
        "Bytes of one picture as it is sent or fetched, at most.",
        low=1_024,
        high=268_435_456,
        why="a file is held in memory whole; engines that fetch by themselves take 32 MiB",
    )
    video_bytes_max: int = number(
        134_217_728,
        "Bytes of one video as it is sent or fetched by this node, at most.",
        low=1_024,
        high=1_073_741_824,
        why="it is held in memory whole, and a third longer as base64; engines have limits of their own (vLLM: 32 MiB"
        " of data unless SMG_VLLM_MM_MAX_ITEM_BYTES says more)",
    )
    audio_bytes_max: int = number(
        26_214_400,
        "Bytes of one sound as it is sent or fetched by this node, at most.",
        low=1_024,
        high=1_073_741_824,
        why="25 MiB is what vLLM takes by itself (VLLM_MAX_AUDIO_CLIP_FILESIZE_MB)",
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
        "Bytes of media that are fetched and worked on at a time; beyond it requests are told to come back later.",
        low=1_048_576,
        high=68_719_476_736,
        why="a picture of 12 MP takes 50 MB meanwhile",
    )

    video_pixels_max: int = number(
        8_000_000_000,
        "Pixels of all frames of one video that this node decodes, at most; those that the model does not see count too.",
        low=1_000_000,
        high=1_000_000_000_000,
        why="two minutes of 1080p at 30 frames a second; one core decodes some 150 million a second",
    )
    video_seconds_max: int = number(
        60,
        "Seconds that the process which decodes one video may work, and may take in all.",
        low=1,
        high=3_600,
        why="whoever sends a video waits for it, and a damaged one may take any time",
    )
    video_memory_bytes: int = number(
        1_073_741_824,
        "Address space that the process which decodes one video may have, its file included.",
        low=201_326_592,
        high=68_719_476_736,
        why="its code takes 120 MB; a 4K video of many reference frames some 300",
    )
    video_processes: int = number(
        2,
        "Processes that decode videos at a time in the whole node; more videos wait.",
        low=1,
        high=64,
        why="each is busy with one core",
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
        'Numbers of its image processor over those of its files, as JSON with the keys of preprocessor_config.json: {"max_pixels": 1003520}; those of its video processor are an object `video_processor` among them. Others than such processors read, and numbers that none can work with, are refused.',
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
