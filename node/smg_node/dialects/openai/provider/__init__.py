"""Common parts of OpenAI's two generation APIs as vendors serve them."""
