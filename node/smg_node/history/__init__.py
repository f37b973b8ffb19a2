"""What was said before: read into a request, kept when it is over, shown to whoever asks for it again."""
