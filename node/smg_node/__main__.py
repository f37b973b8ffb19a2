"""Main module: `python -m smg_node`, the same as `smg-node`."""

import sys

from smg_node.cli import main

if __name__ == "__main__":
    sys.exit(main())
