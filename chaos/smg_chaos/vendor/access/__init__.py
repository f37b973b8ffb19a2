"""Access: keys, recomputed AWS signatures, and access tokens with an end."""
