// SPDX-License-Identifier: MIT-0
// igrt_num.wgsl - igrt_num.h in WGSL: the numbers of a model on a WebGPU device (docs/numerics.md).
//
// Not a module: the compiler takes those functions out of it that kernels call. A function begins
// at the start of a line and ends with it, or with a line "}". Below "// for i8 i16:" they are
// made for each of these types, $T, whose values are $V and have $B bits; below "// for all:" once.
//
// WGSL has numbers of 32 bits. A narrow integer is held as one of them, with or without its sign;
// i64 and u64 are vec2<u32>, the low word first; small floats are bits in a u32 where they are
// stored and f32 elsewhere. Neither infinity nor NaN is a constant, and x != x need not see a NaN:
// both go by bits.

// for all:
var<private> igrt_infinite: u32 = 0x7f800000u;
fn igrt_infinity() -> f32 { return bitcast<f32>(igrt_infinite); }
fn igrt_nan() -> f32 { return bitcast<f32>(igrt_infinite | 0x400000u); }
fn igrt_isnan_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn igrt_isinf_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
fn igrt_bits_f32(x: u32) -> f32 { return bitcast<f32>(x); }
fn igrt_f32_bits(x: f32) -> u32 { return bitcast<u32>(x); }

// ---- integers of up to 32 bits -------------------------------------------------------------------

// for i4 i2 i8 i16:
fn igrt_wrap_$T(x: i32) -> i32 { return extractBits(x, 0u, $Bu); }
// for u4 u2 u8 u16:
fn igrt_wrap_$T(x: u32) -> u32 { return x & ((1u << $Bu) - 1u); }
// for i32 u32:
fn igrt_wrap_$T(x: $V) -> $V { return x; }

// for i8 i16 i32 u8 u16 u32:
fn igrt_add_$T(x: $V, y: $V) -> $V { return igrt_wrap_$T(x + y); }
fn igrt_sub_$T(x: $V, y: $V) -> $V { return igrt_wrap_$T(x - y); }
fn igrt_mul_$T(x: $V, y: $V) -> $V { return igrt_wrap_$T(x * y); }
fn igrt_neg_$T(x: $V) -> $V { return igrt_wrap_$T($V(0) - x); }
fn igrt_max_$T(x: $V, y: $V) -> $V { return max(x, y); }
fn igrt_min_$T(x: $V, y: $V) -> $V { return min(x, y); }
fn igrt_shl_$T(x: $V, n: $V) -> $V { return select($V(0), igrt_wrap_$T(x << (u32(n) & 31u)), u32(n) < $Bu); }
fn igrt_shr_$T(x: $V, n: $V) -> $V { return select($V(0), x >> (u32(n) & 31u), u32(n) < $Bu); }
fn igrt_upow_$T(base: $V, exponent: u32) -> $V {
    var r = $V(1);
    var x = base;
    for (var n = exponent; n != 0u; n = n >> 1u) {
        if ((n & 1u) != 0u) {
            r = igrt_mul_$T(r, x);
        }
        x = igrt_mul_$T(x, x);
    }
    return r;
}
// for i8 i16 i32:
fn igrt_abs_$T(x: i32) -> i32 { return select(x, igrt_neg_$T(x), x < 0); }
fn igrt_sign_$T(x: i32) -> i32 { return sign(x); }
fn igrt_div_$T(x: i32, y: i32) -> i32 {
    if (y == 0) {
        return 0;
    }
    if (y == -1) {
        return igrt_neg_$T(x);
    }
    return x / y;
}
fn igrt_fmod_$T(x: i32, y: i32) -> i32 {
    if (y == 0 || y == -1) {
        return 0;
    }
    return x % y;
}
fn igrt_floordiv_$T(x: i32, y: i32) -> i32 {
    let q = igrt_div_$T(x, y);
    let r = igrt_fmod_$T(x, y);
    return select(q, q - 1, r != 0 && (r < 0) != (y < 0));
}
fn igrt_mod_$T(x: i32, y: i32) -> i32 {
    let r = igrt_fmod_$T(x, y);
    return select(r, r + y, r != 0 && (r < 0) != (y < 0));
}
fn igrt_pow_$T(x: i32, y: i32) -> i32 {
    if (y >= 0) {
        return igrt_upow_$T(x, u32(y));
    }
    return select(select(0, select(1, -1, y % 2 != 0), x == -1), 1, x == 1);
}
fn igrt_f32_to_$T(x: f32) -> i32 { return igrt_wrap_$T(bitcast<i32>(igrt_f32_to_i64(x).x)); }
// for i4 i2:
fn igrt_f32_to_$T(x: f32) -> i32 { return igrt_wrap_$T(bitcast<i32>(igrt_f32_to_i64(x).x)); }
// for u8 u16 u32:
fn igrt_abs_$T(x: u32) -> u32 { return x; }
fn igrt_sign_$T(x: u32) -> u32 { return min(x, 1u); }
fn igrt_div_$T(x: u32, y: u32) -> u32 { return select(x / max(y, 1u), 0u, y == 0u); }
fn igrt_fmod_$T(x: u32, y: u32) -> u32 { return select(x % max(y, 1u), 0u, y == 0u); }
fn igrt_floordiv_$T(x: u32, y: u32) -> u32 { return igrt_div_$T(x, y); }
fn igrt_mod_$T(x: u32, y: u32) -> u32 { return igrt_fmod_$T(x, y); }
fn igrt_pow_$T(x: u32, y: u32) -> u32 { return igrt_upow_$T(x, y); }
fn igrt_f32_to_$T(x: f32) -> u32 { return igrt_wrap_$T(igrt_f32_to_i64(x).x); }
// for u4 u2:
fn igrt_f32_to_$T(x: f32) -> u32 { return igrt_wrap_$T(igrt_f32_to_i64(x).x); }

