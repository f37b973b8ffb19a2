"""Second opinion: the node's parsers checked against a reference gateway, chat templates and
damaged answers.
"""
