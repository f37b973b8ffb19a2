"""Approvals: runs of tools that wait for an operator's word, wherever they wait and whichever node is told."""
