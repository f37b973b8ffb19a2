"""What real models are called, what their files hold, and the formats they must be found to print."""

NAMES = """
openai/gpt-oss-120b                              harmony
gpt-oss:20b                                      harmony
deepseek-ai/DeepSeek-R1-Distill-Qwen-32B         think plain
deepseek-ai/DeepSeek-R1-0528-Qwen3-8B            think plain
r1-0528-qwen3-8b                                 think plain
deepseek-ai/DeepSeek-R1                          think deepseek_v3
DeepSeek-R1-0528                                 think deepseek_v3
deepseek-ai/DeepSeek-V4                          think dsml_v4
DeepSeek-V4-Flash-0731                           think dsml_v4
deepseek-ai/DeepSeek-V3.2-Exp                    think deepseek_v31
deepseek-ai/DeepSeek-V3.2                        think dsml
deepseek-ai/DeepSeek-V3.2-Speciale               think dsml
deepseek-v3-2                                    think dsml
deepseek-ai/DeepSeek-V3.1                        think deepseek_v31
DeepSeek-V3.1-Terminus                           think deepseek_v31
deepseek-v3                                      plain deepseek_v3
deepseek-ai/DeepSeek-V3-0324                     plain deepseek_v3
moonshotai/Kimi-K3                               kimi_k3
moonshotai/Kimi-K2-Thinking                      think kimi_k2
kimi-k2.5                                        think kimi_k2
kimi-k2.6                                        think kimi_k2
Kimi_K2.7                                        think kimi_k2
kimi-k2                                          plain kimi_k2
kimi-k2-8bit                                     plain kimi_k2
moonshotai/Kimi-K2-Instruct-0905                 plain kimi_k2
moonshotai/Kimi-VL-A3B-Thinking-2506             kimi plain
kimi-k1.5                                        kimi plain
kimi-latest                                      plain
zai-org/GLM-4.5                                  think glm
glm-4.5-air                                      think glm
glm45                                            think glm
GLM-4.6-FP8                                      think glm
glm-4.7-flash                                    think glm
zai-org/GLM-5                                    think glm
glm-5.1                                          think glm
glm-4-9b                                         plain
THUDM/glm-4-9b-chat                              plain
chatglm-6b                                       plain
Qwen/Qwen3.5-397B-A17B                           think qwen_xml
qwen3.5-4b                                       think qwen_xml
qwen-3.6-35b-a3b                                 think qwen_xml
qwen3.8-max                                      think qwen_xml
qwen3p5-9b                                       think qwen_xml
Qwen/Qwen3-Coder-480B-A35B-Instruct              plain qwen_xml
qwen3-coder:30b                                  plain qwen_xml
Qwen/Qwen3-235B-A22B-Instruct-2507               plain hermes
Qwen/Qwen3-Next-80B-A3B-Instruct                 plain hermes
Qwen/Qwen3-30B-A3B-Thinking-2507                 think hermes
qwen3-30b-a3b-thinking                           think hermes
qwen3-8b                                         think hermes
Qwen/Qwen3-6B                                    think hermes
Qwen/QwQ-32B                                     think hermes
Qwen/Qwen2.5-7B-Instruct                         plain hermes
qwen-max                                         plain hermes
MiniMaxAI/MiniMax-M3                             minimax_m3
MiniMaxAI/MiniMax-M2                             think minimax_m2
minimax-m2.7                                     think minimax_m2
mm-m2                                            think minimax_m2
MiniMaxAI/MiniMax-M1-80k                         think tool_calls_json
stepfun-ai/Step-3.5-Flash                        think qwen_xml
step3p7                                          think qwen_xml
stepfun-ai/step3                                 think step3
nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16       think qwen_xml
nvidia/NVIDIA-Nemotron-3-Super-120B-A12B         think qwen_xml
nvidia/Llama-3_3-Nemotron-Super-49B-v1_5         think nemotron_json
nvidia/NVIDIA-Nemotron-Nano-9B-v2                think nemotron_json
ByteDance-Seed/Seed-OSS-36B-Instruct             seed_oss
google/gemma-4-31B-it                            gemma4
gemma-4b                                         plain
google/gemma-3-27b-it                            plain
google/functiongemma-270m-it                     plain functiongemma
magistral                                        mistral
mistralai/Magistral-Small-2509                   mistral
mistralai/Ministral-3-14B-Reasoning-2512         mistral
mistralai/Mistral-Small-4-119B-2603              mistral
mistralai/Mistral-Small-3.2-24B-Instruct-2506    plain mistral
mistralai/Mixtral-8x7B-Instruct-v0.1             plain mistral
mistralai/Devstral-Small-2507                    plain mistral
mistralai/Codestral-22B-v0.1                     plain mistral
CohereLabs/command-a-reasoning-08-2025           cohere_cmd cohere
CohereLabs/c4ai-command-r7b-12-2024              cohere_cmd cohere
command-4                                        cohere_cmd cohere
CohereLabs/c4ai-command-a-03-2025                plain cohere
command-r-plus                                   plain cohere
NousResearch/Hermes-4-70B                        think hermes
NousResearch/Hermes-3-Llama-3.1-8B               think hermes
Salesforce/Llama-xLAM-2-8b-fc-r                  plain xlam
Team-ACE/ToolACE-2-Llama-3.1-8B                  plain pythonic
meta-llama/Llama-4-Scout-17B-16E-Instruct        plain pythonic
meta-llama/Llama-3.1-8B-Instruct                 plain llama3_json
Llama-3.3-70B-Instruct                           plain llama3_json
meta-llama/Meta-Llama-3-8B                       plain
tencent/Hunyuan-A13B-Instruct                    hunyuan_a13b
tencent/Hy3-preview                              hy_v3
hy-4                                             hy_v3
baidu/ERNIE-4.5-21B-A3B-Thinking                 ernie45 hermes
baidu/ERNIE-4.5-21B-A3B-PT                       plain
ibm-granite/granite-4.2-8b                       think qwen_xml
ibm-granite/granite-4.0-h-small                  plain hermes
ibm-granite/granite-3.3-8b-instruct              granite
microsoft/Phi-4-reasoning-plus                   think plain
microsoft/Phi-4-mini-instruct                    plain phi4
allenai/Olmo-3-32B-Think                         think plain
allenai/Olmo-3-7B-Instruct                       plain olmo3
LiquidAI/LFM2.5-1.2B-Thinking                    think lfm2
LiquidAI/LFM2-8B-A1B                             plain lfm2
swiss-ai/Apertus-8B-Instruct-2509                apertus
XiaomiMiMo/MiMo-V2-Flash                         think qwen_xml
LGAI-EXAONE/EXAONE-4.0-32B                       think hermes
internlm/internlm3-8b-instruct                   plain internlm
internlm/Intern-S1                               think hermes
ai21labs/AI21-Jamba-Large-1.7                    plain tool_calls_json
meituan-longcat/LongCat-Flash-Thinking           think longcat
inclusionAI/Ring-3.0                             think glm
inclusionAI/Ling-3.0-flash                       think glm
spring-3b                                        plain
ring-3b                                          plain
poolside/Laguna-XS.2                             think glm
k2-horizon                                       k2_horizon
thinkingmachines/Inkling                         inkling
gpt2                                             plain
my-model                                         plain
"""


