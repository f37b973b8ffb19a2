"""Answers: what a request asks for and what the stand-in says to it, in no vendor's form."""
