"""Makes a model folder of two megabytes that prints exactly the text it was made for.

Real engines load the folder like any other Llama, so a test can compare whole answers, token for
token, after they went through everything.

How a Llama is made to recite. Its attention and MLP blocks end in projections of zeros, so nothing
is ever added to the embedding of the last token; the next token depends on the last one only. What
is left is a table: row `b` of the output matrix says which tokens lead to `b`.

    embedding of a token in the script      (0, random direction), all of one length
    embedding of any other token            (1, hardly anything), of the same length
    output row of the script's k-th token   its predecessor's embedding
    output row of the script's first token  (1, 0, ...)
    output row of end-of-text               the embedding of the script's last token

So the script starts after any prompt that ends outside of it (a line break always does), a prompt
that ends inside goes on from there, and the right token leads by some 35 nats: far enough for every temperature in use, near
enough for a `logit_bias` of 100 to turn it away.

No token may come twice in a script, or it would have two successors. A piece of text that was used
before is therefore spelled together with what follows it, as a token of its own. That token is in
the vocabulary, but no merge leads to it: a prompt is never encoded with it, and it may end in the
middle of a character.

The tokenizer is a byte-level BPE trained on the text in `tiny_corpus.txt`, so ids are the same on
every machine and every Python. `script.json` in the folder holds the text and its ids.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer

from support.models.tiny_tokenizer import (
    MARKED,
    SPECIAL,
    TEXT_END,
    TURN_END,
    spell,
    token_id,
    trained_tokenizer,
    with_pieces,
)
from support.models.tiny_weights import (
    HEAD_SIZE,
    HEADS,
    HIDDEN,
    INNER,
    KV_HEADS,
    LAYERS,
    weights,
    write_safetensors,
)

CONTEXT: Final = 32_768

SCRIPTS: Final[Mapping[str, str]] = {
    "plain": "Good morning! A tiny llama says: crème brûlée for 2, 你好世界, and a wave 🙂👋.",
    "split": "Parrot 🦜, ⟶ arrow, straẞe, family 👨‍👩‍👧, flag 🇧🇷 and Ω≈ç√.",
    "long": " ".join(
        f"{word}{n}" for n in range(60) for word in ("alpha", "beta", "gamma", "delta")
    )
    + " end.",
    "endless": "la li lu le lo, and once more: ",
    "tool": 'Let me look.\n<tool_call>\n{"name": "get_weather", "arguments": '
    '{"city": "Paris", "unit": "celsius"}}\n</tool_call>',
    "two-tools": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_time", "arguments": {"zone": "Europe/Oslo"}}\n</tool_call>',
    "think": "<think>\nSix times seven; that is easy.\n</think>\n\nThe answer is 42.",
    "coder": "<think>\nTides are needed, for two days.\n</think>\n\nLooking them up.\n<tool_call>\n"
    "<function=get_tide>\n<parameter=port>\nBrest <b>é</b>\n</parameter>\n<parameter=hours>\n48\n</parameter>\n"
    "<parameter=code>\n007\n</parameter>\n</function>\n</tool_call>",
    "channels": "<|channel|>analysis<|message|>Rooms first.<|end|><|start|>assistant<|channel|>commentary"
    ' to=functions.list_rooms <|constrain|>json<|message|>{"floor": 2}<|call|>',
}
"""Texts by name. `endless` is the one that starts again instead of ending."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a model folder says: the text, and the ids in which it says it."""

    text: str
    ids: tuple[int, ...]
    endless: bool


def make_model(folder: Path, script: str, *, endless: bool = False, seed: int = 0) -> Script:
    """Write a model that says `script` into `folder`, and return what it will say.

    ValueError if the script cannot be spelled without using a token twice.
    """
    tokenizer = trained_tokenizer()
    pieces = spell(tokenizer, script.encode("utf-8"))
    tokenizer, ids = with_pieces(tokenizer, pieces)
    folder.mkdir(parents=True, exist_ok=True)
    # Engines like row counts that divide well.
    rows = -(-tokenizer.get_vocab_size() // 64) * 64
    _write_files(folder, tokenizer, rows)
    tensors = weights(ids, end=token_id(tokenizer, TURN_END), rows=rows, endless=endless, seed=seed)
    write_safetensors(folder / "model.safetensors", tensors)
    made = Script(script, tuple(ids), endless)
    _write_json(folder / "script.json", {"text": script, "ids": ids, "endless": endless})
    return made


def read_script(folder: Path) -> Script:
    """Return what the model in `folder` says."""
    found = json.loads((folder / "script.json").read_text(encoding="utf-8"))
    return Script(found["text"], tuple(found["ids"]), found["endless"])


# ── Files ────────────────────────────────────────────────────────────────────


def _write_files(folder: Path, tokenizer: Tokenizer, rows: int) -> None:
    template = Path(__file__).with_name("tiny_template.jinja").read_text(encoding="utf-8")
    ids = {token: token_id(tokenizer, token) for token in MARKED}
    end, pad = ids[TURN_END], ids[TEXT_END]
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "config.json", _config(rows, end=end, pad=pad))
    generation = {"do_sample": True, "eos_token_id": [end, pad], "pad_token_id": pad}
    _write_json(folder / "generation_config.json", generation)
    described = {
        str(token_id): {
            "content": token,
            "special": token in SPECIAL,
            **dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False),
        }
        for token, token_id in ids.items()
    }
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT,
            "add_prefix_space": False,
            "clean_up_tokenization_spaces": False,
            "bos_token": None,
            "eos_token": TURN_END,
            "pad_token": TEXT_END,
            "added_tokens_decoder": described,
            "chat_template": template,
        },
    )


def _config(rows: int, *, end: int, pad: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": rows,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_SIZE,
        "intermediate_size": INNER,
        "max_position_embeddings": CONTEXT,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10_000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": end,
        "pad_token_id": pad,
        "torch_dtype": "float32",
    }


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# ── Command line ─────────────────────────────────────────────────────────────


def main(arguments: Iterable[str]) -> None:
    """Make the folder the command line asks for."""
    parser = argparse.ArgumentParser(description="Make a tiny model that says one text.")
    parser.add_argument("folder", type=Path)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--script", metavar="TEXT", help="what the model says")
    what.add_argument("--named", choices=sorted(SCRIPTS), default="plain", help="one of our texts")
    parser.add_argument("--endless", action="store_true", help="start again instead of ending")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(list(arguments))
    named = given.script is None
    script = make_model(
        given.folder,
        SCRIPTS[given.named] if named else given.script,
        endless=given.endless or (named and given.named == "endless"),
        seed=given.seed,
    )
    sys.stdout.write(f"{given.folder}: {len(script.ids)} tokens\n")


if __name__ == "__main__":
    main(sys.argv[1:])
