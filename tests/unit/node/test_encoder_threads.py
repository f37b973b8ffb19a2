import subprocess
import sys

PROGRAM = """
import os
from smg_node.cli import _import_wiring
_import_wiring()
from smg_chaos.engine.scripts.bundle import tiny_bundle
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.files.huggingface import load_huggingface

files = tiny_bundle("m", vocabulary=600, context=4096).files
loaded = load_huggingface(TokenizerBundle(files, "d", "here"), encoder="auto", trim=lambda: None)
loaded.encode("a line of many words\\n" * 50_000, add_special_tokens=False)
print(loaded.encoder, len(os.listdir("/proc/self/task")))
"""


def test_a_long_text_is_encoded_without_a_thread_of_the_encoders() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["fastokens", "1"]
