"""Combined formats: families whose reasoning and tool calls are one grammar; one module a family,
each with `FORMATS`.
"""