def name_rows() -> list[tuple[str, str, str]]:
    """Return each name with its formats of thoughts and of calls."""
    lines = [line.split() for line in NAMES.strip().splitlines()]
    return [(line[0], line[1], line[-1]) for line in lines]


MARKS: list[tuple[str, str, str, str]] = [
    # the template, the added tokens, thoughts, calls
    ("<|iquest_assistant|>", "", "think", "glm"),
    ("<｜GCML｜tool_calls>", "", "think", "dsml_gcml"),
    ("<ifm|think>", "", "k2_horizon", "k2_horizon"),
    ("<ifm|tool_calls>", "", "k2_horizon", "k2_horizon"),
    ("", "<|inner_prefix|>", "apertus", "apertus"),
    ("<|channel>thought", "", "gemma4", "gemma4"),
    ("<|channel|>", "<|channel|> <|constrain|>", "harmony", "harmony"),
    ("<|open|> <|sep|>", "", "kimi_k3", "kimi_k3"),
    ("", "<|end_of_msg|>", "kimi_k3", "kimi_k3"),
    ("", "<|message_model|>", "inkling", "inkling"),
    ("<atem:function_calls>", "", "muse", "muse"),
    ("<think>", "<|tool_calls_section_begin|>", "think", "kimi_k2"),
    ("", "<|tool_calls_section_begin|> <think>", "think", "kimi_k2"),
    ("", "<|tool_calls_section_begin|>", "plain", "kimi_k2"),
    ("<mm:think>", "", "minimax_m3", "minimax_m3"),
    ("]<]minimax[>[", "", "minimax_m3", "minimax_m3"),
    ("<minimax:tool_call>", "", "think", "minimax_m2"),
    ("", "[TOOL_CALLS] [THINK] [ARGS]", "mistral", "mistral"),
    ("", "[TOOL_CALLS] [THINK]", "mistral", "mistral"),
    ("<think>", "[TOOL_CALLS]", "think", "mistral"),
    ("", "[TOOL_CALLS] [ARGS]", "plain", "mistral"),
    ("", "[TOOL_CALLS]", "plain", "mistral"),
    ("<｜DSML｜ calls>", "", "think", "dsml_v41"),
    ("<｜DSML｜tool_calls>", "", "think", "dsml_v4"),
    ("<｜DSML｜function_calls>", "", "think", "dsml"),
    ("set t = '｜DSML｜' '<' + t + 'function_calls>'", "", "think", "dsml"),
    ("set t = '｜DSML｜' '<' + t + 'tool_calls>'", "", "think", "dsml_v4"),
    ("<think> ```json", "<｜tool▁calls▁begin｜>", "think", "deepseek_v3"),
    ("```json", "<｜tool▁calls▁begin｜>", "plain", "deepseek_v3"),
    ("<think>", "<｜tool▁calls▁begin｜>", "think", "deepseek_v31"),
    ("<steptml:", "", "think", "step3"),
    ("<think>", "<|tool_call_start|>", "think", "lfm2"),
    ("", "<|tool_call_start|>", "plain", "lfm2"),
    ("", "<tool_sep>", "hy_v3", "hy_v3"),
    ("", "<tool_sep:opensource>", "hy_v3", "hy_v3"),
    ("<tool_calls> <arg_key>", "", "hy_v3", "hy_v3"),
    ("[gMASK]<sop>", "", "think", "glm"),
    ("", "<arg_key> <arg_value>", "think", "glm"),
    ("<think><function= <parameter=", "", "think", "qwen_xml"),
    ("<function= <parameter=", "", "plain", "qwen_xml"),
    ("<function name= <param name=", "", "think", "minicpm5"),
    ("<TOOLCALL>", "", "think", "nemotron_json"),
    ("", "<|START_THINKING|> <|START_ACTION|>", "cohere_cmd", "cohere"),
    ("<cofl:tool_calls>", "<|START_THINKING|>", "cohere_cmd", "cofl"),
    ("", "<|START_ACTION|>", "cohere_cmd", "cohere"),
    ("<seed:tool_call> <function= <parameter=", "", "seed_oss", "seed_oss"),
    ("<function_calls> <think>", "", "think", "olmo3"),
    ("<function_calls>", "", "plain", "olmo3"),
    ("<start_function_call>", "", "plain", "functiongemma"),
    ("", "<|action_start|>", "plain", "internlm"),
    ("", "<|python_start|>", "plain", "pythonic"),
    ("", "<|python_tag|>", "plain", "llama3_json"),
    ("<think>", "<|python_tag|>", "think", "llama3_json"),
    ("◁think▷", "", "kimi", "plain"),
    ("[BEGIN FINAL RESPONSE] <tool_calls>", "", "apriel", "tool_calls_json"),
    ("<|role_sep|> function call", "", "plain", "gigachat3"),
    ("<longcat_tool_call> <think>", "", "think", "longcat"),
    ("functools", "", "plain", "phi4"),
    ("<tool_calls>", "", "plain", "tool_calls_json"),
    ("<|tool_calls|>", "", "plain", "sarashina"),
    ("<|tool_calls|><|tool_call:begin|>", "", "plain", "plain"),
    ('<tool_call>{"name": 1, "arguments": 2}', "", "plain", "hermes"),
    ('<think><tool_call>{"name": 1, "arguments": 2}', "", "think", "hermes"),
    ('<tool_call>[{"name": 1, "arguments": 2}]', "", "plain", "granite"),
    ("<think>", "", "think", "plain"),
    ("split('</think>')", "", "think", "plain"),
    ("<tool_call>", "", "plain", "plain"),
    ("{{ messages }}", "<tool_call>", "plain", "plain"),
]


