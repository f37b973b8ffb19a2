"""How chats are remembered: conversations and responses behind one store protocol."""
