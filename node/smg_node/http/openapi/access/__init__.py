"""Access in `/openapi.json`: API keys, issuers of tokens, denials and roles."""
