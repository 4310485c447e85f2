"""python -m ingot: the command line."""

import os
import sys

from .build import c_compiler
from .command import ToolError, executable


def main():
    program = executable()
    try:
        os.environ.setdefault("CC", c_compiler())  # ziglang's, where there is no cc
    except ToolError:
        pass  # whoever needs one will say so
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