// for all:
fn igrt_f32_to_bool(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }
// saturates; NaN is 0
fn igrt_f32_to_i32(x: f32) -> i32 { return select(igrt_clamp_f32_i32(x), 0, igrt_isnan_f32(x)); }
fn igrt_clamp_f32_i32(x: f32) -> i32 {
    if (x >= 2147483648.0f) {
        return 2147483647;
    }
    if (x < -2147483648.0f) {
        return -2147483647 - 1;
    }
    return i32(x);
}
fn igrt_small_f32_i32(x: f32) -> i32 { return select(i32(x), 0, igrt_isnan_f32(x)); }
fn igrt_mulhi_i32(x: i32, y: i32) -> i32 {
    let p = igrt_add_i64(igrt_mul_i64(igrt_i32_to_i64(x), igrt_i32_to_i64(y)), vec2<u32>(1073741824u, 0u));
    return bitcast<i32>(igrt_shr_i64(p, vec2<u32>(31u, 0u)).x);
}
fn igrt_shrr_i32(x: i32, n: i32) -> i32 {
    if (n == 0) {
        return x;
    }
    if (u32(n) >= 32u) {
        return 0;
    }
    let y = (x - select(0, 1, x < 0)) >> u32(n - 1);
    return (y >> 1u) + (y & 1);
}
fn igrt_digit_f32(x: u32, shift: u32, mask: i32, less: i32) -> f32 { return f32(i32((x >> shift) & u32(mask)) - less); }
fn igrt_top_byte_f32(x: i32, shift: u32) -> f32 { return f32(bitcast<i32>((bitcast<u32>(x) << shift) & 0xff000000u)); }
fn igrt_quantize_f32(x: f32, zero: i32, lo: i32, hi: i32) -> i32 {
    let y = clamp(x, f32(lo - zero), f32(hi - zero));
    return select(i32(round(y)) + zero, lo, igrt_isnan_f32(x));
}
fn igrt_quantized_f32(x: f32, zero: i32, lo: i32, hi: i32) -> f32 { return f32(igrt_quantize_f32(x, zero, lo, hi) - zero); }

// ---- integers of 64 bits -------------------------------------------------------------------------

