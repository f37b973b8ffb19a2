"""Files: tokenizer formats (tokenizer.json, tiktoken ranks, side files) and the checks of fast
encoders.
"""
