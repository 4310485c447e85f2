// SPDX-License-Identifier: MIT-0
// igrt_f64.wgsl - f64 on WebGPU, which has none: IEEE's bits in a vec2<u32>, the low word first, by
// integers. Sums, products, quotients and roots are rounded to nearest, ties to even; functions such
// as exp are off by a few units in the last place; subnormal numbers are zeros. It is some hundred
// times slower than f32, and made for the few numbers of a kernel that need it: coordinates, sizes,
// sums of f64.
//
// Not a module: see igrt_num.wgsl, whose functions of 64-bit integers are used.

// for all:
fn igrt_f64_infinity() -> vec2<u32> { return vec2<u32>(0u, 0x7ff00000u); }
fn igrt_f64_nan() -> vec2<u32> { return vec2<u32>(0u, 0x7ff80000u); }
fn igrt_isnan_f64(x: vec2<u32>) -> bool { return igrt_lt_u64(igrt_f64_infinity(), igrt_abs_f64(x)); }
fn igrt_isinf_f64(x: vec2<u32>) -> bool { return x.x == 0u && (x.y & 0x7fffffffu) == 0x7ff00000u; }
fn igrt_neg_f64(x: vec2<u32>) -> vec2<u32> { return vec2<u32>(x.x, x.y ^ 0x80000000u); }
fn igrt_abs_f64(x: vec2<u32>) -> vec2<u32> { return vec2<u32>(x.x, x.y & 0x7fffffffu); }
fn igrt_copysign_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return vec2<u32>(x.x, (x.y & 0x7fffffffu) | (y.y & 0x80000000u)); }
fn igrt_f64_exponent(x: vec2<u32>) -> i32 { return i32((x.y >> 20u) & 0x7ffu); }
// 53 bits
fn igrt_f64_significand(x: vec2<u32>) -> vec2<u32> { return vec2<u32>(x.x, (x.y & 0xfffffu) | 0x100000u); }
fn igrt_f64_is_zero(x: vec2<u32>) -> bool { return igrt_f64_exponent(x) == 0; }
// m >> n, whose last bit says too whether any that went was set
fn igrt_f64_shifted(m: vec2<u32>, n: u32) -> vec2<u32> {
    if (n >= 64u) {
        return vec2<u32>(min(m.x | m.y, 1u), 0u);
    }
    let r = igrt_right(m, n, 0u);
    let back = igrt_left(r, n);
    return vec2<u32>(r.x | select(0u, 1u, back.x != m.x || back.y != m.y), r.y);
}
// The number m 2^(e - 1023 - 62), rounded
fn igrt_f64_rounded(sign: u32, e: i32, m: vec2<u32>) -> vec2<u32> {
    let s = sign & 0x80000000u;
    if ((m.x | m.y) == 0u) {
        return vec2<u32>(0u, s);
    }
    let zeros = i32(select(countLeadingZeros(m.y), 32u + countLeadingZeros(m.x), m.y == 0u));
    var x = vec2<u32>();
    if (zeros == 0) {
        x = igrt_f64_shifted(m, 1u);
    } else {
        x = igrt_left(m, u32(zeros - 1));
    }
    let low = x.x & 0x3ffu;
    x = igrt_right(x, 10u, 0u);
    if (low > 512u || (low == 512u && (x.x & 1u) != 0u)) {
        x = igrt_add_u64(x, vec2<u32>(1u, 0u));
    }
    var exponent = e - (zeros - 1);
    if ((x.y & 0x200000u) != 0u) {
        exponent = exponent + 1;
        x = igrt_right(x, 1u, 0u);
    }
    if (exponent <= 0) {
        return vec2<u32>(0u, s);
    }
    if (exponent >= 0x7ff) {
        return vec2<u32>(0u, s | 0x7ff00000u);
    }
    return vec2<u32>(x.x, s | (u32(exponent) << 20u) | (x.y & 0xfffffu));
}
fn igrt_add_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let less = igrt_lt_u64(igrt_abs_f64(x), igrt_abs_f64(y));
    let a = select(x, y, less);
    let b = select(y, x, less);
    let ea = igrt_f64_exponent(a);
    let differ = ((a.y ^ b.y) & 0x80000000u) != 0u;
    if (ea == 0x7ff) {
        if (igrt_isinf_f64(a) && igrt_isinf_f64(b) && differ) {
            return igrt_f64_nan();
        }
        return a;
    }
    if (igrt_f64_is_zero(b)) {
        if (ea == 0) {
            return vec2<u32>(0u, a.y & b.y & 0x80000000u);
        }
        return a;
    }
    let large = igrt_left(igrt_f64_significand(a), 10u);
    let small = igrt_f64_shifted(igrt_left(igrt_f64_significand(b), 10u), u32(ea - igrt_f64_exponent(b)));
    if (!differ) {
        return igrt_f64_rounded(a.y, ea, igrt_add_u64(large, small));
    }
    let m = igrt_sub_u64(large, small);
    return igrt_f64_rounded(select(a.y, 0u, (m.x | m.y) == 0u), ea, m);
}
fn igrt_sub_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    if (igrt_isnan_f64(y)) {
        return y;
    }
    return igrt_add_f64(x, igrt_neg_f64(y));
}
fn igrt_mul_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let sign = (x.y ^ y.y) & 0x80000000u;
    let ex = igrt_f64_exponent(x);
    let ey = igrt_f64_exponent(y);
    if (ex == 0x7ff || ey == 0x7ff) {
        if (igrt_isnan_f64(x) || igrt_isnan_f64(y) || ex == 0 || ey == 0) {
            return igrt_f64_nan();
        }
        return vec2<u32>(0u, sign | 0x7ff00000u);
    }
    if (ex == 0 || ey == 0) {
        return vec2<u32>(0u, sign);
    }
    let a = igrt_left(igrt_f64_significand(x), 11u);
    let b = igrt_left(igrt_f64_significand(y), 11u);
    let low = igrt_product(a.x, b.x);
    let mid = igrt_add_u64(igrt_product(a.x, b.y), vec2<u32>(low.y, 0u));
    let other = igrt_add_u64(igrt_product(a.y, b.x), vec2<u32>(mid.x, 0u));
    let high = igrt_add_u64(igrt_add_u64(igrt_product(a.y, b.y), vec2<u32>(mid.y, 0u)), vec2<u32>(other.y, 0u));
    return igrt_f64_rounded(sign, ex + ey - 1023, vec2<u32>(high.x | min(low.x | other.x, 1u), high.y));
}
fn igrt_muladd_f64(x: vec2<u32>, y: vec2<u32>, z: vec2<u32>) -> vec2<u32> { return igrt_add_f64(igrt_mul_f64(x, y), z); }
fn igrt_div_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let sign = (x.y ^ y.y) & 0x80000000u;
    let ex = igrt_f64_exponent(x);
    let ey = igrt_f64_exponent(y);
    if (igrt_isnan_f64(x) || igrt_isnan_f64(y) || (ex == 0x7ff && ey == 0x7ff) || (ex == 0 && ey == 0)) {
        return igrt_f64_nan();
    }
    if (ex == 0x7ff || ey == 0) {
        return vec2<u32>(0u, sign | 0x7ff00000u);
    }
    if (ey == 0x7ff || ex == 0) {
        return vec2<u32>(0u, sign);
    }
    let d = igrt_f64_significand(y);
    var r = igrt_f64_significand(x);
    var q = vec2<u32>(0u, 0u);
    for (var i = 0; i < 63; i++) {
        q = igrt_left(q, 1u);
        if (!igrt_lt_u64(r, d)) {
            r = igrt_sub_u64(r, d);
            q.x = q.x | 1u;
        }
        r = igrt_left(r, 1u);
    }
    return igrt_f64_rounded(sign, ex - ey + 1023, vec2<u32>(q.x | min(r.x | r.y, 1u), q.y));
}
fn igrt_sqrt_f64(x: vec2<u32>) -> vec2<u32> {
    let e = igrt_f64_exponent(x);
    if (e == 0) {
        return vec2<u32>(0u, x.y & 0x80000000u);
    }
    if (igrt_isnan_f64(x) || igrt_is_negative(x)) {
        return igrt_f64_nan();
    }
    if (e == 0x7ff) {
        return x;
    }
    // digit by digit, the first one is 2^53
    let odd = (e & 1) == 0;
    var rest = igrt_left(igrt_f64_significand(x), select(1u, 2u, odd));
    var sum = vec2<u32>(0u, 0u);
    var root = vec2<u32>(0u, 0u);
    var digit = vec2<u32>(0u, 0x200000u);
    for (var i = 0; i < 54; i++) {
        let t = igrt_add_u64(sum, digit);
        if (!igrt_lt_u64(rest, t)) {
            sum = igrt_add_u64(t, digit);
            rest = igrt_sub_u64(rest, t);
            root = igrt_add_u64(root, digit);
        }
        rest = igrt_left(rest, 1u);
        digit = igrt_right(digit, 1u, 0u);
    }
    let m = igrt_left(root, 9u);
    return igrt_f64_rounded(0u, (e - 1023 - select(0, 1, odd)) / 2 + 1023, vec2<u32>(m.x | min(rest.x | rest.y, 1u), m.y));
}

