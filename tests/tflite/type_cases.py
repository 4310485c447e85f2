"""Cases of other types: a case of another table, whose tensors of one type have another one.

What LiteRT takes beyond the types of those tables, by coverage.py.
"""

import copy

import control_cases
import custom_cases
import float_cases
import flatbuffers
import hlo_cases
import hybrid_cases
import numpy as np
import quant_cases
import rnn_cases
import segment_cases
from ai_edge_litert import schema_py_generated as schema

BASE = (
    float_cases,
    quant_cases,
    hybrid_cases,
    rnn_cases,
    segment_cases,
    custom_cases,
    control_cases,
    hlo_cases,
)
NUMPY = {
    "f32": np.float32,
    "f16": np.float16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "bool": np.bool_,
}
WORD = {"f": "FLOAT", "i": "INT", "u": "UINT", "b": "BOOL"}
QUANTIZED = ("i8", "u8", "i16")


def number_of(short):
    """Of "f32": that of FLOAT32 in the schema."""
    return getattr(schema.TensorType, WORD[short[0]] + ("" if short == "bool" else short[1:]))


SHORT = {number_of(k): k for k in NUMPY}


def retyped(m, old, new):
    """A copy in which tensors of one type have another one."""
    m = copy.deepcopy(m)
    for t in m.subgraphs[0].tensors:
        if SHORT.get(t.type) != old:
            continue
        t.type = number_of(new)
        data = m.buffers[t.buffer].data
        if data is not None and len(data):
            v = np.frombuffer(np.asarray(data, np.uint8).tobytes(), NUMPY[old])
            if np.issubdtype(NUMPY[new], np.integer):
                i = np.iinfo(NUMPY[new])
                v = np.clip(np.round(v.astype(np.float64)), i.min, i.max)
            m.buffers[t.buffer].data = np.frombuffer(v.astype(NUMPY[new]).tobytes(), np.uint8)
        if new not in QUANTIZED:
            t.quantization = None
        elif t.quantization is None or t.quantization.scale is None:
            t.quantization = schema.QuantizationParametersT()
            t.quantization.scale = [0.0005 if new == "i16" else 0.05]
            t.quantization.zeroPoint = [0]
    return m


class Written:
    """A model of the schema's classes."""

    def __init__(self, m):
        self.m = m

    def bytes(self):
        b = flatbuffers.Builder(1 << 12)
        b.Finish(self.m.Pack(b), b"TFL3")
        return bytes(b.Output())


def read(make):
    """(the model of a case in the schema's classes, how its inputs are drawn)"""
    model, how = make()
    return schema.ModelT.InitFromPackedBuf(model.bytes(), 0), how


def case(base, old, new):
    def make():
        m, how = read(next(t.CASES[base] for t in BASE if base in t.CASES))
        return Written(retyped(m, old, new)), how

    return make


