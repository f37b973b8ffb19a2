"""Scripts: the generated text, and the tokenizer that goes with it."""