// ---- comparisons ---------------------------------------------------------------------------------

fn igrt_eq_f64(x: vec2<u32>, y: vec2<u32>) -> bool {
    if (igrt_isnan_f64(x) || igrt_isnan_f64(y)) {
        return false;
    }
    return (igrt_f64_is_zero(x) && igrt_f64_is_zero(y)) || (x.x == y.x && x.y == y.y);
}
fn igrt_ne_f64(x: vec2<u32>, y: vec2<u32>) -> bool { return !igrt_eq_f64(x, y); }
fn igrt_lt_f64(x: vec2<u32>, y: vec2<u32>) -> bool {
    if (igrt_isnan_f64(x) || igrt_isnan_f64(y) || (igrt_f64_is_zero(x) && igrt_f64_is_zero(y))) {
        return false;
    }
    if (igrt_is_negative(x) != igrt_is_negative(y)) {
        return igrt_is_negative(x);
    }
    return select(igrt_lt_u64(x, y), igrt_lt_u64(y, x), igrt_is_negative(x));
}
fn igrt_le_f64(x: vec2<u32>, y: vec2<u32>) -> bool { return igrt_lt_f64(x, y) || igrt_eq_f64(x, y); }
fn igrt_max_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return select(y, x, igrt_lt_f64(y, x) || igrt_isnan_f64(x)); }
fn igrt_min_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return select(y, x, igrt_lt_f64(x, y) || igrt_isnan_f64(x)); }
fn igrt_relu_f64(x: vec2<u32>) -> vec2<u32> { return select(x, vec2<u32>(0u, 0u), igrt_lt_f64(x, vec2<u32>(0u, 0u))); }
fn igrt_sign_f64(x: vec2<u32>) -> vec2<u32> {
    return select(igrt_copysign_f64(vec2<u32>(0u, 0x3ff00000u), x), x, igrt_isnan_f64(x) || igrt_f64_is_zero(x));
}

