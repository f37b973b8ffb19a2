"""Proto: messages of our own between nodes, on the wire; engine
contracts come from `smg-grpc-proto`.
"""
