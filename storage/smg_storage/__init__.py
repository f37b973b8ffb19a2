"""Storage: history of conversations and responses behind one store protocol."""
