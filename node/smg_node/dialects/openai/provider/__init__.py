"""Provider side of OpenAI's APIs: what its Chat Completions and its Responses have in common."""
