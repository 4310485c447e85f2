"""python -m ingot: the command line."""

import os
import sys

from .command import executable


def main():
    program = executable()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
