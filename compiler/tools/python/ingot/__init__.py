"""ingot compiles neural networks to plain C; here from Python.

    import ingot

    model = ingot.load("model.onnx", threads=4)     # compiled for this machine, once; then cached
    scores = model(pixels)                          # NumPy arrays, torch tensors: anything DLPack
    scores, = model.run(None, {"image": pixels})    # as ONNX Runtime is called
    outputs = model.run({"image": pixels})          # a dict by name

    ingot.compile("model.onnx", "out", dim={"batch": (1, 8)})   # a folder of C, to ship
    model = ingot.Model("out")                      # the same folder, built and loaded here

Whatever fails raises an ingot.Error, with the message that the command line would print.
docs/python.md has the rest.
"""

from .cache import load
from .command import (
    Error,
    FileError,
    InternalError,
    InvalidModel,
    NoMemory,
    ToolError,
    Unsupported,
    UsageError,
    compile,
    executable,
    version,
)
from .model import Function, Model, StepTime, train
from .ports import DataError, DeviceError, InputError, RunError, Tensor
from .text import Chat, Vocabulary

__all__ = [
    "Chat",
    "DataError",
    "DeviceError",
    "Error",
    "FileError",
    "Function",
    "InputError",
    "InternalError",
    "InvalidModel",
    "Model",
    "NoMemory",
    "RunError",
    "StepTime",
    "Tensor",
    "ToolError",
    "Unsupported",
    "UsageError",
    "Vocabulary",
    "compile",
    "executable",
    "load",
    "train",
]


def __getattr__(name):  # the program is asked when somebody wants to know
    if name == "__version__":
        globals()[name] = version()
        return globals()[name]
    raise AttributeError(f"module 'ingot' has no attribute {name!r}")
