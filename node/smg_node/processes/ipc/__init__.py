"""IPC between the processes of a node: framed messages over Unix sockets, one link per data
process.
"""
