"""ingot compiles neural networks to plain C; here from Python.

    import ingot

    ingot.compile("model.onnx", "out", dim={"batch": (1, 8)})   # what `ingot compile` does: a
                                                                folder of C
    model = ingot.Model("out")                                  # built by the system's C compiler,
                                                                and loaded
    scores = model(pixels)                                      # NumPy arrays, read where they lie
    outputs = model.run({"image": pixels})                      # by name

Whatever fails raises an ingot.Error with the one line that the command line would print.
docs/python.md has the rest.
"""

from .command import (
    Error,
    FileError,
    InternalError,
    InvalidModel,
    ToolError,
    Unsupported,
    UsageError,
    compile,
    executable,
)
from .model import Function, Model, RunError, Tensor, train

__all__ = [
    "Error",
    "FileError",
    "Function",
    "InternalError",
    "InvalidModel",
    "Model",
    "RunError",
    "Tensor",
    "ToolError",
    "Unsupported",
    "UsageError",
    "compile",
    "executable",
    "train",
]
