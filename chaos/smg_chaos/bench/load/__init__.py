"""Load generator: client processes with raw HTTP/1.1 connections, their workloads, and the check of
every answer.
"""
