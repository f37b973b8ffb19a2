"""Chat Completions: reader and presenter of the API, and its client side towards HTTP workers."""
