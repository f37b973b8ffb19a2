"""Messages: the Anthropic Messages API: requests, answers, streams and errors."""
