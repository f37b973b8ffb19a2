"""Sessions with one server: opening one, requests and answers of it, the course of one tool call; pure."""
