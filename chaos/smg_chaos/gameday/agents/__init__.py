"""Agents: processes of the systems under test in the lab, and the clusters and engines they
form.
"""
