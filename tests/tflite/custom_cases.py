"""Cases of custom operators, and of graphs that stand for an operator."""

import numpy as np
from flatbuffers import flexbuffers
from writer import Model, cases_of

CASES, case = cases_of(low=0, high=1)
R = np.random.default_rng(14)


def detection(name, boxes=60, classes=5, background=1, most=10, categories=1, **options):
    @case(name)
    def _(m):
        o = dict(
            max_detections=most,
            max_classes_per_detection=categories,
            num_classes=classes,
            nms_score_threshold=0.3,
            nms_iou_threshold=0.4,
            y_scale=10.0,
            x_scale=10.0,
            h_scale=5.0,
            w_scale=5.0,
        )
        b = flexbuffers.Builder()
        b.MapFromElements(o | options)
        at, size = R.uniform(0, 1, (boxes, 2)), R.uniform(0.1, 0.5, (boxes, 2))
        ins = [
            m.input("boxes", (1, boxes, 4)),
            m.input("scores", (1, boxes, classes + background)),
            m.constant(np.concatenate([at, size], 1).astype(np.float32)),
        ]
        n = most if options.get("use_regular_nms") else most * categories
        outs = [m.tensor((1, n, 4)), m.tensor((1, n)), m.tensor((1, n)), m.tensor((1,))]
        m.op("TFLite_Detection_PostProcess", ins, outs, custom=bytes(b.Finish()))
        m.output(*outs)


detection("detections")
detection("detections_plain", background=0)
detection("detections_categories", categories=2)
detection("detections_regular", use_regular_nms=True, detections_per_class=4)


FUNCTION = """/* out[y] = in[x]
 * default[offset] = 0 */
void blend(const float *x, const float *w, float *y, int64_t n_x, float alpha, int32_t offset)
{
    for (int64_t i = 0; i < n_x; i++)
        y[i] = alpha * x[i] + w[i] + (float)offset;
}
"""


def of_the_user():
    """A model whose operator is that function, and what it gives for x."""
    m = Model()
    w = R.uniform(-1, 1, (2, 3)).astype(np.float32)
    b = flexbuffers.Builder()
    b.MapFromElements(dict(alpha=0.5, offset=7, name="text"))
    x = m.input("x", (2, 3))
    m.output(m.op("Blend", [x, m.constant(w)], [m.tensor((2, 3))], custom=bytes(b.Finish())))
    return m, lambda x: np.float32(0.5) * x + w + np.float32(7)