// ---- whole numbers -------------------------------------------------------------------------------

fn igrt_trunc_f64(x: vec2<u32>) -> vec2<u32> {
    let bits = igrt_f64_exponent(x) - 1023;
    if (bits < 0) {
        return vec2<u32>(0u, x.y & 0x80000000u);
    }
    if (bits >= 52) {
        return x;
    }
    return igrt_left(igrt_right(x, u32(52 - bits), 0u), u32(52 - bits));
}
fn igrt_floor_f64(x: vec2<u32>) -> vec2<u32> {
    let t = igrt_trunc_f64(x);
    if (igrt_lt_f64(x, t)) {
        return igrt_add_f64(t, vec2<u32>(0u, 0xbff00000u));
    }
    return t;
}
fn igrt_ceil_f64(x: vec2<u32>) -> vec2<u32> { return igrt_neg_f64(igrt_floor_f64(igrt_neg_f64(x))); }
// ties to even: beyond 2^52 there are whole numbers alone
fn igrt_round_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_f64_exponent(x) >= 1075) {
        return x;
    }
    let large = vec2<u32>(0u, 0x43300000u);
    return igrt_copysign_f64(igrt_sub_f64(igrt_add_f64(igrt_abs_f64(x), large), large), x);
}
// by shifts and differences, exactly
fn igrt_fmod_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let ex = igrt_f64_exponent(x);
    let ey = igrt_f64_exponent(y);
    if (ey == 0 || ex == 0x7ff || igrt_isnan_f64(y)) {
        return igrt_f64_nan();
    }
    if (ey == 0x7ff || igrt_lt_u64(igrt_abs_f64(x), igrt_abs_f64(y))) {
        return x;
    }
    let d = igrt_f64_significand(y);
    var r = igrt_f64_significand(x);
    for (var e = ex; e > ey; e--) {
        if (!igrt_lt_u64(r, d)) {
            r = igrt_sub_u64(r, d);
        }
        r = igrt_left(r, 1u);
    }
    if (!igrt_lt_u64(r, d)) {
        r = igrt_sub_u64(r, d);
    }
    return igrt_f64_rounded(x.y, ey, igrt_left(r, 10u));
}
fn igrt_mod_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let r = igrt_fmod_f64(x, y);
    if (igrt_f64_is_zero(r)) {
        return igrt_copysign_f64(r, y);
    }
    if (igrt_is_negative(r) != igrt_is_negative(y)) {
        return igrt_add_f64(r, y);
    }
    return r;
}