KINDS = [
    ("gpt_oss", "harmony", "harmony"),
    ("deepseek_v32", "think", "dsml"),
    ("deepseek_v4", "think", "dsml_v4"),
    ("deepseek_v3", "plain", "plain"),
    ("kimi_k25", "think", "kimi_k2"),
    ("kimi_k3", "kimi_k3", "kimi_k3"),
    ("glm4_moe", "think", "glm"),
    ("glm_moe_dsa", "think", "glm"),
    ("glm5_next", "think", "glm"),
    ("qwen3", "think", "plain"),
    ("qwen3_moe", "think", "plain"),
    ("qwen3_next", "think", "plain"),
    ("qwen3_5", "think", "qwen_xml"),
    ("qwen3_5_moe", "think", "qwen_xml"),
    ("minimax_m2", "think", "minimax_m2"),
    ("minimax_m3", "minimax_m3", "minimax_m3"),
    ("minimax_m3_vl", "minimax_m3", "minimax_m3"),
    ("seed_oss", "seed_oss", "seed_oss"),
    ("step3_vl", "think", "step3"),
    ("step3p5", "think", "qwen_xml"),
    ("step3p7", "think", "qwen_xml"),
    ("hunyuan_v1_moe", "hunyuan_a13b", "hunyuan_a13b"),
    ("hy_v3", "hy_v3", "hy_v3"),
    ("hy_v4", "hy_v3", "hy_v3"),
    ("ernie4_5_moe", "plain", "hermes"),
    ("nemotron_h", "plain", "plain"),
    ("granitemoehybrid", "plain", "plain"),
    ("gemma4", "gemma4", "gemma4"),
    ("cohere2", "cohere_cmd", "cohere"),
    ("cohere2_moe", "cohere_cmd", "cohere"),
    ("mistral3", "plain", "mistral"),
    ("ministral3", "plain", "mistral"),
    ("mistral4", "plain", "mistral"),
    ("olmo3", "plain", "plain"),
    ("lfm2", "plain", "lfm2"),
    ("lfm2_moe", "plain", "lfm2"),
    ("apertus", "apertus", "apertus"),
    ("exaone4", "think", "hermes"),
    ("llama4", "plain", "pythonic"),
    ("jamba", "plain", "tool_calls_json"),
    ("internlm2", "plain", "internlm"),
    ("longcat_flash", "plain", "longcat"),
    ("mimo_v2", "think", "qwen_xml"),
    ("laguna", "think", "glm"),
    ("inkling", "inkling", "inkling"),
    ("muse_glimmer", "muse", "muse"),
    ("bailing_moe_v3", "think", "glm"),
]


