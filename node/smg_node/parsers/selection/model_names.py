"""Model names: formats by patterns of the model's name: the weakest evidence, and all that is left
without files.

No pattern is a bare word of a family: a name is believed as far as versions and sizes in it can be told apart
(`qwen3-8b` is no Qwen 3.8, `glm-4-9b` no GLM 4.9).
"""

import re
from typing import Final

_PATTERNS: Final = r"""
gpt-oss                                             harmony
r1.*distill|r1.*qwen3                               think plain
deepseek.*r1                                        think deepseek_v3
deepseek.*v4                                        think dsml_v4
deepseek.*v3[.-]?2-exp                              think deepseek_v31
deepseek.*v3[.-]?2(?!\d)                            think dsml
deepseek.*v3[.-]?1(?!\d)                            think deepseek_v31
deepseek.*v3                                        plain deepseek_v3
kimi-?k3                                            kimi_k3
kimi-?k2.*think|kimi-?k2[.-]?[5-9](?![\db])         think kimi_k2
kimi-?k2                                            plain kimi_k2
kimi-?vl.*think|kimi-?k1                            kimi plain
glm-?(4[.-]?)?[5-9](?![\db])                        think glm
qwen-?3[.-](5|6|8)(?![\db])|qwen-?3p5               think qwen_xml
qwen-?3.*coder                                      plain qwen_xml
qwen-?3.*instruct                                   plain hermes
qwen-?3|qwq                                         think hermes
qwen                                                plain hermes
minimax-?m3                                         minimax_m3
minimax-?m2|mm-?m2                                  think minimax_m2
minimax-?m1                                         think tool_calls_json
step-?3[.p-][5-9]                                   think qwen_xml
step-?3                                             think step3
nemotron-?3|nemotron.*nano.*v3|nano-?v3             think qwen_xml
llama.*nemotron.*(nano|super|ultra)|nemotron.*nano  think nemotron_json
seed-?oss                                           seed_oss
gemma-?4(?![\db])                                   gemma4
functiongemma                                       plain functiongemma
gemma-?3                                            plain
magistral|ministral.*reason|mistral-small-4         mistral
mistral|mixtral|ministral|devstral|codestral        plain mistral
command-a.*reason|command-?4|command-r7b            cohere_cmd cohere
command-(r|a)                                       plain cohere
hermes                                              think hermes
xlam                                                plain xlam
toolace                                             plain pythonic
llama-?4                                            plain pythonic
llama-?3[.-]?[1-9](?![\db])                         plain llama3_json
hunyuan.*a13b                                       hunyuan_a13b
(^|-)hy-?[34](?![\db])                              hy_v3
ernie-?4[.-]5.*think                                ernie45 hermes
granite-?4[.-]2                                     think qwen_xml
granite-?4                                          plain hermes
granite-?3                                          granite
phi-?4.*reason                                      think plain
phi-?4-mini                                         plain phi4
olmo-?3.*think                                      think plain
olmo-?3                                             plain olmo3
lfm-?2.*think                                       think lfm2
lfm-?2                                              plain lfm2
apertus                                             apertus
mimo-?v[2-9]                                        think qwen_xml
exaone-?4                                           think hermes
internlm-?[23]                                      plain internlm
intern-?s1                                          think hermes
jamba                                               plain tool_calls_json
longcat                                             think longcat
(^|-)[lr]ing-?3(?![\db])                            think glm
laguna|poolside                                     think glm
k2-?horizon                                         k2_horizon
inkling                                             inkling
"""


def _parsed(line: str) -> tuple[re.Pattern[str], str, str]:
    pattern, *formats = line.split()
    return re.compile(pattern), formats[0], formats[-1]


NAMES: Final = tuple(_parsed(line) for line in _PATTERNS.strip().splitlines())
"""Pattern, format of thoughts, format of calls; the first that is found in a normalised name counts."""
_RUNS: Final = re.compile(r"[_:@ ]+")


def normal_name(name: str) -> str:
    """Return the last part of a path in small letters, with `-` for runs of what separates words."""
    return _RUNS.sub("-", name.rstrip("/").rpartition("/")[2].lower())


def formats_of_name(name: str) -> tuple[str, str, str]:
    """Return the formats of thoughts and of calls that a name stands for, and the pattern; "" for an unknown one."""
    normal = normal_name(name)
    for pattern, reasoning, tools in NAMES:
        if pattern.search(normal):
            return reasoning, tools, pattern.pattern
    return "", "", ""
