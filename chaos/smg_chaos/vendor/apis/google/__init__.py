"""The generateContent API of Google."""