// ---- functions: by series, whose coefficients are quotients of small whole numbers -----------------

fn igrt_f64_one() -> vec2<u32> { return vec2<u32>(0x0u, 0x3ff00000u); }
fn igrt_f64_halved(x: vec2<u32>) -> vec2<u32> { return igrt_f64_scaled(x, -1); }
// x 2^n
fn igrt_f64_scaled(x: vec2<u32>, n: i32) -> vec2<u32> {
    let e = igrt_f64_exponent(x);
    if (e == 0 || e == 0x7ff) {
        return x;
    }
    if (e + n <= 0) {
        return vec2<u32>(0u, x.y & 0x80000000u);
    }
    if (e + n >= 0x7ff) {
        return vec2<u32>(0u, (x.y & 0x80000000u) | 0x7ff00000u);
    }
    return vec2<u32>(x.x, (x.y & 0x800fffffu) | (u32(e + n) << 20u));
}
fn igrt_f64_over(x: vec2<u32>, n: i32) -> vec2<u32> { return igrt_div_f64(x, igrt_i32_to_f64(n)); }
// 1 + z/3 + z^2/5 + ..., n terms
fn igrt_f64_odds(z: vec2<u32>, n: i32) -> vec2<u32> {
    var p = vec2<u32>(0u, 0u);
    for (var i = n; i >= 0; i--) {
        p = igrt_muladd_f64(p, z, igrt_f64_over(igrt_f64_one(), 2 * i + 1));
    }
    return p;
}
// 1 + z/((first+1)(first+2)) (1 + z/((first+3)(first+4)) (...
fn igrt_f64_factorials(z: vec2<u32>, first: i32) -> vec2<u32> {
    var p = igrt_f64_one();
    for (var i = first + 23; i > first; i -= 2) {
        p = igrt_add_f64(igrt_f64_one(), igrt_f64_over(igrt_mul_f64(p, z), i * (i + 1)));
    }
    return p;
}
// e^x = 2^k e^r, |r| at most log(2)/2
fn igrt_exp_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_isnan_f64(x)) {
        return x;
    }
    if (igrt_lt_f64(vec2<u32>(0x0u, 0x40868000u), igrt_abs_f64(x))) {
        return select(igrt_f64_infinity(), vec2<u32>(0u, 0u), igrt_is_negative(x));
    }
    let k = igrt_round_f64(igrt_mul_f64(x, vec2<u32>(0x652b82feu, 0x3ff71547u)));
    let r = igrt_sub_f64(igrt_sub_f64(x, igrt_mul_f64(k, igrt_f64_log2_high())), igrt_mul_f64(k, igrt_f64_log2_low()));
    var p = igrt_f64_one();
    for (var i = 14; i > 0; i--) {
        p = igrt_add_f64(igrt_f64_one(), igrt_f64_over(igrt_mul_f64(p, r), i));
    }
    return igrt_f64_scaled(p, igrt_f64_to_i32(k));
}
// log(2) as a sum: the first part has 33 bits, so its products with exponents are exact.
fn igrt_f64_log2_high() -> vec2<u32> { return vec2<u32>(0xfee00000u, 0x3fe62e42u); }
fn igrt_f64_log2_low() -> vec2<u32> { return vec2<u32>(0x35793c76u, 0x3dea39efu); }
// log(1 + x), |x| below 1/2: s = x / (2 + x), 2 (s + s^3/3 + s^5/5 + ...)
fn igrt_f64_log1p(x: vec2<u32>) -> vec2<u32> {
    let s = igrt_div_f64(x, igrt_add_f64(vec2<u32>(0x0u, 0x40000000u), x));
    return igrt_f64_scaled(igrt_mul_f64(s, igrt_f64_odds(igrt_mul_f64(s, s), 14)), 1);
}
fn igrt_log_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_f64_is_zero(x)) {
        return igrt_neg_f64(igrt_f64_infinity());
    }
    if (igrt_isnan_f64(x) || igrt_is_negative(x)) {
        return igrt_f64_nan();
    }
    if (igrt_isinf_f64(x)) {
        return x;
    }
    // x = 2^e m, m from 0.7 to 1.4
    let up = select(0, 1, igrt_f64_significand(x).y > 0x16a09eu);
    let e = igrt_f64_exponent(x) - 1023 + up;
    let f = igrt_sub_f64(igrt_f64_scaled(x, -e), igrt_f64_one());
    let k = igrt_i32_to_f64(e);
    return igrt_add_f64(igrt_mul_f64(k, igrt_f64_log2_high()), igrt_add_f64(igrt_f64_log1p(f), igrt_mul_f64(k, igrt_f64_log2_low())));
}
// log(1 + x), x from 0 on
fn igrt_f64_log_beyond(x: vec2<u32>) -> vec2<u32> {
    if (igrt_lt_f64(x, vec2<u32>(0x0u, 0x3fd00000u))) {
        return igrt_f64_log1p(x);
    }
    return igrt_log_f64(igrt_add_f64(igrt_f64_one(), x));
}
fn igrt_f64_is_whole(x: vec2<u32>) -> bool { return igrt_eq_f64(igrt_trunc_f64(x), x); }
fn igrt_pow_f64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let a = igrt_abs_f64(x);
    let odd = igrt_f64_is_whole(y) && !igrt_f64_is_whole(igrt_f64_halved(y));
    if (igrt_f64_is_zero(y) || igrt_eq_f64(x, igrt_f64_one())) {
        return igrt_f64_one();
    }
    if (igrt_isnan_f64(x) || igrt_isnan_f64(y) || (igrt_lt_f64(x, vec2<u32>(0u, 0u)) && !igrt_isinf_f64(x) && !igrt_f64_is_whole(y))) {
        return igrt_f64_nan();
    }
    let sign = select(0u, x.y & 0x80000000u, odd);
    if (igrt_eq_f64(a, igrt_f64_one())) {
        return vec2<u32>(a.x, a.y | sign);
    }
    var r = igrt_f64_one();
    if (igrt_f64_is_whole(y) && igrt_lt_f64(igrt_abs_f64(y), vec2<u32>(0x0u, 0x40900000u))) {
        var square = a;
        for (var n = igrt_f64_to_i32(igrt_abs_f64(y)); n != 0; n = n >> 1u) {
            if ((n & 1) != 0) {
                r = igrt_mul_f64(r, square);
            }
            square = igrt_mul_f64(square, square);
        }
        if (igrt_is_negative(y)) {
            r = igrt_div_f64(igrt_f64_one(), r);
        }
    } else {
        r = igrt_exp_f64(igrt_mul_f64(y, igrt_log_f64(a)));
    }
    return vec2<u32>(r.x, r.y | sign);
}
// x less whole quarters of a turn, whose number is added to k; exact up to some 10^6 quarters
fn igrt_f64_turned(x: vec2<u32>, k: vec2<u32>) -> vec2<u32> {
    let a = igrt_sub_f64(x, igrt_mul_f64(k, vec2<u32>(0x54400000u, 0x3ff921fbu)));
    let b = igrt_sub_f64(a, igrt_mul_f64(k, vec2<u32>(0x1a600000u, 0x3dd0b461u)));
    return igrt_sub_f64(b, igrt_mul_f64(k, vec2<u32>(0x2e037073u, 0x3ba3198au)));
}
// sin(x + quarters turns / 4)
fn igrt_f64_wave(x: vec2<u32>, quarters: i32) -> vec2<u32> {
    if (igrt_f64_exponent(x) == 0x7ff) {
        return igrt_f64_nan();
    }
    let k = igrt_round_f64(igrt_mul_f64(x, vec2<u32>(0x6dc9c883u, 0x3fe45f30u)));
    let r = igrt_f64_turned(x, k);
    let z = igrt_neg_f64(igrt_mul_f64(r, r));
    let n = (igrt_f64_to_i64(k).x + u32(quarters)) & 3u;
    var y = igrt_f64_factorials(z, 0);
    if ((n & 1u) == 0u) {
        y = igrt_mul_f64(r, igrt_f64_factorials(z, 1));
    }
    return select(y, igrt_neg_f64(y), n >= 2u);
}
fn igrt_sin_f64(x: vec2<u32>) -> vec2<u32> { return igrt_f64_wave(x, 0); }
fn igrt_cos_f64(x: vec2<u32>) -> vec2<u32> { return igrt_f64_wave(x, 1); }
fn igrt_tan_f64(x: vec2<u32>) -> vec2<u32> { return igrt_div_f64(igrt_sin_f64(x), igrt_cos_f64(x)); }
// beyond tan(1/8 turn): 1/8 turn + atan((x - 1) / (x + 1)), beyond its inverse 1/4 turn - atan(1 / x)
fn igrt_atan_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_isnan_f64(x)) {
        return x;
    }
    var t = igrt_abs_f64(x);
    var base = vec2<u32>(0u, 0u);
    if (igrt_lt_f64(vec2<u32>(0x333f9de6u, 0x4003504fu), t)) {
        base = vec2<u32>(0x54442d18u, 0x3ff921fbu);
        t = igrt_neg_f64(igrt_div_f64(igrt_f64_one(), t));
    } else if (igrt_lt_f64(vec2<u32>(0x99fcef34u, 0x3fda8279u), t)) {
        base = vec2<u32>(0x54442d18u, 0x3fe921fbu);
        t = igrt_div_f64(igrt_sub_f64(t, igrt_f64_one()), igrt_add_f64(t, igrt_f64_one()));
    }
    let z = igrt_neg_f64(igrt_mul_f64(t, t));
    return igrt_copysign_f64(igrt_add_f64(base, igrt_mul_f64(t, igrt_f64_odds(z, 22))), x);
}
fn igrt_asin_f64(x: vec2<u32>) -> vec2<u32> {
    let c = igrt_mul_f64(igrt_sub_f64(igrt_f64_one(), x), igrt_add_f64(igrt_f64_one(), x));
    return igrt_atan_f64(igrt_div_f64(x, igrt_sqrt_f64(c)));
}
fn igrt_acos_f64(x: vec2<u32>) -> vec2<u32> {
    let z = igrt_div_f64(igrt_sub_f64(igrt_f64_one(), x), igrt_add_f64(igrt_f64_one(), x));
    return igrt_f64_scaled(igrt_atan_f64(igrt_sqrt_f64(z)), 1);
}
// (e^x + sign e^-x) / 2, in factors of e^(x/2), which do not overflow before it does
fn igrt_f64_catenary(x: vec2<u32>, sign: u32) -> vec2<u32> {
    let e = igrt_exp_f64(igrt_f64_halved(igrt_abs_f64(x)));
    let up = igrt_mul_f64(igrt_f64_halved(e), e);
    let down = igrt_div_f64(igrt_div_f64(vec2<u32>(0x0u, 0x3fe00000u), e), e);
    return igrt_add_f64(up, vec2<u32>(down.x, down.y ^ sign));
}
fn igrt_sinh_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_lt_f64(igrt_abs_f64(x), igrt_f64_one())) {
        return igrt_mul_f64(x, igrt_f64_factorials(igrt_mul_f64(x, x), 1));
    }
    if (igrt_f64_exponent(x) == 0x7ff) {
        return x;
    }
    return igrt_copysign_f64(igrt_f64_catenary(x, 0x80000000u), x);
}
fn igrt_cosh_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_f64_exponent(x) == 0x7ff) {
        return igrt_abs_f64(x);
    }
    return igrt_f64_catenary(x, 0u);
}
fn igrt_tanh_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_isnan_f64(x)) {
        return x;
    }
    if (igrt_lt_f64(vec2<u32>(0x0u, 0x40340000u), igrt_abs_f64(x))) {
        return igrt_copysign_f64(igrt_f64_one(), x);
    }
    return igrt_div_f64(igrt_sinh_f64(x), igrt_cosh_f64(x));
}
fn igrt_asinh_f64(x: vec2<u32>) -> vec2<u32> {
    let a = igrt_abs_f64(x);
    if (igrt_f64_exponent(x) > 1023 + 30) {
        return igrt_copysign_f64(igrt_add_f64(igrt_log_f64(a), vec2<u32>(0xfefa39efu, 0x3fe62e42u)), x);
    }
    let z = igrt_mul_f64(a, a);
    let root = igrt_sqrt_f64(igrt_add_f64(igrt_f64_one(), z));
    let u = igrt_add_f64(a, igrt_div_f64(z, igrt_add_f64(igrt_f64_one(), root)));
    return igrt_copysign_f64(igrt_f64_log_beyond(u), x);
}
fn igrt_acosh_f64(x: vec2<u32>) -> vec2<u32> {
    if (!igrt_le_f64(igrt_f64_one(), x)) {
        return igrt_f64_nan();
    }
    if (igrt_f64_exponent(x) > 1023 + 30) {
        return igrt_add_f64(igrt_log_f64(x), vec2<u32>(0xfefa39efu, 0x3fe62e42u));
    }
    let t = igrt_sub_f64(x, igrt_f64_one());
    return igrt_f64_log_beyond(igrt_add_f64(t, igrt_sqrt_f64(igrt_mul_f64(t, igrt_add_f64(t, vec2<u32>(0x0u, 0x40000000u))))));
}
fn igrt_atanh_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_lt_f64(igrt_abs_f64(x), vec2<u32>(0x0u, 0x3fd00000u))) {
        return igrt_mul_f64(x, igrt_f64_odds(igrt_mul_f64(x, x), 14));
    }
    let q = igrt_div_f64(igrt_add_f64(igrt_f64_one(), x), igrt_sub_f64(igrt_f64_one(), x));
    return igrt_f64_halved(igrt_log_f64(q));
}
// 2/sqrt(pi) x e^(-x^2) (1 + 2x^2/3 (1 + 2x^2/5 (...
fn igrt_erf_f64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_isnan_f64(x)) {
        return x;
    }
    if (igrt_lt_f64(vec2<u32>(0x0u, 0x40180000u), igrt_abs_f64(x))) {
        return igrt_copysign_f64(igrt_f64_one(), x);
    }
    let z = igrt_mul_f64(x, x);
    var p = igrt_f64_one();
    for (var i = 25 + 3 * igrt_f64_to_i32(z); i > 0; i--) {
        p = igrt_add_f64(igrt_f64_one(), igrt_f64_over(igrt_mul_f64(p, igrt_f64_scaled(z, 1)), 2 * i + 1));
    }
    let y = igrt_mul_f64(x, igrt_mul_f64(vec2<u32>(0x50429b6du, 0x3ff20dd7u), igrt_exp_f64(igrt_neg_f64(z))));
    return igrt_mul_f64(y, p);
}

