"""Engine sizes: numbers of an engine that serves a 70B model on H100s, derived from the hardware.

    model      70.6 G parameters in bf16 (141 GB), 80 layers, 8 KV heads of 128: Llama 3 70B
    hardware   4 H100 SXM, tensor parallel: each 80 GB, 3.35 TB/s, 989 TFLOP/s in bf16 without sparsity
    KV         2 x 80 layers x 8 heads x 128 x 2 bytes = 327,680 bytes a token
    room       4 x 80 GB x 0.9 - 141 GB - 4 x 4 GB (activations, graphs) = 131 GB = 399,780 tokens
    prefill    2 x 70.6 GFLOP a token; at 40 % of the peak 11,200 tokens/s
    step       4 ms (launch, all-reduce, sampling) + the longer of
                 reading the weights once at 70 % of the bandwidth: 15.0 ms, and
                 computing all tokens of the step, one for each running request and a chunk of prompts
               + reading the KV of all running requests: 35 ns a token of context
    batching   continuous, at most 256 requests, prompts in chunks of 2,048 tokens a step, first come first served
    cache      blocks of 64 tokens, least recently used; the last token of a prompt is always computed

Public figures of H100s (NVIDIA's data sheet) and of the model (its card); 40 % and 70 % are what
served models reach. With 32 requests of 4,000 tokens a step takes 23.5 ms. Attention over what is
cached is not counted in prefill (9 % at 4,000 tokens), and no request is ever preempted: room for
the whole answer is taken at once.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineSize:
    """The numbers of one engine; see the module."""

    gpus: int = 4
    parameters: float = 70.6e9
    parameter_bytes: int = 2
    memory_bytes: float = 80e9
    memory_share: float = 0.9
    other_bytes: float = 4e9
    bytes_per_s: float = 3.35e12
    bandwidth_share: float = 0.7
    flop_per_s: float = 989e12
    compute_share: float = 0.4
    kv_bytes: int = 2 * 80 * 8 * 128 * 2
    overhead_s: float = 0.004
    slots: int = 256
    chunk_tokens: int = 2_048
    block: int = 64

    @property
    def weights_bytes(self) -> float:
        """All weights."""
        return self.parameters * self.parameter_bytes

    @property
    def kv_tokens(self) -> int:
        """How many tokens fit into the cache."""
        room = self.gpus * (self.memory_bytes * self.memory_share - self.other_bytes)
        return int((room - self.weights_bytes) / self.kv_bytes)

    @property
    def blocks(self) -> int:
        """How many blocks fit into the cache."""
        return self.kv_tokens // self.block

    @property
    def prefill_rate(self) -> float:
        """Tokens computed a second."""
        return self.gpus * self.flop_per_s * self.compute_share / (2 * self.parameters)

    @property
    def weights_s(self) -> float:
        """Seconds to read all weights once."""
        return self.weights_bytes / self._read_per_s

    @property
    def context_s(self) -> float:
        """Seconds to read the KV of one token."""
        return self.kv_bytes / self._read_per_s

    @property
    def _read_per_s(self) -> float:
        return self.gpus * self.bytes_per_s * self.bandwidth_share

    def step_s(self, running: int, context: int, prefill: int) -> float:
        """Return how long a step takes: requests that get a token, their tokens so far, tokens of prompts."""
        compute_s = (running + prefill) / self.prefill_rate
        return self.overhead_s + max(self.weights_s, compute_s) + context * self.context_s
