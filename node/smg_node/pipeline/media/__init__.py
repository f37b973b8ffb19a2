"""Media of prompts: pictures got, planned, worked on in threads, and finished for the chosen worker."""
