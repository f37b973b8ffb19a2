"""Processes of one node: a supervisor, one control process, several data processes, and what they
share.
"""
