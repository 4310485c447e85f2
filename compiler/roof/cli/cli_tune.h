/* cli_tune.h - what the files of `ingot tune` share. */
#ifndef CLI_TUNE_H
#define CLI_TUNE_H

#include "cli.h"
#include "tune_run.h"

typedef struct {
    Options *o;
    Arena *a;
    Session s;    /* of the network with the compiler's own choices; not with --remote */
    Model opened; /* what `s` runs */
    Model m;      /* what is planned and tuned */
    Plan *plan;
    Target target;
    Tuning t;
    Measure measure;
    Database *d;
    Machine machine;
    const char *dir;    /* scratch */
    double network_ms;  /* sum of its steps; 0: not known */
    TuneKernel **order; /* those that are asked for, the dearest first */
    int n;
    double began, deadline;
} Tune;

/* cli_tune_network.c: times of the network's steps go to the kernels. */
ingot_status network_profile(Tune *);
/* Winners that cannot be replayed, or are not faster in the network, are winners no more; the file goes to *text.  What
 * the database knows of it is not timed again. */
ingot_status network_confirm(Tune *, StrBuf *text);

/* cli_tune_explain.c */
void tune_explain(Tune *);

/* cli_tune_apart.c: --prepare, --measure */
ingot_status tune_prepare(Tune *, const char *dir);
ingot_status tune_measure(Tune *, const char *dir);

#endif
