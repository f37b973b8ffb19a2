"""APIs in the manner of OpenAI: Chat Completions, Responses, and the small ones beside them."""
