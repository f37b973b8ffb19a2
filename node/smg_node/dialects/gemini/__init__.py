"""Gemini: Google's generateContent API: requests, answers, streams and errors."""
