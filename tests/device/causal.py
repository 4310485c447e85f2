"""bars.py's causal: attention of long rows behind a causal mask, f16, a head of keys for each four,
beside the faster one of cuDNN's and FlashAttention's kernels in torch, in turns."""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
TOKENS, HEADS, KEYS = 8192, 32, 8
SIZES = [(each, rows) for each in (64, 128) for rows in (2048, 4096, 8192)]
SMALL = [(64, 576)]


def model(each, rows, small=False):
    from onnx import TensorProto, helper

    batch, heads, keys = (1, 2, 1) if small else (TOKENS // rows, HEADS, KEYS)
    x, k, v, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, [batch, n, rows, each])
        for name, n in (("x", heads), ("k", keys), ("v", keys), ("y", heads))
    )
    nodes = [helper.make_node("Attention", ["x", "k", "v"], ["y"], is_causal=1)]
    return helper.make_model(
        helper.make_graph(nodes, "causal", [x, k, v], [y]),
        opset_imports=[helper.make_opsetid("", 23)],
        ir_version=10,
    )


def models(small):
    for each, rows in SMALL if small else SIZES:
        yield f"causal_{each}_{rows}", model(each, rows, small)


def peers(torch):
    """By names, kernels of torch's attention that this machine has."""

    def by(backend):
        def attention(q, k, v):
            with torch.nn.attention.sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=True, enable_gqa=True
                )

        return attention

    backends = torch.nn.attention.SDPBackend
    return {"cudnn": by(backends.CUDNN_ATTENTION), "flash": by(backends.FLASH_ATTENTION)}


def causal(m, torch, rng, tools):
    """tools: what bars.py has: inputs_of, beside_torch, of_range."""
    for folder in sorted((HERE / "models").glob("causal_*")):
        name, data = folder.name, m.work / f"in_{folder.name}"
        given = tools.inputs_of(data, m.program(name), rng)
        each, rows = map(int, re.findall(r"\d+", name))
        flops = 2 * given[0].size * rows  # half of each row's keys, in two products
        told, error = {}, None
        if not torch:
            _, told = tools.beside_torch(m, torch, name, data, given, None)
        for peer, attention in (peers(torch) if torch else {}).items():
            outputs, figures = tools.beside_torch(m, torch, name, data, given, attention)
            want = attention(*(torch.from_numpy(v).cuda() for v in given)).float().cpu().numpy()
            error = max(error or 0, tools.of_range(outputs[0], want))
            if figures["torch_by_ours"] < told.get("torch_by_ours", float("inf")):
                told = figures | {"peer": peer}
        m.tell(
            name,
            good=error is None or error < 5e-3,
            **told,
            flops=flops / told["ours_ms"] * 1e3,
            error=error,
        )