LABELS = """
think -             deepseek_r1 deepseek-r1 deepseek_v3 deepseek-v3 deepseek_v31 deepseek_v4 deepseek_v41 qwen3
think -             qwen3-thinking qwen3_thinking glm45 glm47 glm kimi_k2 kimi_k25 kimi_thinking step3 step3p5
think -             minimax minimax_m2 minimax-append-think minimax_m2_append_think nano_v3 nemotron_v3 nemotron_3
think -             llama_nemotron olmo3 ling3 ling mimo holo2 interns1 nanbeige poolside_v1 dots iquest_q1 lfm2.5
think -             granite_thinking_parser minicpmv think
- hermes            hermes qwen qwen25 qwen2.5 qwen3 granite4 interns1
- qwen_xml          qwen3_coder qwen_coder qwen3_xml qwen_xml step3p5 mimo nemotron
- glm               glm45 glm47 glm45_moe glm47_moe glm glm4 ling ling3 poolside_v1
- deepseek_v3       deepseek_v3 deepseekv3 deepseek
- deepseek_v31      deepseek_v31 deepseekv31 deepseek31
- dsml              deepseek_v32 deepseekv32 deepseek32
- dsml_v4           deepseek_v4 deepseekv4
- dsml_v41          deepseek_v4.1 deepseek_v41
- kimi_k2           kimik2 kimi_k2
- mistral           mistral mistral_v13
- llama3_json       llama3 llama llama3_json llama4_json
- pythonic          pythonic llama4_pythonic
harmony harmony     gpt-oss openai openai_gptoss
cohere_cmd cohere   cohere_command3 cohere_command4 cohere_cmd
- phi4              phi4_mini_json
- tool_calls_json   jamba minimax_m1
- minimax_m2        minimax-m2 minimax_m2
- functiongemma     functiongemma function_gemma
response_template response_template  hf response_template
"""


def label_rows() -> list[tuple[str, str, str]]:
    """Return each label with what it means for thoughts and for calls, `-` where it is not used."""
    lines = [line.split() for line in LABELS.strip().splitlines()]
    return [(label, line[0], line[1]) for line in lines for label in line[2:]]
