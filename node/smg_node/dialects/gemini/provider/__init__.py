"""Provider dialect generateContent: writer, listener and judge of Gemini models at vendors."""