fn igrt_i32_to_i64(x: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u)); }
fn igrt_u32_to_i64(x: u32) -> vec2<u32> { return vec2<u32>(x, 0u); }
fn igrt_low_i32(x: vec2<u32>) -> i32 { return bitcast<i32>(x.x); }
fn igrt_low_u32(x: vec2<u32>) -> u32 { return x.x; }
// held within 2^30 of zero, which is beyond every tensor
fn igrt_coordinate(x: vec2<u32>) -> i32 {
    if (igrt_is_negative(x)) {
        return select(-0x40000000, bitcast<i32>(x.x), x.y == 0xffffffffu && x.x >= 0xc0000000u);
    }
    return select(0x40000000, bitcast<i32>(x.x), x.y == 0u && x.x <= 0x40000000u);
}
fn igrt_eq_i64(x: vec2<u32>, y: vec2<u32>) -> bool { return x.x == y.x && x.y == y.y; }
fn igrt_ne_i64(x: vec2<u32>, y: vec2<u32>) -> bool { return x.x != y.x || x.y != y.y; }
fn igrt_lt_u64(x: vec2<u32>, y: vec2<u32>) -> bool { return x.y < y.y || (x.y == y.y && x.x < y.x); }
fn igrt_lt_i64(x: vec2<u32>, y: vec2<u32>) -> bool { return bitcast<i32>(x.y) < bitcast<i32>(y.y) || (x.y == y.y && x.x < y.x); }
fn igrt_is_negative(x: vec2<u32>) -> bool { return (x.y & 0x80000000u) != 0u; }
// the product of two words
fn igrt_product(x: u32, y: u32) -> vec2<u32> {
    let low = (x & 0xffffu) * (y & 0xffffu);
    let a = (x >> 16u) * (y & 0xffffu) + (low >> 16u);
    let b = (x & 0xffffu) * (y >> 16u) + (a & 0xffffu);
    return vec2<u32>((low & 0xffffu) | (b << 16u), (x >> 16u) * (y >> 16u) + (a >> 16u) + (b >> 16u));
}
fn igrt_left(x: vec2<u32>, n: u32) -> vec2<u32> {
    if (n == 0u) {
        return x;
    }
    if (n >= 32u) {
        return vec2<u32>(0u, x.x << (n & 31u));
    }
    return vec2<u32>(x.x << n, (x.y << n) | (x.x >> (32u - n)));
}
// what comes in from above is a word of that
fn igrt_right(x: vec2<u32>, n: u32, above: u32) -> vec2<u32> {
    if (n == 0u) {
        return x;
    }
    if (n == 32u) {
        return vec2<u32>(x.y, above);
    }
    if (n > 32u) {
        return vec2<u32>((x.y >> (n - 32u)) | (above << (64u - n)), above);
    }
    return vec2<u32>((x.x >> n) | (x.y << (32u - n)), (x.y >> n) | (above << (32u - n)));
}
// quotient and remainder, bit by bit; y is not zero
fn igrt_divided(x: vec2<u32>, y: vec2<u32>) -> vec4<u32> {
    if (x.y == 0u && y.y == 0u) {
        return vec4<u32>(x.x / max(y.x, 1u), 0u, x.x % max(y.x, 1u), 0u);
    }
    var q = x;
    var r = vec2<u32>(0u, 0u);
    for (var i = 0; i < 64; i++) {
        let over = (r.y & 0x80000000u) != 0u;
        r = igrt_left(r, 1u) | vec2<u32>(q.y >> 31u, 0u);
        q = igrt_left(q, 1u);
        if (over || !igrt_lt_u64(r, y)) {
            r = igrt_sub_u64(r, y);
            q = q | vec2<u32>(1u, 0u);
        }
    }
    return vec4<u32>(q, r);
}
// the value of the words times 2^n, rounded once
fn igrt_rounded(x: vec2<u32>) -> f32 {
    if (x.y == 0u) {
        return f32(x.x);
    }
    let n = countLeadingZeros(x.y);
    let y = igrt_left(x, n);
    return f32(y.y | min(y.x, 1u)) * bitcast<f32>((127u + 32u - n) << 23u);
}
// rounded to odd: what is rounded again, to fewer bits, is rounded once
fn igrt_rounded_odd(x: vec2<u32>) -> f32 {
    if (x.y == 0u && x.x < 0x1000000u) {
        return f32(x.x);
    }
    let n = select(countLeadingZeros(x.y), 32u + countLeadingZeros(x.x), x.y == 0u);
    let y = igrt_left(x, n);
    let lost = (y.y & 0xffu) | y.x;
    return f32((y.y & 0xffffff00u) | (min(lost, 1u) << 8u)) * bitcast<f32>((127u + 32u - n) << 23u);
}
fn igrt_i64_to_f32(x: vec2<u32>) -> f32 {
    if (igrt_is_negative(x)) {
        return -igrt_rounded(igrt_neg_i64(x));
    }
    return igrt_rounded(x);
}
fn igrt_u64_to_f32(x: vec2<u32>) -> f32 { return igrt_rounded(x); }
fn igrt_i64_to_f32_odd(x: vec2<u32>) -> f32 {
    if (igrt_is_negative(x)) {
        return -igrt_rounded_odd(igrt_neg_i64(x));
    }
    return igrt_rounded_odd(x);
}
fn igrt_u64_to_f32_odd(x: vec2<u32>) -> f32 { return igrt_rounded_odd(x); }
fn igrt_i32_to_f32_odd(x: i32) -> f32 { return igrt_i64_to_f32_odd(igrt_i32_to_i64(x)); }
fn igrt_u32_to_f32_odd(x: u32) -> f32 { return igrt_rounded_odd(vec2<u32>(x, 0u)); }
fn igrt_words(x: f32) -> vec2<u32> {
    let high = floor(x * 2.3283064365386963e-10f);
    return vec2<u32>(u32(x - high * 4294967296.0f), u32(high));
}
fn igrt_f32_to_i64(x: f32) -> vec2<u32> {
    if (igrt_isnan_f32(x)) {
        return vec2<u32>(0u, 0u);
    }
    if (x >= 9223372036854775808.0f) {
        return vec2<u32>(0xffffffffu, 0x7fffffffu);
    }
    if (x < -9223372036854775808.0f) {
        return vec2<u32>(0u, 0x80000000u);
    }
    let y = igrt_words(trunc(abs(x)));
    if (x < 0.0f) {
        return igrt_neg_i64(y);
    }
    return y;
}
fn igrt_f32_to_u64(x: f32) -> vec2<u32> {
    if (x < 9223372036854775808.0f || igrt_isnan_f32(x)) {
        return igrt_f32_to_i64(x);
    }
    if (x >= 18446744073709551616.0f) {
        return vec2<u32>(0xffffffffu, 0xffffffffu);
    }
    return igrt_words(x);
}

