"""Of a node and the values of its inputs: does the standard say what comes out?

What it says nothing of, ONNX Runtime answers in its own way, and ingot in another. Those are no
cases of rewritten_cases.py."""


def attribute(node, name):
    return next((a for a in node.attribute if a.name == name), None)


def windows_fit(one):
    """A window that is longer than what it goes over has no place, which is a fault to us, and to
    ONNX Runtime a result without elements."""
    x, node = one.feeds[one.node.input[0]], one.node
    window = attribute(node, "kernel_shape")
    if window is None:
        return True
    n = len(window.ints)
    ints = {k: list(attribute(node, k).ints) for k in ("pads", "dilations") if attribute(node, k)}
    pads, apart = ints.get("pads", [0] * 2 * n), ints.get("dilations", [1] * n)
    auto = attribute(node, "auto_pad")
    return (auto is not None and auto.s.startswith(b"SAME")) or all(
        (w - 1) * d + 1 <= size + before + after
        for w, d, size, before, after in zip(window.ints, apart, x.shape[2:], pads, pads[n:])
    )


def heads_fit(one):
    """Keys have values, and queries have keys: ONNX Runtime reads what there is."""
    q, k, v = (one.feeds[n] for n in one.node.input[:3])
    heads = q.ndim == 3 or (k.shape[1] == v.shape[1] and k.shape[1] and not q.shape[1] % k.shape[1])
    return k.shape[-2] == v.shape[-2] and heads


def strides_fit(one):
    """SAME makes results of strides times the size, for which ONNX Runtime would have to pad by
    less than nothing where a stride is longer than the window."""
    auto, strides = attribute(one.node, "auto_pad"), attribute(one.node, "strides")
    if auto is None or strides is None or not auto.s.startswith(b"SAME"):
        return True
    return all(s <= w for s, w in zip(strides.ints, one.feeds[one.node.input[1]].shape[2:]))


def numbers_are_there(one):
    """How many boxes, and from which score on, is a number: the standard knows no empty one."""
    return all(one.feeds[n].size == 1 for n in one.node.input[2:] if n in one.feeds)


def mask_is_told(one):
    """What Dropout's mask is where nothing is dropped, the standard says from opset 12 on."""
    return one.opset >= 12 or sum(map(bool, one.node.output)) < 2


def axes_are_named(one):
    """Those of ReverseSequence are 0 and 1."""
    names = ("batch_axis", "time_axis")
    return all(attribute(one.node, k) is None or attribute(one.node, k).i in (0, 1) for k in names)


DEFINED = {
    "Attention": heads_fit,
    "AveragePool": windows_fit,
    "ConvTranspose": strides_fit,
    "Dropout": mask_is_told,
    "LpPool": windows_fit,
    "MaxPool": windows_fit,
    "NonMaxSuppression": numbers_are_there,
    "ReverseSequence": axes_are_named,
}


def by_standard(one):
    return one.node.op_type not in DEFINED or DEFINED[one.node.op_type](one)
