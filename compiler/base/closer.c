/* closer.c - the word that was meant, for messages: edit distance with swaps of neighbours (Damerau
 * and Levenshtein). */
#include <string.h>

#include "base.h"

/* Number of letters to add, drop, change or swap with a neighbour to make x of y; 99 for long
 * words. */
static int edits(const char *x, const char *y)
{
    enum { MOST = 32 };
    int row[3][MOST + 1];
    size_t n = strlen(x), m = strlen(y);
    if (n > MOST || m > MOST)
        return 99;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *now = row[i % 3], *before = row[(i + 2) % 3], *two = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int d = before[j - 1] + (x[i - 1] != y[j - 1]);
            d = before[j] + 1 < d ? before[j] + 1 : d;
            d = now[j - 1] + 1 < d ? now[j - 1] + 1 : d;
            if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1] &&
                two[j - 2] + 1 < d)
                d = two[j - 2] + 1;
            now[j] = d;
        }
    }
    return row[n % 3][m];
}

const char *closer(const char *typed, const char *word, const char *so_far, int *best)
{
    int d = edits(typed, word), most = (int)strlen(word) / 2;
    if (d > most || d >= *best)
        return so_far;
    *best = d;
    return word;
}
