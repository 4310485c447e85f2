"""The structs of a bundle that cross to Python: igrt.h and host/driver.h, as ctypes. A bundle's
library tells their sizes, which are compared when it is loaded."""

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint32,
    c_uint64,
    c_void_p,
)

import numpy as np

try:
    import ml_dtypes
except ImportError:  # then types that NumPy lacks are their bytes
    ml_dtypes = None

VERSION = 1  # IGRT_ABI_VERSION
OF_INIT = (16, 17, 22)  # statuses of init that leave a fault: IGRT_ERR_DEVICE, _BUILD, _FEATURE
MAX_RANK = 8
NO_MEMBER = 2 ** (8 * ctypes.sizeof(c_size_t)) - 1

STRING = 26
NUMPY = {
    1: np.bool_,
    2: np.int8,
    3: np.uint8,
    4: np.int16,
    5: np.uint16,
    6: np.int32,
    7: np.uint32,
    8: np.int64,
    9: np.uint64,
    10: np.float16,
    12: np.float32,
    13: np.float64,
    24: np.complex64,
    25: np.complex128,
    STRING: object,
}
NAMES = {
    1: "bool",
    2: "i8",
    3: "u8",
    4: "i16",
    5: "u16",
    6: "i32",
    7: "u32",
    8: "i64",
    9: "u64",
    10: "f16",
    11: "bf16",
    12: "f32",
    13: "f64",
    14: "f8e4m3fn",
    15: "f8e4m3fnuz",
    16: "f8e5m2",
    17: "f8e5m2fnuz",
    18: "f8e8m0",
    19: "i4",
    20: "u4",
    21: "f4e2m1",
    22: "i2",
    23: "u2",
    24: "c64",
    25: "c128",
    STRING: "string",
}
# what ml_dtypes calls the others, and their bytes in memory
OTHERS = {
    11: ("bfloat16", np.uint16),
    14: ("float8_e4m3fn", np.uint8),
    15: ("float8_e4m3fnuz", np.uint8),
    16: ("float8_e5m2", np.uint8),
    17: ("float8_e5m2fnuz", np.uint8),
    18: ("float8_e8m0fnu", np.uint8),
    19: ("int4", np.int8),
    20: ("uint4", np.uint8),
    21: ("float4_e2m1fn", np.uint8),
    22: ("int2", np.int8),
    23: ("uint2", np.uint8),
}
for number, (name, storage) in OTHERS.items():
    NUMPY[number] = getattr(ml_dtypes, name, storage) if ml_dtypes else storage
WIDENED = {19: np.int8, 22: np.int8}  # a signed type of less than 8 bits is sign-extended in memory


class Io(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_int),
        ("max_dims", c_int64 * MAX_RANK),
        ("data_offset", c_size_t),
        ("dims_offset", c_size_t),
        ("min_dims", c_int64 * MAX_RANK),
        ("optional", c_int),
    ]


class Group(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("first", c_int),
        ("n", c_int),
        ("length_offset", c_size_t),
        ("present_offset", c_size_t),
    ]


class Memory(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


class Fault(ctypes.Structure):
    _fields_ = [("what", c_char_p), ("value", c_int64), ("least", c_int64), ("greatest", c_int64)]


class Config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("arena", c_void_p),
        ("arena_bytes", c_size_t),
        ("weights", c_void_p),
        ("weights_bytes", c_size_t),
        ("threads", c_int),
        ("parallel_for", c_void_p),
        ("parallel_user", c_void_p),
        ("device", c_void_p),
        ("stream", c_void_p),
        ("clock", c_void_p),
        ("profile", c_void_p),
        ("user", c_void_p),
        ("flags", c_uint),
        ("memory", POINTER(Memory)),
        ("n_memories", c_int),
        ("seed", c_uint64),
        ("gpu", c_char_p),
        ("target", c_char_p),
        ("stop", c_void_p),
        ("comm", c_void_p),
    ]


class Function(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("inputs", POINTER(Io)),
        ("n_inputs", c_int),
        ("outputs", POINTER(Io)),
        ("n_outputs", c_int),
        ("inputs_bytes", c_size_t),
        ("outputs_bytes", c_size_t),
        ("input_groups", POINTER(Group)),
        ("output_groups", POINTER(Group)),
        ("n_input_groups", c_int),
        ("n_output_groups", c_int),
        ("call", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)),
    ]


class State(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_int),
        ("dims", c_int64 * MAX_RANK),
        ("data", c_void_p),
        ("bytes", c_size_t),
    ]


