/* interp_coord.c - coordinates as exact linear forms over a box.
 *
 * A region is evaluated at every point of a box of root coordinates.  Each movement op below the
 * root maps coordinates to coordinates; all but reshape are linear.  A reshape is flatten, then
 * division and remainder.  floor(l / d) mod m is split where the terms that d divides and
 * the rest do not interact; where that fails, the few coordinates it depends on (a window's
 * position and tap, say) are enumerated: the result is tabled, and a table that turns out to be
 * linear is replaced by the form.  Nothing here uses the symbolic simplifier: it is its judge. */
#include "interp.h"

#include <string.h>

#include "igrt_num.h"

static const LinearForm *lin_make(Space *sp, int64_t c, int n, const LinearTerm *t)
{
    LinearForm *l = arena_alloc(sp->arena, sizeof *l + (size_t)n * sizeof *t);
    l->c = l->lo = l->hi = c;
    l->n = n;
    for (int i = 0; i < n; i++) {
        const int v = t[i].var;
        const Atom *a = v < sp->rank ? NULL : sp->atom[v - sp->rank];
        const int64_t lo = a ? a->lo : 0, hi = a ? a->hi : sp->ext[v] - 1, k = t[i].k;
        l->t[i] = t[i];
        l->lo += k * (k > 0 ? lo : hi);
        l->hi += k * (k > 0 ? hi : lo);
        l->deps |= a ? a->deps : 1u << v;
    }
    return l;
}

const LinearForm *lin_const(Space *sp, int64_t c)
{
    return lin_make(sp, c, 0, NULL);
}

const LinearForm *lin_axis(Space *sp, int axis)
{
    const LinearTerm t = {axis, 1};
    return lin_make(sp, 0, sp->ext[axis] > 1, &t);
}

const LinearForm *lin_sum(Space *sp, int64_t c, int n, const LinearForm *const *l, const int64_t *k)
{
    int total = 0, m = 0;
    for (int i = 0; i < n; i++)
        total += l[i]->n;
    LinearTerm *t = NEWN(sp->arena, LinearTerm, total + 1);
    for (int i = 0; i < n; i++) {
        c += k[i] * l[i]->c;
        for (int j = 0; j < l[i]->n; j++) {
            int at = 0;
            while (at < m && t[at].var != l[i]->t[j].var)
                at++;
            if (at == m)
                t[m++] = (LinearTerm){l[i]->t[j].var, 0};
            t[at].k += k[i] * l[i]->t[j].k;
        }
    }
    int kept = 0;
    for (int i = 0; i < m; i++)
        if (t[i].k != 0)
            t[kept++] = t[i];
    return lin_make(sp, c, kept, t);
}

static int64_t table_at(const Atom *a, const int64_t *x)
{
    int64_t i = a->at->c;
    for (int j = 0; j < a->at->n; j++)
        i += a->at->t[j].k * x[a->at->t[j].var];
    return a->table[i];
}

/* Value of l at the root coordinates x; every atom below has a table. */
static int64_t lin_at(const Space *sp, const LinearForm *l, const int64_t *x)
{
    int64_t s = l->c;
    for (int i = 0; i < l->n; i++) {
        const int v = l->t[i].var;
        s += l->t[i].k * (v < sp->rank ? x[v] : table_at(sp->atom[v - sp->rank], x));
    }
    return s;
}

int64_t atom_apply(const Atom *a, int64_t x)
{
    if (a->clamp)
        return x < 0 ? 0 : x > a->mod - 1 ? a->mod - 1 : x;
    const int64_t q = igrt_floordiv_i64(x, a->div);
    return a->mod ? igrt_mod_i64(q, a->mod) : q;
}

/* Enumerate floor(l / div) mod `mod` over the axes that l depends on: a linear form if it is one,
 * else the atom's table.  NULL and no table if there are too many points. */
