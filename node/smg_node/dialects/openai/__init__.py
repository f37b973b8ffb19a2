"""OpenAI: parameters, log probabilities and frames that Chat Completions and Completions share."""