// ---- conversions ---------------------------------------------------------------------------------

fn igrt_u64_to_f64(x: vec2<u32>) -> vec2<u32> { return igrt_f64_rounded(0u, 1085, x); }
fn igrt_i64_to_f64(x: vec2<u32>) -> vec2<u32> { return igrt_f64_rounded(x.y, 1085, igrt_abs_i64(x)); }
fn igrt_i32_to_f64(x: i32) -> vec2<u32> { return igrt_i64_to_f64(igrt_i32_to_i64(x)); }
fn igrt_u32_to_f64(x: u32) -> vec2<u32> { return igrt_u64_to_f64(vec2<u32>(x, 0u)); }
fn igrt_bool_to_f64(x: bool) -> vec2<u32> { return vec2<u32>(0u, select(0u, 0x3ff00000u, x)); }
fn igrt_f32_to_f64(x: f32) -> vec2<u32> {
    let u = bitcast<u32>(x);
    let e = (u >> 23u) & 0xffu;
    let s = u & 0x80000000u;
    if (e == 0u) {
        return vec2<u32>(0u, s);
    }
    return vec2<u32>((u & 7u) << 29u, s | (select(e + 896u, 0x7ffu, e == 0xffu) << 20u) | ((u >> 3u) & 0xfffffu));
}
// The bits of the f32; odd: with a last bit that says whether anything was cut off, to be rounded again.
fn igrt_f64_cut(x: vec2<u32>, odd: bool) -> f32 {
    let e = igrt_f64_exponent(x) - 896;
    let s = x.y & 0x80000000u;
    if (igrt_isnan_f64(x)) {
        return igrt_nan();
    }
    if (e < 0) {
        return bitcast<f32>(s);
    }
    let m = igrt_right(igrt_f64_significand(x), 29u, 0u).x & 0x7fffffu;
    let low = x.x & 0x1fffffffu;
    if (odd) {
        return select(bitcast<f32>(s | (u32(e) << 23u) | m | min(low, 1u)), igrt_copysign_f32(igrt_infinity(), bitcast<f32>(s)), e >= 255);
    }
    let up = select(0u, 1u, low > 0x10000000u || (low == 0x10000000u && (m & 1u) != 0u));
    let bits = (u32(e) << 23u) + m + up;
    if (e >= 255 || bits >= 0x7f800000u) {
        return igrt_copysign_f32(igrt_infinity(), bitcast<f32>(s));
    }
    return bitcast<f32>(s | select(bits, 0u, bits < 0x800000u));
}
fn igrt_f64_to_f32(x: vec2<u32>) -> f32 { return igrt_f64_cut(x, false); }
fn igrt_f64_to_f32_odd(x: vec2<u32>) -> f32 { return igrt_f64_cut(x, true); }
fn igrt_f64_to_bool(x: vec2<u32>) -> bool { return !igrt_f64_is_zero(x); }
// saturates; NaN is 0
fn igrt_f64_to_i64(x: vec2<u32>) -> vec2<u32> {
    let bits = igrt_f64_exponent(x) - 1023;
    if (bits < 0 || igrt_isnan_f64(x)) {
        return vec2<u32>(0u, 0u);
    }
    if (bits >= 63) {
        return select(vec2<u32>(0xffffffffu, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), igrt_is_negative(x));
    }
    let m = igrt_f64_significand(x);
    var n = vec2<u32>();
    if (bits >= 52) {
        n = igrt_left(m, u32(bits - 52));
    } else {
        n = igrt_right(m, u32(52 - bits), 0u);
    }
    return select(n, igrt_neg_i64(n), igrt_is_negative(x));
}
fn igrt_f64_to_u64(x: vec2<u32>) -> vec2<u32> {
    if (igrt_f64_exponent(x) == 1023 + 63 && !igrt_is_negative(x)) {
        return igrt_left(igrt_f64_significand(x), 11u);
    }
    if (igrt_f64_exponent(x) > 1023 + 63 && !igrt_is_negative(x) && !igrt_isnan_f64(x)) {
        return vec2<u32>(0xffffffffu, 0xffffffffu);
    }
    return igrt_f64_to_i64(x);
}
fn igrt_f64_to_i32(x: vec2<u32>) -> i32 {
    let n = igrt_f64_to_i64(x);
    if (igrt_lt_i64(n, igrt_i32_to_i64(-2147483647 - 1))) {
        return -2147483647 - 1;
    }
    return select(bitcast<i32>(n.x), 2147483647, igrt_lt_i64(igrt_i32_to_i64(2147483647), n));
}
// for f16 bf16 f4e2m1:
fn igrt_f64_to_$T(x: vec2<u32>) -> u32 { return igrt_f32_to_$T(igrt_f64_to_f32_odd(x)); }
// for f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz:
fn igrt_f64_to_$T(x: vec2<u32>, saturate: u32) -> u32 { return igrt_f32_to_$T(igrt_f64_to_f32_odd(x), saturate); }
