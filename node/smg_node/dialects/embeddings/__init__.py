"""The Embeddings API, for engines that are sent token ids."""
