// What a network for pictures is given of a picture, and what becomes of its result.

// The layout of a tensor of one picture: [1, height, width, channels] or [1, channels, height, width].
export function layout(shape) {
    if (shape.length !== 4 || shape[0] !== 1)
        throw new Error(`[${shape}] is no picture`);
    const last = shape[3] === 3 || shape[3] === 1;
    const [height, width, channels] = last ? shape.slice(1) : [shape[2], shape[3], shape[1]];
    if (channels !== 1 && channels !== 3)
        throw new Error(`[${shape}] has ${channels} channels: a picture has 3, a mask 1`);
    return {height, width, channels, pixel: last ? channels : 1, plane: last ? 1 : height * width};
}

// Bytes R, G, B, A of a canvas as numbers from 0 to `white`.
export function numbers(bytes, at, white) {
    const n = at.height * at.width, x = new Float32Array(n * at.channels);
    for (let i = 0; i < n; i++)
        for (let c = 0; c < at.channels; c++)
            x[i * at.pixel + c * at.plane] = bytes[4 * i + c] * white / 255;
    return x;
}

// What is shown: a picture as it is; of a mask the foreground, before a background of one colour.
export function shown(y, to, white, bytes, background) {
    const n = to.height * to.width, out = new Uint8ClampedArray(4 * n);
    for (let i = 0; i < n; i++) {
        for (let c = 0; c < 3; c++)
            out[4 * i + c] = to.channels === 3 ? y[i * to.pixel + c * to.plane] * 255 / white
                : background[c] + (bytes[4 * i + c] - background[c]) * y[i];
        out[4 * i + 3] = 255;
    }
    return out;
}
