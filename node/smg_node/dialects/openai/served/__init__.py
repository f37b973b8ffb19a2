"""Served tools of the OpenAI APIs: tools that this node runs, as the entries of `tools` and `tool_choice` name them."""