static const LinearForm *enumerate(Space *sp, Atom *a)
{
    int axis[INGOT_MAX_RANK], n = 0;
    int64_t points = 1;
    for (int i = 0; i < sp->rank; i++)
        if (a->deps >> i & 1) {
            axis[n++] = i;
            points *= sp->ext[i];
            if (points > sp->table_limit)
                return NULL;
        }
    LinearTerm t[INGOT_MAX_RANK] = {{0, 0}};
    int64_t x[INGOT_MAX_RANK] = {0}, *table = NEWN(sp->arena, int64_t, points), stride = points;
    for (int64_t p = 0; p < points; p++) {
        table[p] = atom_apply(a, lin_at(sp, a->of, x));
        for (int i = n - 1; i >= 0; i--) {
            if (++x[axis[i]] < sp->ext[axis[i]])
                break;
            x[axis[i]] = 0;
        }
    }
    for (int i = 0; i < n; i++) {
        stride /= sp->ext[axis[i]];
        t[i] = (LinearTerm){axis[i], stride};
    }
    a->at = lin_make(sp, 0, n, t);
    a->table = table;
    a->lo = a->hi = table[0];
    for (int64_t p = 0; p < points; p++) {
        a->lo = table[p] < a->lo ? table[p] : a->lo;
        a->hi = table[p] > a->hi ? table[p] : a->hi;
    }
    /* is it c + sum k*x ?  k from the first step along each axis, then every point is checked */
    const int64_t c = table[0];
    int m = 0;
    for (int i = 0; i < n; i++) {
        const int64_t k = table[a->at->t[i].k] - c;
        if (k)
            t[m++] = (LinearTerm){axis[i], k};
    }
    memset(x, 0, sizeof x);
    for (int64_t p = 0; p < points; p++) {
        int64_t s = c;
        for (int i = 0; i < m; i++)
            s += t[i].k * x[t[i].var];
        if (s != table[p])
            return NULL;
        for (int i = n - 1; i >= 0; i--) {
            if (++x[axis[i]] < sp->ext[axis[i]])
                break;
            x[axis[i]] = 0;
        }
    }
    return lin_make(sp, c, m, t);
}

static bool lin_equal(const LinearForm *a, const LinearForm *b)
{
    return a->c == b->c && a->n == b->n && memcmp(a->t, b->t, (size_t)a->n * sizeof *a->t) == 0;
}

static const LinearForm *lin_atom(Space *sp, const LinearForm *l, int64_t div, int64_t mod,
                                  bool clamp)
{
    for (int i = 0; i < sp->natom; i++)
        if (sp->atom[i]->div == div && sp->atom[i]->mod == mod && sp->atom[i]->clamp == clamp &&
            lin_equal(sp->atom[i]->of, l)) {
            const LinearTerm t = {sp->rank + i, 1};
            return lin_make(sp, 0, 1, &t);
        }
    Atom *a = NEW(sp->arena, Atom);
    *a = (Atom){.of = l, .div = div, .mod = mod, .clamp = clamp, .deps = l->deps, .use = -1};
    a->lo = mod ? 0 : igrt_floordiv_i64(l->lo, div);
    a->hi = mod ? mod - 1 : igrt_floordiv_i64(l->hi, div);
    const LinearForm *linear = enumerate(sp, a);
    if (linear)
        return linear;
    vec_push(sp->arena, sp->atom, sp->natom, a);
    const LinearTerm t = {sp->rank + sp->natom - 1, 1};
    return lin_make(sp, 0, 1, &t);
}

/* l without the terms (and the part of the constant) that d divides; those divided by d in *q. */
static const LinearForm *lin_rest(Space *sp, const LinearForm *l, int64_t d, const LinearForm **q)
{
    LinearTerm *rest = NEWN(sp->arena, LinearTerm, 2 * l->n + 1), *quotient = rest + l->n;
    int nrest = 0, nquotient = 0;
    for (int i = 0; i < l->n; i++) {
        if (l->t[i].k % d == 0)
            quotient[nquotient++] = (LinearTerm){l->t[i].var, l->t[i].k / d};
        else
            rest[nrest++] = l->t[i];
    }
    const int64_t c = igrt_floordiv_i64(l->c, d);
    *q = lin_make(sp, c, nquotient, quotient);
    return lin_make(sp, l->c - c * d, nrest, rest);
}

const LinearForm *lin_divmod(Space *sp, const LinearForm *l, int64_t div, int64_t mod)
{
    const LinearForm *q, *rest;
    if (div != 1) {
        /* floor((div*q + r) / div) = q where 0 <= r < div */
        rest = lin_rest(sp, l, div, &q);
        if (rest->lo < 0 || rest->hi >= div) {
            const bool inside =
                igrt_floordiv_i64(l->lo, div) >= 0 && igrt_floordiv_i64(l->hi, div) < mod;
            return lin_atom(sp, l, div, inside ? 0 : mod, false);
        }
        l = q;
    }
    if (l->lo >= 0 && l->hi < mod)
        return l;
    rest = lin_rest(sp, l, mod, &q);
    if (rest->lo >= 0 && rest->hi < mod)
        return rest;
    return lin_atom(sp, l, 1, mod, false);
}

const LinearForm *lin_clamp(Space *sp, const LinearForm *l, int64_t n)
{
    return l->lo >= 0 && l->hi < n ? l : lin_atom(sp, l, 1, n, true);
}