ALL = "f16 i8 u8 i16 u16 i32 u32 i64 bool"
# of which case, of which type: to which
TYPES = {
    ("cos", "f32"): "f16",
    ("floor", "f32"): "f16",
    ("logistic", "f32"): "f16",
    ("neg", "f32"): "f16 i8 i16 i32",
    ("relu_n1_to_1", "f32"): "u8",
    ("relu_0_to_1", "f32"): "i8 u8",
    ("round", "f32"): "f16",
    ("sign", "f32"): "i32",
    ("sin", "f32"): "f16",
    ("tanh", "f32"): "f16",
    ("gelu", "f32"): "f16",
    ("cast_f32_i32", "f32"): "f16 i8 u8 i16 u16 i32 u32 bool",
    ("cast_f32_i32", "i32"): "f32 f16 i8 u8 i16 u16 u32 i64 bool",
    ("cast_i32_f32", "f32"): "f16 i8 u8 i16 u16 u32 i64 bool",
    ("cast_i32_f32", "i32"): "f16 i8 u8 i16 u16 u32 i64",
    ("cast_bool_f32", "f32"): "f16 i8 u8 i16 u16 u32 i64 bool",
    ("cast_i64_i32", "i32"): "f16 i8 u8 i16 u16 u32 i64 bool",
    ("zeros_like", "f32"): "i32 i64",
    ("bitcast", "i32"): "f32 u32 i8 u8 i16 u16 f16",
    ("add", "f32"): "f16 i64",
    ("sub", "f32"): "i64",
    ("mul", "f32"): "f16 u32 i64",
    ("equal", "i32"): "f16 i64 bool",
    ("not_equal", "i32"): "f16 i64 bool",
    ("greater", "i32"): "f16 i16 i64",
    ("greater_equal", "i32"): "f16 i16 i64",
    ("less", "i32"): "f16 i16 i64",
    ("less_equal", "i32"): "f16 i16 i64",
    ("maximum", "f32"): "f16 i8 u8 i16 i32",
    ("minimum", "f32"): "f16 i8 u8 i16 i32 i64",
    ("pow", "f32"): "i32",
    ("floor_div", "f32"): "i16",
    ("floor_mod", "f32"): "i16",
    ("floor_mod_i32", "i32"): "i64",
    ("atan2", "f32"): "f16",
    ("bitwise_xor", "i32"): "i8 u8 i16 u16 u32",
    ("right_shift", "i32"): "i8 u8 i16 u16 u32",
    ("add_n", "f32"): "i32",
    ("select", "f32"): "f16 i8 u8 i16 i32",
    ("select_v2", "f32"): "f16 i8 u8 i16 i32",
    ("transpose_conv_same", "f32"): "u8",
    ("batch_matmul", "f32"): "i16",
    ("softmax", "f32"): "f16",
    ("resize_nearest_plain", "f32"): "f16 u8 i16 u16 i32 u32 bool",
    ("reshape", "f32"): "f16 u16 i32 u32 i64 bool",
    ("reshape_to_scalar", "i32"): "i8 u8 i16 i64",
    ("squeeze", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("expand_dims", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("expand_dims", "i32"): "i64",
    ("transpose", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("shape", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("rank", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("tile", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("tile", "i32"): "i64",
    ("broadcast_to", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("broadcast_to", "i32"): "i64",
    ("pad", "f32"): "f16 i32 i64 bool",
    ("pad", "i32"): "i8 i16 i64",
    ("padv2", "f32"): "f16 i8 u8 i16 i32 i64 bool",
    ("padv2", "i32"): "i8 i16 i64",
    ("mirror_pad", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("mirror_pad", "i32"): "i64",
    ("space_to_depth", "f32"): "i8 u8 i32 i64",
    ("depth_to_space", "f32"): "i8 u8 i32 i64",
    ("space_to_batch", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("batch_to_space", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("slice", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("slice", "i32"): "i64",
    ("reverse", "f32"): "f16 i8 u8 i16 i32 i64 bool",
    ("reverse_sequence", "f32"): "u8 i16 i32 i64",
    ("reverse_sequence", "i32"): "i64",
    ("unpack", "f32"): "f16 i8 u8 i16 i32 bool",
    ("split_v", "f32"): "i8 u8 i16 i32 i64",
    ("split_v", "i32"): "i64",
    ("strided_slice_plain", "f32"): "f16 i8 u8 i16 u16 u32 i64 bool",
    ("split", "f32"): "i8 u8 i16 i32",
    ("split", "i32"): "i8 u8 i16 u16 u32 i64 bool",
    ("concatenation", "f32"): "f16 i16 i32 u32 i64 bool",
    ("pack", "f32"): "i8 u8 i16 u32 i64",
    ("fill", "f32"): "f16 i8 u8 i16 i32",
    ("fill", "i32"): "i64",
    ("dynamic_update_slice", "f32"): "f16 i8 u8 i16 u16 i32 u32 i64 bool",
    ("dynamic_update_slice", "i32"): "i64",
    ("mean", "f32"): "i64",
    ("reduce_max", "f32"): "u8 i16 i32 i64 bool",
    ("reduce_min", "f32"): "i8 u8 i16 i32 i64 bool",
    ("arg_max", "f32"): "i8 u8 i32 bool",
    ("arg_min", "f32"): "i8 u8 i32 bool",
    ("arg_min", "i32"): "i64",
    ("cumsum", "f32"): "i32 i64",
    ("topk", "f32"): "i8 u8 i16 i32 i64",
    ("topk", "i32"): "i16",
    ("gather", "f32"): "f16 u8 i16 i32 i64 bool",
    ("gather", "i32"): "i16 i64",
    ("gather_nd", "f32"): "f16 i8 u8 i16 i32 i64 bool",
    ("gather_nd", "i32"): "i16 i64",
    ("embedding_lookup", "f32"): "f16 i8 u8 i16 i32",
    ("one_hot", "f32"): "i8 u8 i32",
    ("one_hot", "i32"): "i64",
    ("scatter_nd", "f32"): "i8 u8 i32",
    ("q_conv_tensor_i16", "i8"): "u8",
    ("q_fully_i16", "i8"): "u8",
    ("q_fully_i32_i16", "i8"): "u8",
    ("q_softmax_to_i16_i8", "i8"): "u8",
    ("q_pad_i8", "i32"): "i8 i16 i64",
    ("q_pad_u8", "i32"): "i8 i16 i64",
    ("q_pad_i16", "i32"): "i8 i16 i64",
    ("q_gather_i8", "i32"): "i16 i64",
    ("quantize_i8", "f32"): "i16",
    ("quantize_u8", "f32"): "i8",
    ("quantize_i16", "f32"): "u8",
    ("h_fully_False", "i8"): "u8",
    ("h_conv_0", "i8"): "u8",
    ("h_batch_matmul_False", "f32"): "i16",
    ("lstm_hybrid", "i8"): "u8",
    ("lstm_step_hybrid", "i8"): "u8",
    ("lstm_two_way_hybrid_False", "i8"): "u8",
    ("rnn_hybrid", "i8"): "u8",
    ("rnn_sequence_hybrid_False", "i8"): "u8",
    ("rnn_two_way_hybrid", "i8"): "u8",
    ("svdf_hybrid", "i8"): "u8",
    ("segment_sum", "f32"): "i32",
    ("bucketize", "f32"): "i32 i64",
    ("matrix_diag", "f32"): "i8 u8 i16 i32 u32 i64",
    ("matrix_set_diag_3", "f32"): "i8 u8 i16 i32 u32 i64",
    ("where_float32", "f32"): "i8 u32 i64",
    ("sparse_to_dense_float32", "f32"): "i8 u8",
    ("sparse_to_dense_float32", "i32"): "i64",
    ("sparse_to_dense_int32", "i32"): "i64",
    ("detections", "f32"): "u8",
    ("sum", "f32"): "i64 bool",
    ("reduce_prod", "f32"): "i32 i64 bool",
    ("arg_max", "i32"): "i64",
    ("bitcast", "f32"): "i32 u32 i64",
    ("q_prelu_i16", "i8"): "u8",
    ("q_prelu_i16", "i16"): "u8",
    ("dilate", "f32"): ALL,
    ("hlo_add", "f32"): ALL,
    ("hlo_multiply", "f32"): ALL,
    ("hlo_maximum", "f32"): ALL,
    ("hlo_minimum", "f32"): ALL,
    ("hlo_pad", "f32"): ALL,
    ("hlo_and", "bool"): "i8 u8 i16 u16 i32 u32 i64",
    ("hlo_shift_left", "i32"): "i8 i16",
    ("hlo_gather_last", "f32"): ALL,
    ("hlo_gather_last", "i32"): "i64",
    ("hlo_gather_first", "i32"): "i64",
    ("hlo_gather_of_numbers", "i32"): "i64",
    ("hlo_scatter_add_float32", "i64"): "i32",
    ("hlo_scatter_update_float32", "f32"): ALL,
    ("dequantize_i8", "f32"): "bool f16 i16 i32 i64 u16 u32 u8 i8",
    ("dequantize_u8", "f32"): "bool f16 i16 i32 i64 u16 u32 i8 u8",
    ("dequantize_i16", "f32"): "bool f16 i8 i32 i64 u16 u32 u8 i16",
}
CASES = {
    f"{base}_as_{old}_{new}": case(base, old, new)
    for (base, old), news in TYPES.items()
    for new in news.split()
}
