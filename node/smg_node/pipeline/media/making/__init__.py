"""Making of media: patches of pictures and videos in threads, and the memory that this takes."""