// for i64 u64:
fn igrt_add_$T(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = x.x + y.x;
    return vec2<u32>(low, x.y + y.y + select(0u, 1u, low < x.x));
}
fn igrt_sub_$T(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return vec2<u32>(x.x - y.x, x.y - y.y - select(0u, 1u, x.x < y.x)); }
fn igrt_mul_$T(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return igrt_product(x.x, y.x) + vec2<u32>(0u, x.x * y.y + x.y * y.x); }
fn igrt_neg_$T(x: vec2<u32>) -> vec2<u32> { return igrt_sub_$T(vec2<u32>(0u, 0u), x); }
fn igrt_le_$T(x: vec2<u32>, y: vec2<u32>) -> bool { return !igrt_lt_$T(y, x); }
fn igrt_max_$T(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return select(x, y, igrt_lt_$T(x, y)); }
fn igrt_min_$T(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return select(x, y, igrt_lt_$T(y, x)); }
fn igrt_shl_$T(x: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    if (n.y != 0u || n.x >= 64u) {
        return vec2<u32>(0u, 0u);
    }
    return igrt_left(x, n.x);
}
fn igrt_upow_$T(base: vec2<u32>, exponent: vec2<u32>) -> vec2<u32> {
    var r = vec2<u32>(1u, 0u);
    var x = base;
    var n = exponent;
    while ((n.x | n.y) != 0u) {
        if ((n.x & 1u) != 0u) {
            r = igrt_mul_$T(r, x);
        }
        x = igrt_mul_$T(x, x);
        n = igrt_right(n, 1u, 0u);
    }
    return r;
}
// for all:
fn igrt_shr_u64(x: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    if (n.y != 0u || n.x >= 64u) {
        return vec2<u32>(0u, 0u);
    }
    return igrt_right(x, n.x, 0u);
}
fn igrt_shr_i64(x: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    if (n.y != 0u || n.x >= 64u) {
        return vec2<u32>(0u, 0u);
    }
    return igrt_right(x, n.x, select(0u, 0xffffffffu, igrt_is_negative(x)));
}
fn igrt_abs_u64(x: vec2<u32>) -> vec2<u32> { return x; }
fn igrt_sign_u64(x: vec2<u32>) -> vec2<u32> { return vec2<u32>(min(x.x | x.y, 1u), 0u); }
fn igrt_div_u64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    if ((y.x | y.y) == 0u) {
        return y;
    }
    return igrt_divided(x, y).xy;
}
fn igrt_fmod_u64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    if ((y.x | y.y) == 0u) {
        return y;
    }
    return igrt_divided(x, y).zw;
}
fn igrt_floordiv_u64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return igrt_div_u64(x, y); }
fn igrt_mod_u64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return igrt_fmod_u64(x, y); }
fn igrt_pow_u64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return igrt_upow_u64(x, y); }
fn igrt_abs_i64(x: vec2<u32>) -> vec2<u32> { return select(x, igrt_neg_i64(x), igrt_is_negative(x)); }
fn igrt_sign_i64(x: vec2<u32>) -> vec2<u32> { return select(vec2<u32>(min(x.x | x.y, 1u), 0u), vec2<u32>(0xffffffffu, 0xffffffffu), igrt_is_negative(x)); }
fn igrt_div_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let q = igrt_div_u64(igrt_abs_i64(x), igrt_abs_i64(y));
    return select(q, igrt_neg_i64(q), igrt_is_negative(x) != igrt_is_negative(y));
}
fn igrt_fmod_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let r = igrt_fmod_u64(igrt_abs_i64(x), igrt_abs_i64(y));
    return select(r, igrt_neg_i64(r), igrt_is_negative(x));
}
fn igrt_floordiv_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let q = igrt_div_i64(x, y);
    let r = igrt_fmod_i64(x, y);
    return select(q, igrt_sub_i64(q, vec2<u32>(1u, 0u)), (r.x | r.y) != 0u && igrt_is_negative(r) != igrt_is_negative(y));
}
fn igrt_mod_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let r = igrt_fmod_i64(x, y);
    return select(r, igrt_add_i64(r, y), (r.x | r.y) != 0u && igrt_is_negative(r) != igrt_is_negative(y));
}
fn igrt_pow_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    if (!igrt_is_negative(y)) {
        return igrt_upow_i64(x, y);
    }
    if (x.x == 1u && x.y == 0u) {
        return x;
    }
    if (x.x == 0xffffffffu && x.y == 0xffffffffu) {
        return select(vec2<u32>(1u, 0u), x, (y.x & 1u) != 0u);
    }
    return vec2<u32>(0u, 0u);
}

