"""What type checkers and editors know of the package; tests/python/package.py keeps it equal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__version__: str

ModelSource = str | PathLike[str] | bytes | bytearray | memoryview | Any
Size = int | str | tuple[int, int] | range
Progress = bool | Callable[[str], object] | None

class Error(Exception):
    status: int | None

class UsageError(Error, ValueError): ...
class InvalidModel(Error): ...
class Unsupported(Error): ...
class ToolError(Error): ...
class FileError(Error, OSError): ...
class InternalError(Error): ...
class NoMemory(Error, MemoryError): ...

class RunError(Error):
    def __init__(self, message: str, status: int | None = None) -> None: ...

class InputError(RunError, ValueError): ...
class DataError(RunError, ValueError): ...
class DeviceError(RunError): ...

class Tensor:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | tuple[int, int], ...]
    length: int | None
    optional: bool
    elements: tuple[Tensor, ...]
    number: int
    @property
    def type(self) -> str: ...

class StepTime(NamedTuple):
    step: int
    name: str
    calls: int
    seconds: float

class Function:
    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    def __call__(self, *values: Any, **named: Any) -> Any: ...
    def run(self, *given: Any, out: Mapping[str, Any] | None = None) -> Any: ...
    async def run_async(self, *given: Any, out: Mapping[str, Any] | None = None) -> Any: ...
    def get_inputs(self) -> list[Tensor]: ...
    def get_outputs(self) -> list[Tensor]: ...

class Model(Function):
    def __init__(
        self,
        folder: str | PathLike[str],
        threads: int = 1,
        cflags: str = "-O3",
        seed: int = 0,
        target: str | None = None,
        profile: bool = False,
        on_device: bool = False,
        stream: int | None = None,
        progress: Callable[[str], object] | None = None,
    ) -> None: ...
    def __enter__(self) -> Model: ...
    def __exit__(self, *_: object) -> None: ...
    def clone(self, threads: int | None = None, stream: int | None = None) -> Model: ...
    def close(self) -> None: ...
    def profile(self, clear: bool = False) -> list[StepTime]: ...
    @property
    def target(self) -> str | None: ...
    @property
    def functions(self) -> dict[str, Function]: ...
    @property
    def states(self) -> dict[str, np.ndarray[Any, Any]]: ...
    def step(self, *values: Any, **named: Any) -> Any: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def load(self, path: str | PathLike[str]) -> None: ...
    def reset(self) -> None: ...
    def selftest(self) -> None: ...

class Vocabulary:
    ends: set[int]
    system: tuple[bytes, bytes]
    user: tuple[bytes, bytes]
    between: bytes
    trims: bool
    def __init__(self, model: Model) -> None: ...
    def tokens(
        self,
        text: str | bytes,
        control: bool = False,
        whole: bool = False,
        goes_on: bool = False,
        begins: bool = False,
    ) -> list[int]: ...
    def bytes_of(self, token: int, control: bool = False) -> bytes: ...
    def text(self, ids: Iterable[int], control: bool = False) -> str: ...

class Chat:
    model: Model
    vocabulary: Vocabulary
    system: str | None
    ids: list[int]
    def __init__(self, model: Model, system: str | None = None) -> None: ...
    def reset(self) -> None: ...
    def say(self, text: str | bytes, **options: Any) -> Iterator[str]: ...
    def complete(
        self,
        text: str | bytes | None = None,
        *,
        tokens: int = 512,
        stop: str | Iterable[str] = (),
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 0.0,
        min_p: float = 0.0,
        repeat_penalty: float = 0.0,
        seed: int = 0,
    ) -> Iterator[str]: ...

def load(
    model: ModelSource,
    target: str = "native",
    threads: int = 1,
    dim: Mapping[str, Size] | None = None,
    *,
    cflags: str = "-O3",
    seed: int = 0,
    profile: bool = False,
    on_device: bool = False,
    stream: int | None = None,
    progress: Progress = None,
    cache: bool = True,
    **options: Any,
) -> Model: ...
def compile(
    model: ModelSource,
    out: str | PathLike[str],
    *,
    progress: Callable[[str], object] | None = None,
    **options: Any,
) -> Path: ...
def train(
    model: ModelSource,
    out: str | PathLike[str] | None = None,
    *,
    loss: str | None = None,
    optimizer: str | None = None,
    threads: int = 1,
    cflags: str = "-O3",
    seed: int = 0,
    **options: Any,
) -> Model: ...
def executable() -> str: ...
