/* cluster_sums.c - BIND cluster of terms: groups of a cluster have parts of the same sums
 * (split-K), and each joins a share of them: it reads what the others have, over their shared
 * memory, and stores these results alone.
 *
 *     loop r                       loop r
 *         s0 += ..                     s0 += ..
 *         s1 += ..         ->          s1 += ..
 *     end                          end
 *     store s0, s1                 join s0
 *                                  join s1
 *                                  store s0, s1
 *
 * Tile.share says how many of an item's sums a group stores. */
#include "passes.h"

bool cluster_sums(Linear *l, const Kernel *k)
{
    (void)k;
    SumLoops p = {0};
    const int n = l->n;
    while (l->tile->cluster && sum_loops(l, p.behind, &p)) {
        const int first = p.behind, depth = l->stmt[p.loop].depth;
        for (int i = p.loop; i < p.end; i++) {
            Node *sum = l->stmt[i].node;
            bool known = l->stmt[i].kind != STMT_UPDATE || l->stmt[i].reduce != REDUCE_PRODUCTS;
            for (int j = first; j < p.behind && !known; j++)
                known = l->stmt[j].node == sum;
            if (!known)
                stmt_insert(
                    l, p.behind++,
                    &(Stmt){
                        .kind = STMT_JOIN, .reduce = REDUCE_PRODUCTS, .node = sum, .depth = depth},
                    1);
        }
    }
    return l->n > n;
}