// ---- f32 -----------------------------------------------------------------------------------------

fn igrt_max_f32(x: f32, y: f32) -> f32 { return select(y, x, x > y || igrt_isnan_f32(x)); }
fn igrt_min_f32(x: f32, y: f32) -> f32 { return select(y, x, x < y || igrt_isnan_f32(x)); }
fn igrt_relu_f32(x: f32) -> f32 { return select(x, 0.0f, x < 0.0f); }
fn igrt_sign_f32(x: f32) -> f32 { return select(select(x, -1.0f, x < 0.0f), 1.0f, x > 0.0f); }
fn igrt_round_f32(x: f32) -> f32 { return round(x); }
fn igrt_muladd_f32(x: f32, y: f32, z: f32) -> f32 { return fma(x, y, z); }
fn igrt_copysign_f32(x: f32, y: f32) -> f32 { return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(y) & 0x80000000u)); }
fn igrt_log_f32(x: f32) -> f32 {
    if (x == 0.0f) {
        return -igrt_infinity();
    }
    if (x < 0.0f) {
        return igrt_nan();
    }
    return log(x);
}
fn igrt_sqrt_f32(x: f32) -> f32 { return select(sqrt(x), igrt_nan(), x < 0.0f); }
// some devices divide infinity by infinity beyond 44
fn igrt_tanh_f32(x: f32) -> f32 { return select(tanh(clamp(x, -15.0f, 15.0f)), x, igrt_isnan_f32(x) || abs(x) < 1e-4f); }
// a form whose small results are no differences of large numbers
fn igrt_sinh_f32(x: f32) -> f32 { return select(sinh(x), x + x * x * x * (0.16666667f + x * x * 8.3333333e-3f), abs(x) < 0.3f); }
fn igrt_asinh_f32(x: f32) -> f32 {
    let a = abs(x);
    let y = select(log(a + sqrt(a * a + 1.0f)), log(a) + 0.69314718f, a > 1e9f);
    return select(igrt_copysign_f32(y, x), x - x * x * x * 0.16666667f, a < 0.02f);
}
fn igrt_acosh_f32(x: f32) -> f32 {
    if (x < 1.0f) {
        return igrt_nan();
    }
    return select(log(x + sqrt((x - 1.0f) * (x + 1.0f))), log(x) + 0.69314718f, x > 1e9f);
}
fn igrt_atanh_f32(x: f32) -> f32 {
    if (abs(x) < 0.02f) {
        return x + x * x * x * 0.33333333f;
    }
    return 0.5f * igrt_log_f32((1.0f + x) / (1.0f - x));
}
// acos and asin of WGSL are good to some 1e-4 on devices that have polynomials of few terms
fn igrt_acos_f32(x: f32) -> f32 {
    if (abs(x) > 1.0f) {
        return igrt_nan();
    }
    return atan2(sqrt((1.0f - x) * (1.0f + x)), x);
}
fn igrt_asin_f32(x: f32) -> f32 {
    if (abs(x) > 1.0f) {
        return igrt_nan();
    }
    return igrt_copysign_f32(atan2(abs(x), sqrt((1.0f - x) * (1.0f + x))), x);
}
fn igrt_erf_f32(x: f32) -> f32 {
    let a = min(abs(x), 4.0f);
    let z = a * a;
    var p = -6.135461153e-04f;
    p = fma(p, z, 5.018357188e-03f);
    p = fma(p, z, -2.678139694e-02f);
    p = fma(p, z, 1.128214672e-01f);
    p = fma(p, z, -3.761251569e-01f);
    p = fma(p, z, 1.283791512e-01f);
    p = fma(p, a, a);
    var q = 1.999224332e-04f;
    q = fma(q, a, -3.082180861e-03f);
    q = fma(q, a, 2.238171175e-02f);
    q = fma(q, a, -1.042515412e-01f);
    q = fma(q, a, -6.368191838e-01f);
    q = fma(q, a, -1.127890229e+00f);
    q = fma(q, a, -1.440132910e-04f);
    return select(igrt_copysign_f32(select(p, 1.0f - exp(q), a >= 0.875f), x), x, igrt_isnan_f32(x));
}
fn igrt_fmod_f32(x: f32, y: f32) -> f32 {
    if (y == 0.0f || igrt_isinf_f32(x) || igrt_isnan_f32(x) || igrt_isnan_f32(y)) {
        return igrt_nan();
    }
    let b = abs(y);
    var a = abs(x);
    if (igrt_isinf_f32(y) || a < b) {
        return x;
    }
    // each turn takes what is exact: b times a number of at most 23 bits, and a power of two
    for (var i = 0; i < 16 && a >= b; i++) {
        let q = trunc(a / b);
        let scale = exp2(max(0.0f, floor(log2(q)) - 11.0f));
        var n = floor(q / scale) * scale;
        if (fma(-n, b, a) < 0.0f) {
            n = n - scale;
        }
        a = fma(-n, b, a);
    }
    return igrt_copysign_f32(a, x);
}
fn igrt_mod_f32(x: f32, y: f32) -> f32 {
    let r = igrt_fmod_f32(x, y);
    if (r == 0.0f) {
        return igrt_copysign_f32(0.0f, y);
    }
    return select(r, r + y, (r < 0.0f) != (y < 0.0f));
}
fn igrt_pow_f32(x: f32, y: f32) -> f32 {
    if (y == 0.0f || x == 1.0f) {
        return 1.0f;
    }
    if (igrt_isnan_f32(x) || igrt_isnan_f32(y)) {
        return igrt_nan();
    }
    let whole = trunc(y) == y;
    let odd = whole && abs(y) < 16777216.0f && (i32(abs(y)) & 1) != 0;
    var r = 0.0f;
    if (x == 0.0f) {
        if (y < 0.0f) {
            r = igrt_infinity();
        }
    } else if (whole && abs(y) <= 64.0f) {
        var n = u32(abs(y));
        var b = abs(x);
        r = 1.0f;
        while (n != 0u) {
            if ((n & 1u) != 0u) {
                r = r * b;
            }
            b = b * b;
            n = n >> 1u;
        }
        if (y < 0.0f) {
            r = 1.0f / r;
        }
    } else {
        r = pow(abs(x), y);
    }
    if (x < 0.0f && !whole) {
        return igrt_nan();
    }
    return select(r, igrt_copysign_f32(r, -1.0f), odd && (bitcast<u32>(x) & 0x80000000u) != 0u);
}

