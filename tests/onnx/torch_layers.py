"""The modules of torch_cases.py: layers, and functions that models are written with."""

import zlib

import torch
import torch.nn.functional as F
from torch import nn


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


class First(nn.Module):
    """A recurrent layer's results without what it leaves."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, *x):
        return self.of(*x)[0]


R = torch.randn
IMAGE, ROW, LINE, BOX = (2, 4, 9, 8), (2, 5, 6), (2, 4, 11), (2, 3, 5, 6, 4)


def ints(hi, *shape):
    return torch.randint(0, hi, shape)


# name: (what makes the module, shapes of inputs, or what makes them)
LAYERS = {
    "linear": (lambda: nn.Linear(6, 7), [ROW]),
    "bilinear": (lambda: nn.Bilinear(5, 6, 3), [(4, 5), (4, 6)]),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding="same", dilation=2), [LINE]),
    "conv1d_circular": (lambda: nn.Conv1d(4, 6, 3, padding=2, padding_mode="circular"), [LINE]),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0)), [IMAGE]),
    "conv2d_groups": (lambda: nn.Conv2d(4, 8, 3, groups=2, dilation=2), [IMAGE]),
    "conv2d_depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4, padding=1), [IMAGE]),
    "conv2d_reflect": (lambda: nn.Conv2d(4, 5, 3, padding=1, padding_mode="reflect"), [IMAGE]),
    "conv3d": (lambda: nn.Conv3d(3, 4, (3, 3, 2), padding=1), [BOX]),
    "deconv1d": (lambda: nn.ConvTranspose1d(4, 3, 4, stride=3, output_padding=1), [LINE]),
    "deconv2d": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), [IMAGE]),
    "deconv3d": (lambda: nn.ConvTranspose3d(3, 2, 2, stride=2), [BOX]),
    "unfold": (lambda: nn.Unfold((3, 2), padding=1, stride=2), [IMAGE]),
    "fold": (lambda: nn.Fold((4, 5), (2, 2)), [(2, 12, 12)]),
    "max_pool1d": (lambda: nn.MaxPool1d(3, 2, ceil_mode=True), [LINE]),
    "max_pool2d": (lambda: nn.MaxPool2d(3, 2, 1, dilation=2), [IMAGE]),
    "max_pool2d_places": (lambda: nn.MaxPool2d(2, return_indices=True), [IMAGE]),
    "max_pool3d": (lambda: nn.MaxPool3d(2, 1), [BOX]),
    "avg_pool1d": (lambda: nn.AvgPool1d(3, 2, 1), [LINE]),
    "avg_pool2d": (lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True), [IMAGE]),
    "avg_pool2d_whole": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), [IMAGE]),
    "avg_pool3d": (lambda: nn.AvgPool3d((2, 3, 2)), [BOX]),
    "lp_pool2d": (lambda: nn.LPPool2d(2, 3, 2), [IMAGE]),
    "adaptive_avg": (lambda: nn.AdaptiveAvgPool2d((3, 4)), [IMAGE]),
    "adaptive_avg_1": (lambda: nn.AdaptiveAvgPool2d(1), [IMAGE]),
    "adaptive_avg_uneven": (lambda: nn.AdaptiveAvgPool1d(4), [LINE]),
    "adaptive_max": (lambda: nn.AdaptiveMaxPool2d((3, 2)), [IMAGE]),
    "pad_reflect": (lambda: nn.ReflectionPad2d((1, 2, 3, 0)), [IMAGE]),
    "pad_replicate": (lambda: nn.ReplicationPad1d((3, 1)), [LINE]),
    "pad_circular": (lambda: nn.CircularPad2d((1, 2, 2, 3)), [IMAGE]),
    "pad_constant": (lambda: nn.ConstantPad2d((1, -2, 0, 2), 3.5), [IMAGE]),
    "batch_norm": (lambda: nn.BatchNorm2d(4), [IMAGE]),
    "instance_norm": (lambda: nn.InstanceNorm2d(4, affine=True), [IMAGE]),
    "group_norm": (lambda: nn.GroupNorm(2, 4), [IMAGE]),
    "layer_norm": (lambda: nn.LayerNorm((5, 6)), [ROW]),
    "rms_norm": (lambda: nn.RMSNorm(6), [ROW]),
    "local_response": (lambda: nn.LocalResponseNorm(3), [IMAGE]),
    "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)), [ROW]),
    "lstm": (lambda: nn.LSTM(6, 4, num_layers=2, batch_first=True), [ROW]),
    "lstm_both": (lambda: First(nn.LSTM(6, 4, bidirectional=True)), [ROW]),
    "gru": (lambda: nn.GRU(6, 4, bidirectional=True, batch_first=True), [ROW]),
    "rnn": (lambda: nn.RNN(6, 4, nonlinearity="relu"), [ROW]),
    "lstm_cell": (lambda: nn.LSTMCell(6, 4), [(3, 6)]),
    "gru_cell": (lambda: nn.GRUCell(6, 4), [(3, 6)]),
    "attention": (lambda: First(nn.MultiheadAttention(6, 2, batch_first=True)), [ROW] * 3),
    "encoder_layer": (lambda: nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), [ROW]),
    "decoder_layer": (lambda: nn.TransformerDecoderLayer(6, 3, 8, batch_first=True), [ROW] * 2),
    "embedding": (lambda: nn.Embedding(9, 4, padding_idx=0), lambda: (ints(9, 2, 5),)),
    "embedding_bag": (lambda: nn.EmbeddingBag(9, 4, mode="mean"), lambda: (ints(9, 3, 5),)),
    "pixel_shuffle": (lambda: nn.PixelShuffle(2), [IMAGE]),
    "pixel_unshuffle": (lambda: nn.PixelUnshuffle(2), [(2, 3, 4, 6)]),
    "channel_shuffle": (lambda: nn.ChannelShuffle(2), [IMAGE]),
    "upsample_nearest": (lambda: nn.Upsample(scale_factor=2), [IMAGE]),
    "upsample_size": (lambda: nn.Upsample((5, 13), mode="bilinear"), [IMAGE]),
    "upsample_corners": (
        lambda: nn.Upsample(scale_factor=(1.5, 2.25), mode="bilinear", align_corners=True),
        [IMAGE],
    ),
    "upsample_cubic": (lambda: nn.Upsample(scale_factor=1.7, mode="bicubic"), [IMAGE]),
    "upsample_linear": (lambda: nn.Upsample(scale_factor=2.5, mode="linear"), [LINE]),
    "upsample_box": (lambda: nn.Upsample(scale_factor=2, mode="trilinear"), [BOX]),
    "prelu": (lambda: nn.PReLU(4), [IMAGE]),
    "softmax2d": (lambda: nn.Softmax2d(), [IMAGE]),
    "glu": (lambda: nn.GLU(1), [IMAGE]),
    "cosine": (lambda: nn.CosineSimilarity(), [(4, 6)] * 2),
    "distance": (lambda: nn.PairwiseDistance(), [(4, 6)] * 2),
    "flatten": (lambda: nn.Sequential(nn.Flatten(1, 2), nn.Unflatten(1, (3, 12))), [IMAGE]),
    "dropout": (lambda: nn.Sequential(nn.Dropout(0.3), nn.Linear(6, 2)), [ROW]),
}
for name in (
    "ReLU ReLU6 LeakyReLU ELU CELU SELU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh Hardshrink "
    "Softshrink Tanhshrink Softplus Softsign LogSigmoid Sigmoid Tanh RReLU"
).split():
    LAYERS[f"act_{name.lower()}"] = (getattr(nn, name), [ROW])
LAYERS["act_gelu_tanh"] = (lambda: nn.GELU("tanh"), [ROW])
LAYERS["act_threshold"] = (lambda: nn.Threshold(0.1, 7), [ROW])


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def grouped(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def rotated(x):
    n, d = x.shape[1], x.shape[2]
    angle = torch.outer(torch.arange(n), 10000 ** (-torch.arange(0, d, 2) / d))
    a, b = x[..., ::2], x[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def updated(x, v):
    y = x.clone()
    y[:, 1:3, ::2] = v[:, :2, :3]
    y[0] += 1
    return y


def put(x, v):
    return x.index_put((torch.tensor([0, 1, 0]), torch.tensor([1, 2, 1])), v, accumulate=True)


def windows(x):
    n, c, h, w = x.shape
    return x.view(n, c, h // 3, 3, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 12, c)


def looked_up(x):
    return torch.bucketize(x, torch.tensor([-1.0, -0.2, 0.0, 0.7])), torch.searchsorted(
        torch.tensor([-1.0, 0.0, 1.0]), x, right=True
    )


def grid_of(mode, border, corners):
    return lambda x, g: F.grid_sample(x, g.tanh() * 1.3, mode, border, align_corners=corners)


def affine(x, t):
    grid = F.affine_grid(t, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)


FUNCTIONS = {
    "sdpa": (F.scaled_dot_product_attention, [(2, 3, 5, 4)] * 3),
    "sdpa_causal": (causal, [(2, 3, 5, 4)] * 3),
    "sdpa_grouped": (grouped, [(2, 4, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4)]),
    "rotated": (rotated, [ROW]),
    "einsum": (lambda a, b: torch.einsum("bij,bkj->bik", a, b), [ROW, ROW]),
    "einsum_trace": (lambda a: torch.einsum("bii->b", a), [(2, 5, 5)]),
    "matmul_wide": (torch.matmul, [(2, 1, 5, 6), (3, 6, 4)]),
    "matmul_vector": (torch.matmul, [ROW, (6,)]),
    "addmm": (lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), [(4,), (3, 5), (5, 4)]),
    "baddbmm": (torch.baddbmm, [(2, 5, 4), (2, 5, 6), (2, 6, 4)]),
    "cdist": (torch.cdist, [(2, 5, 6), (2, 4, 6)]),
    "outer": (torch.outer, [(5,), (6,)]),
    "cumsum": (lambda x: (x.cumsum(1), x.flip(2).cumsum(2)), [ROW]),
    "cumprod": (lambda x: x.cumprod(1), [ROW]),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), [ROW]),
    "topk": (lambda x: x.topk(3, 1, largest=False), [ROW]),
    "sort": (lambda x: x.sort(2, descending=True), [ROW]),
    "argsort": (lambda x: x.argsort(1), [ROW]),
    "kthvalue": (lambda x: x.kthvalue(2, 1), [ROW]),
    "max_dim": (lambda x: (*x.max(1), *x.min(2, keepdim=True)), [ROW]),
    "argmax": (lambda x: (x.argmax(1), x.argmin(), x.argmax(2, keepdim=True)), [ROW]),
    "amax": (lambda x: (x.amax((1, 2)), x.amin(0), x.aminmax(dim=1)), [ROW]),
    "reduce": (lambda x: (x.sum(), x.mean((0, 2)), x.prod(1), x.sum(1, keepdim=True)), [ROW]),
    "spread": (lambda x: (x.std(1), x.var(2, unbiased=False), torch.var_mean(x, 1)), [ROW]),
    "norms": (lambda x: (x.norm(dim=1), x.norm(p=1), x.norm(p=float("inf"), dim=2)), [ROW]),
    "normalize": (lambda x: F.normalize(x, dim=1), [IMAGE]),
    "logsumexp": (lambda x: x.logsumexp((1, 2)), [ROW]),
    "softmaxes": (lambda x: (x.softmax(1), x.log_softmax(2), F.softmin(x, 0)), [ROW]),
    "any_all": (lambda x: ((x > 0).any(1), (x > -9).all(), (x > 0).sum(2)), [ROW]),
    "median": (lambda x: x.median(1), [ROW]),
    "gather": (lambda x, i: x.gather(1, i), lambda: (R(ROW), ints(5, 2, 3, 6))),
    "take_along": (lambda x, i: x.take_along_dim(i, 2), lambda: (R(ROW), ints(6, 2, 5, 2))),
    "index_select": (lambda x, i: x.index_select(1, i), lambda: (R(ROW), ints(5, 7))),
    "indexed": (lambda x, i: x[:, i], lambda: (R(ROW), ints(5, 2, 3))),
    "indexed_two": (lambda x, i, j: x[i, :, j], lambda: (R(ROW), ints(2, 4), ints(6, 4))),
    "indexed_mask": (lambda x: x.masked_fill(x > 0.3, -1.0), [ROW]),
    "masked_select": (lambda x: x[x > 0], [ROW]),
    "nonzero": (lambda x: (x > 0.5).nonzero(), [ROW]),
    "scatter": (
        lambda x, i, v: x.scatter(1, i, v),
        lambda: (R(2, 5), torch.tensor([[0, 2], [4, 1]]), R(2, 2)),
    ),
    "scatter_add": (
        lambda x, i, v: x.scatter_add(1, i, v),
        lambda: (R(2, 5), ints(5, 2, 6), R(2, 6)),
    ),
    "scatter_reduce": (
        lambda x, i, v: x.scatter_reduce(1, i, v, "amax"),
        lambda: (R(2, 5), ints(5, 2, 6), R(2, 6)),
    ),
    "index_add": (lambda x, v: x.index_add(1, torch.tensor([0, 3, 0]), v), [ROW, (2, 3, 6)]),
    "index_put": (put, [ROW, (3, 6)]),
    "slice_update": (updated, [ROW, ROW]),
    "where": (lambda x, y: torch.where(x > y, x, y * 2), [ROW, (6,)]),
    "clamp": (lambda x, y: (x.clamp(-0.5, 0.5), x.clamp(min=y), x.clamp_max(0)), [ROW, (6,)]),
    "arith": (
        lambda x, y: (x % 0.7, torch.fmod(x, y), torch.floor_divide(x, y), x // 0.3),
        [ROW, ROW],
    ),
    "integer_arith": (
        lambda x, y: (x % y, x // y, torch.div(x, y, rounding_mode="trunc"), x / y, -x),
        lambda: (ints(99, 2, 5) - 50, ints(9, 2, 5) + 1),
    ),
    "bits": (
        lambda x, y: (x & y, x | y, x ^ y, ~x, x << 2, x >> 1),
        lambda: (ints(99, 2, 5), ints(99, 2, 5)),
    ),
    "logic": (lambda x, y: ((x > 0) & (y > 0), (x > 0) ^ (y > 0), ~(x > 0), x.ne(y)), [ROW, ROW]),
    "trigonometry": (lambda x: (x.sin(), x.cos(), x.atan(), x.sinh(), x.cosh(), x.asinh()), [ROW]),
    "atan2": (torch.atan2, [ROW, ROW]),
    "exponents": (
        lambda x: (x.exp(), x.expm1(), x.abs().log1p(), x.erf(), x.exp2(), x.abs().log2()),
        [ROW],
    ),
    "powers": (
        lambda x: (x**2, x.abs() ** 0.5, x.abs().rsqrt(), 2**x, x.pow(3), x.reciprocal()),
        [ROW],
    ),
    "rounding": (
        lambda x: (x.round(), x.trunc(), x.frac(), x.ceil(), x.sign(), x.round(decimals=1)),
        [ROW],
    ),
    "not_numbers": (
        lambda x: ((x / 0).isinf(), torch.nan_to_num(x / 0, 1, 2, 3), (x - x).isnan()),
        [ROW],
    ),
    "lerp": (lambda x, y: (torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2)), [ROW, ROW]),
    "casts": (
        lambda x: (x.int(), x.to(torch.uint8), x.double(), x.half(), x.bool(), x.long()),
        lambda: (R(ROW).abs() * 9,),
    ),
    "reshape": (
        lambda x: (x.view(x.size(0), -1), x.reshape(-1, 3), x.unsqueeze(1).squeeze(1)),
        [ROW],
    ),
    "moves": (
        lambda x: (x.mT, x.movedim(0, 2), x.roll((1, -2), (1, 2)), x.rot90(1, (1, 2))),
        [ROW],
    ),
    "flips": (lambda x: (x.flip(1), x.fliplr(), x[:, ::2], x[..., 1:-1]), [ROW]),
    "joins": (
        lambda x, y: (torch.cat((x, y), 1), torch.stack((x, y), 2), torch.hstack((x, y))),
        [ROW, ROW],
    ),
    "splits": (lambda x: (*x.chunk(2, 2), *x.split((1, 4), 1), *x.unbind(1)[:2]), [ROW]),
    "repeats": (
        lambda x: (x.repeat(1, 2, 3), x.repeat_interleave(2, 1), x[:, None].expand(-1, 3, -1, -1)),
        [ROW],
    ),
    "triangles": (lambda x: (x.tril(), x.triu(1), x.diagonal(dim1=1, dim2=2)), [ROW]),
    "diagonal": (lambda x: (torch.diag_embed(x), x.diag_embed(1)), [(2, 5)]),
    "one_hot": (lambda i: F.one_hot(i, 7), lambda: (ints(7, 2, 5),)),
    "ranges": (lambda x: x + torch.arange(x.shape[1])[:, None] * torch.linspace(0, 1, 6), [ROW]),
    "fills": (
        lambda x: (torch.zeros_like(x), torch.full_like(x, 3), x.new_ones(x.shape[0], 2)),
        [ROW],
    ),
    "meshgrid": (lambda x, y: torch.meshgrid(x, y, indexing="ij"), [(5,), (4,)]),
    "looked_up": (looked_up, [ROW]),
    "windows": (windows, [IMAGE]),
    "unfold_axis": (lambda x: x.unfold(2, 3, 2), [(2, 4, 11)]),
    "strided": (lambda x: x.as_strided((2, 3), (4, 2)), [(4, 6)]),
    "grid_linear": (grid_of("bilinear", "zeros", False), [IMAGE, (2, 5, 3, 2)]),
    "grid_nearest": (grid_of("nearest", "border", True), [IMAGE, (2, 5, 3, 2)]),
    "grid_cubic": (grid_of("bicubic", "reflection", False), [IMAGE, (2, 5, 3, 2)]),
    "affine": (affine, [IMAGE, (2, 2, 3)]),
    "resized": (lambda x: F.interpolate(x, size=(x.shape[2] * 2, 7), mode="bilinear"), [IMAGE]),
    "antialias": (lambda x: F.interpolate(x, (5, 4), mode="bilinear", antialias=True), [IMAGE]),
    "area": (lambda x: F.interpolate(x, (3, 4), mode="area"), [IMAGE]),
    "cross": (lambda x, y: torch.linalg.cross(x, y), [(4, 3)] * 2),
    "determinant": (torch.linalg.det, [(2, 3, 3)]),
    "inverse": (torch.linalg.inv, [(2, 3, 3)]),
    "loss": (lambda x, t: F.cross_entropy(x, t), lambda: (R(4, 6), ints(6, 4))),
    "bce": (lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), [(4, 6)] * 2),
    "hubers": (
        lambda x, y: (F.huber_loss(x, y), F.smooth_l1_loss(x, y), F.mse_loss(x, y)),
        [(4, 6)] * 2,
    ),
    "bincount": (lambda i: torch.bincount(i, minlength=9), lambda: (ints(9, 12),)),
    "histogram": (lambda x: torch.histc(x, 5, -2, 2), [(40,)]),
    "unique": (lambda i: i.unique(), lambda: (ints(5, 12),)),
    "stft": (
        lambda x: torch.view_as_real(
            torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True)
        ),
        [(2, 40)],
    ),
}


def names():
    return sorted({**LAYERS, **FUNCTIONS})


def make(name):
    """A module as it is when it is used, and its inputs."""
    torch.manual_seed(zlib.crc32(name.encode()))
    made, given = LAYERS.get(name) or FUNCTIONS[name]
    module = made() if name in LAYERS else Function(made)
    module = module.eval()
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(tensor + 0.1 * torch.rand_like(tensor))
    inputs = given() if callable(given) else tuple(R(shape) for shape in given)
    return module, inputs