class ChatForm(ctypes.Structure):
    _fields_ = [("system", c_char_p * 2), ("user", c_char_p * 2), ("between", c_char_p)]


class Sampling(ctypes.Structure):
    _fields_ = [
        ("temperature", c_float),
        ("top_k", c_int32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("repeat_penalty", c_float),
        ("repeat_last", c_int32),
        ("seed", c_uint64),
    ]


class Vocab(ctypes.Structure):
    _fields_ = [
        ("word", POINTER(c_uint32)),
        ("tables", c_void_p * 6),
        ("ends", POINTER(c_uint32)),
        ("texts", c_void_p * 2),
        ("form", ChatForm),
    ]


class Typed(ctypes.Structure):
    _fields_ = [("first", c_size_t), ("end", c_size_t)]


class TextCalls(ctypes.Structure):
    _fields_ = [
        ("file", c_char_p),
        ("bytes", c_size_t),
        ("open", CFUNCTYPE(c_int, POINTER(Vocab), c_void_p, c_size_t)),
        (
            "tokenize",
            CFUNCTYPE(
                c_size_t, POINTER(Vocab), c_char_p, c_size_t, c_uint, POINTER(c_int32), c_size_t
            ),
        ),
        ("token_text", CFUNCTYPE(c_size_t, POINTER(Vocab), c_int32, c_uint, c_void_p, c_size_t)),
        ("find", CFUNCTYPE(c_int32, POINTER(Vocab), c_char_p, c_size_t)),
        (
            "sample",
            CFUNCTYPE(c_int32, POINTER(Sampling), c_void_p, c_int32, POINTER(c_int32), c_size_t),
        ),
        ("data", c_void_p),
        ("form", CFUNCTYPE(POINTER(ChatForm), POINTER(Vocab))),
        (
            "tokenize_typed",
            CFUNCTYPE(
                c_size_t,
                POINTER(Vocab),
                c_char_p,
                c_size_t,
                c_uint,
                POINTER(Typed),
                c_size_t,
                POINTER(c_int32),
                c_size_t,
            ),
        ),
    ]


class ModelTable(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("inputs", POINTER(Io)),
        ("n_inputs", c_int),
        ("outputs", POINTER(Io)),
        ("n_outputs", c_int),
        ("ctx_bytes", c_size_t),
        ("inputs_bytes", c_size_t),
        ("outputs_bytes", c_size_t),
        ("arena_align", c_size_t),
        ("arena_bytes", CFUNCTYPE(c_size_t, c_int)),
        ("weights_file", c_char_p),
        ("weights_bytes", c_size_t),
        ("init", CFUNCTYPE(c_int, c_void_p, POINTER(Config))),
        ("run", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)),
        ("reset", CFUNCTYPE(c_int, c_void_p)),
        ("selftest", CFUNCTYPE(c_int, c_void_p)),
        ("deinit", CFUNCTYPE(None, c_void_p)),
        ("memory_bytes", POINTER(c_size_t)),
        ("n_memories", c_int),
        ("fault", CFUNCTYPE(POINTER(Fault), c_void_p)),
        ("input_groups", POINTER(Group)),
        ("output_groups", POINTER(Group)),
        ("n_input_groups", c_int),
        ("n_output_groups", c_int),
        ("memory", c_void_p),
        ("wait", c_void_p),
        ("target", CFUNCTYPE(c_char_p, c_void_p)),
        ("cpu_name", c_void_p),
        ("functions", POINTER(Function)),
        ("n_functions", c_int),
        ("n_states", c_int),
        ("state", CFUNCTYPE(c_int, c_void_p, c_int, POINTER(State))),
        ("text", POINTER(TextCalls)),
    ]


class Bundle(ctypes.Structure):
    """The symbol igrt_bundle."""

    _fields_ = [
        ("abi", c_int),
        ("model_bytes", c_size_t),
        ("io_bytes", c_size_t),
        ("group_bytes", c_size_t),
        ("config_bytes", c_size_t),
        ("pool_bytes", c_size_t),
        ("model", POINTER(ModelTable)),
        ("status_text", CFUNCTYPE(c_char_p, c_int)),
    ]

    def fits(self):
        return (self.abi, self.model_bytes, self.io_bytes, self.group_bytes, self.config_bytes) == (
            VERSION,
            *map(ctypes.sizeof, (ModelTable, Io, Group, Config)),
        )
