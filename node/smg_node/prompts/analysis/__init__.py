"""Analysis of chat templates: the message forms and switches they need, found from syntax tree and
test renders.
"""
