// digits.js - strokes to the picture that the network was trained on. Nothing here knows of a page.

// The pictures of the training data were made so: the writing's box is scaled to a bitmap of 32 by 32,
// with lines so wide that 30 % of it is black (that is the mean of each of the ten digits: a 1 is a broad
// bar), then the black pixels in each block of 4 by 4 are counted: 8 by 8 values from 0 to 16.
const SIDE = 32, INK = 0.305;
const WIDEST = 24;      // a digit is higher than wide

// Distance of (x, y) from the line between two points, squared.
function distance2(x, y, [ax, ay], [bx, by]) {
    const dx = bx - ax, dy = by - ay, length2 = dx * dx + dy * dy;
    const t = length2 ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length2)) : 0;
    return (x - ax - t * dx) ** 2 + (y - ay - t * dy) ** 2;
}

// The bitmap of strokes that fill it, drawn with a pen of that radius: a byte a pixel, 0 or 1.
function bitmap(strokes, pen) {
    const xs = strokes.flat().map((p) => p[0]), ys = strokes.flat().map((p) => p[1]);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const scale = Math.min((SIDE - 2 * pen) / Math.max(bottom - top, 1e-9), (WIDEST - 2 * pen) / Math.max(right - left, 1e-9), 1e6);
    const place = ([x, y]) => [SIDE / 2 + (x - (left + right) / 2) * scale, SIDE / 2 + (y - (top + bottom) / 2) * scale];
    const from = (v, w) => Math.max(0, Math.floor(Math.min(v, w) - pen));
    const to = (v, w) => Math.min(SIDE - 1, Math.ceil(Math.max(v, w) + pen));

    const black = new Uint8Array(SIDE * SIDE);
    for (const stroke of strokes) {
        const line = stroke.map(place);
        for (let i = 0; i < line.length; i++) {
            const a = line[Math.max(i - 1, 0)], b = line[i];
            for (let y = from(a[1], b[1]); y <= to(a[1], b[1]); y++)
                for (let x = from(a[0], b[0]); x <= to(a[0], b[0]); x++)
                    if (distance2(x + 0.5, y + 0.5, a, b) <= pen * pen)
                        black[y * SIDE + x] = 1;
        }
    }
    return black;
}

// Strokes, each a list of points [x, y] in any unit, as 64 values from 0 to 16. How large the writing is, where, and with what
// pen makes no difference.
export function picture(strokes) {
    const counts = new Float32Array(64);
    if (!strokes.some((s) => s.length))
        return counts;
    let thin = 1, thick = 7, black;
    for (let i = 0; i < 6; i++) {       // halves the interval in which the right pen is
        const pen = (thin + thick) / 2;
        black = bitmap(strokes, pen);
        if (black.reduce((a, b) => a + b) < INK * SIDE * SIDE)
            thin = pen;
        else
            thick = pen;
    }
    black.forEach((v, i) => { counts[(i >> 7) * 8 + (i % SIDE >> 2)] += v; });
    return counts;
}