// ---- small floats --------------------------------------------------------------------------------

fn igrt_f16_to_f32(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let e = h & 0x7c00u;
    if (e == 0x7c00u) {
        return bitcast<f32>(sign | igrt_infinite | ((h & 0x3ffu) << 13u) | select(0u, 0x400000u, (h & 0x3ffu) != 0u));
    }
    if (e == 0u) {
        return igrt_copysign_f32(f32(h & 0x3ffu) * 5.9604644775390625e-8f, bitcast<f32>(sign | 0x3f800000u));
    }
    return bitcast<f32>(sign | (((h & 0x7fffu) << 13u) + 0x38000000u));
}
fn igrt_f32_to_f16(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    let sign = (u >> 16u) & 0x8000u;
    let a = u & 0x7fffffffu;
    if (a > 0x7f800000u) {
        return sign | 0x7e00u | ((a >> 13u) & 0x3ffu);
    }
    if (a >= 0x477ff000u) {
        return sign | 0x7c00u;
    }
    if (a < 0x38800000u) {
        return sign | (bitcast<u32>(bitcast<f32>(a) + 0.5f) - 0x3f000000u);
    }
    return sign | ((a - 0x38000000u + 0xfffu + ((a >> 13u) & 1u)) >> 13u);
}
fn igrt_bf16_to_f32(h: u32) -> f32 { return bitcast<f32>(h << 16u); }
fn igrt_f32_to_bf16(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
        return (u >> 16u) | 0x40u;
    }
    return (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;
}
fn igrt_small_round(a: u32, mbits: u32, bias: u32) -> u32 {
    let drop = 23u - mbits;
    if (a >= ((128u - bias) << 23u)) {
        let b = a - ((127u - bias) << 23u);
        return (b + (1u << (drop - 1u)) - 1u + ((b >> drop) & 1u)) >> drop;
    }
    let magic = (127u + 1u - bias - mbits + 23u) << 23u;
    return bitcast<u32>(bitcast<f32>(a) + bitcast<f32>(magic)) - magic;
}
fn igrt_small_value(code: u32, mbits: u32, bias: u32) -> f32 {
    let m = code << (23u - mbits);
    if ((code >> mbits) != 0u) {
        return bitcast<f32>(m + ((127u - bias) << 23u));
    }
    let least = (128u - bias) << 23u;
    return bitcast<f32>(m + least) - bitcast<f32>(least);
}
fn igrt_small_signed(x: f32, saturate: u32, mbits: u32, bias: u32, largest: u32, over: u32, nan: u32) -> u32 {
    let u = bitcast<u32>(x);
    let a = u & 0x7fffffffu;
    var r = nan;
    if (a <= 0x7f800000u) {
        r = over;
        if (a < 0x7f800000u) {
            r = igrt_small_round(a, mbits, bias);
        }
        if (r > largest) {
            r = select(over, largest, saturate != 0u);
        }
    }
    return ((u >> 24u) & 0x80u) | r;
}
fn igrt_fnuz_round(x: f32, saturate: u32, mbits: u32, bias: u32) -> u32 {
    let u = bitcast<u32>(x);
    let sign = (u >> 24u) & 0x80u;
    let a = u & 0x7fffffffu;
    if (a > 0x7f800000u) {
        return 0x80u;
    }
    var r = 0x80u;
    if (a < 0x7f800000u) {
        r = igrt_small_round(a, mbits, bias);
    }
    if (r > 0x7fu) {
        return select(0x80u, sign | 0x7fu, saturate != 0u);
    }
    return select(0u, sign | r, r != 0u);
}
fn igrt_fnuz_value(c: u32, mbits: u32, bias: u32) -> f32 {
    if (c == 0x80u) {
        return igrt_nan();
    }
    return bitcast<f32>(((c & 0x80u) << 24u) | bitcast<u32>(igrt_small_value(c & 0x7fu, mbits, bias)));
}
fn igrt_f8e4m3fn_to_f32(c: u32) -> f32 {
    if ((c & 0x7fu) == 0x7fu) {
        return igrt_nan();
    }
    return bitcast<f32>(((c & 0x80u) << 24u) | bitcast<u32>(igrt_small_value(c & 0x7fu, 3u, 7u)));
}
fn igrt_f32_to_f8e4m3fn(x: f32, saturate: u32) -> u32 { return igrt_small_signed(x, saturate, 3u, 7u, 0x7eu, 0x7fu, 0x7fu); }
fn igrt_f8e4m3fnuz_to_f32(c: u32) -> f32 { return igrt_fnuz_value(c, 3u, 8u); }
fn igrt_f32_to_f8e4m3fnuz(x: f32, saturate: u32) -> u32 { return igrt_fnuz_round(x, saturate, 3u, 8u); }
fn igrt_f8e5m2_to_f32(c: u32) -> f32 {
    if ((c & 0x7fu) >= 0x7cu) {
        return bitcast<f32>(((c & 0x80u) << 24u) | igrt_infinite | select(0u, 0x400000u, (c & 3u) != 0u));
    }
    return bitcast<f32>(((c & 0x80u) << 24u) | bitcast<u32>(igrt_small_value(c & 0x7fu, 2u, 15u)));
}
fn igrt_f32_to_f8e5m2(x: f32, saturate: u32) -> u32 { return igrt_small_signed(x, saturate, 2u, 15u, 0x7bu, 0x7cu, 0x7eu); }
fn igrt_f8e5m2fnuz_to_f32(c: u32) -> f32 { return igrt_fnuz_value(c, 2u, 16u); }
fn igrt_f32_to_f8e5m2fnuz(x: f32, saturate: u32) -> u32 { return igrt_fnuz_round(x, saturate, 2u, 16u); }
fn igrt_f8e8m0_to_f32(c: u32) -> f32 {
    if (c == 0xffu) {
        return igrt_nan();
    }
    return bitcast<f32>(select(c << 23u, 0x00400000u, c == 0u));
}
fn igrt_f32_to_f8e8m0(x: f32, saturate: u32, round_mode: u32) -> u32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    if (a > 0x7f800000u) {
        return 0xffu;
    }
    if (a < 0x00400000u) {
        return select(0xffu, 0u, saturate != 0u);
    }
    var e = a >> 23u;
    var m = a & 0x7fffffu;
    if (e == 0u) {
        m = (m & 0x3fffffu) << 1u;
    }
    if (round_mode == 0u) {
        e += select(0u, 1u, m != 0u);
    } else if (round_mode == 2u) {
        e += select(0u, 1u, m >= 0x400000u);
    }
    return select(select(0xffu, 0xfeu, saturate != 0u), e, e < 0xffu);
}
fn igrt_f4e2m1_to_f32(c: u32) -> f32 { return bitcast<f32>(((c & 8u) << 28u) | bitcast<u32>(igrt_small_value(c & 7u, 1u, 1u))); }
fn igrt_f32_to_f4e2m1(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    let sign = (u >> 28u) & 8u;
    let a = u & 0x7fffffffu;
    if (a > 0x7f800000u) {
        return sign ^ 8u;
    }
    var r = 7u;
    if (a < 0x7f800000u) {
        r = min(igrt_small_round(a, 1u, 1u), 7u);
    }
    return sign | r;
}

