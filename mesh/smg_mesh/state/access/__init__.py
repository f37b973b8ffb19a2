"""Access: keys of token issuers as any node fetched them, and the people whose tokens are refused."""