// ---- neighbours in a sub-group ------------------------------------------------------------------

fn igrt_across_add_f32(value: f32, items: u32) -> f32 {
    var x = value;
    for (var apart = 1u; apart < items; apart = apart * 2u) {
        x = x + subgroupShuffleXor(x, apart);
    }
    return x;
}
fn igrt_across_add_i32(value: i32, items: u32) -> i32 {
    var x = value;
    for (var apart = 1u; apart < items; apart = apart * 2u) {
        x = x + subgroupShuffleXor(x, apart);
    }
    return x;
}
// for f32 i32:
fn igrt_across_max_$T(value: $V, items: u32) -> $V {
    var x = value;
    for (var apart = 1u; apart < items; apart = apart * 2u) {
        x = igrt_max_$T(x, subgroupShuffleXor(x, apart));
    }
    return x;
}
fn igrt_across_min_$T(value: $V, items: u32) -> $V {
    var x = value;
    for (var apart = 1u; apart < items; apart = apart * 2u) {
        x = igrt_min_$T(x, subgroupShuffleXor(x, apart));
    }
    return x;
}

// ---- four bytes in a word ------------------------------------------------------------------------

// for all:
// The word that begins at byte `at`, which need not begin one.
fn igrt_word_at(low: u32, high: u32, at: i32) -> u32 {
    let by = (u32(at) & 3u) * 8u;
    return select((low >> by) | (high << ((32u - by) & 31u)), low, by == 0u);
}
fn igrt_four(a: u32, b: u32, c: u32, d: u32) -> u32 {
    return (a & 255u) | ((b & 255u) << 8u) | ((c & 255u) << 16u) | (d << 24u);
}
fn igrt_dot_i8_i8(x: u32, w: u32, s: i32) -> i32 { return s + dot4I8Packed(x, w); }
fn igrt_dot_u8_u8(x: u32, w: u32, s: i32) -> i32 { return s + bitcast<i32>(dot4U8Packed(x, w)); }
// (x - 128) w + 128 w
fn igrt_dot_u8_i8(x: u32, w: u32, s: i32) -> i32 {
    return s + dot4I8Packed(x ^ 0x80808080u, w) + 128 * dot4I8Packed(0x01010101u, w);
}
fn igrt_dot_i8_u8(x: u32, w: u32, s: i32) -> i32 { return igrt_dot_u8_i8(w, x, s); }
