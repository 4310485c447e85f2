/* decisions.h - what is decided about the values of a graph, before there are kernels: given by a
 * file, and recorded. */
#ifndef DECISIONS_H
#define DECISIONS_H

#include "keys.h"

typedef enum { UNSAID, NO, YES } Said;
typedef struct {
    Key key;
    int nth, of; /* the nth of `of` values with this key; of 0: every one */
    Said stored; /* NO: recomputed by its readers */
    /* YES: written right into the concat of key `in`; NO: alone, in a buffer of its own */
    Said aliased;
    Said merged; /* YES: by the kernel that stores `with`; NO: apart, by a kernel of its own */
    uint64_t in, with;   /* keys, or 0 */
    const char *variant; /* NULL: unsaid */
    const char *memory;  /* of several, the one that it lies in; NULL: unsaid */
    bool placed;         /* it is said which device computes it: */
    int device;
    /* What was estimated where nobody had said: of storing it and of computing it in its readers;
     * of a kernel of its own, and of the one that stores `beside`, by which it is merged or could
     * be.  0: not asked. */
    Fusion stores, merges;
    uint64_t beside;
    int line; /* of the file */
} ValueChoice;

typedef struct Values Values;
/* What the options decide for all values that no file speaks of. */
typedef enum { PRESET_AUTO, PRESET_NONE, PRESET_ALL } Preset;

/* Starts a plan's record; the graph is the canonical one, before variants. */
void values_begin(Plan *, Preset);
/* All nodes of the graph, sources first. */
Node *const *values_nodes(const Plan *, int *n);
Preset values_preset(const Plan *);
/* A line of the file; false after a fault. */
bool value_line(Plan *, int line, int nword, char *const *word);
/* All lines have been read: which value is which. */
void values_match(Plan *);
/* The graph has become another one. now[id]: what a node below nnode has become (NULL: itself);
 * root[id]: of a node from nnode on, which node's variant made it. */
void values_follow(Plan *, uint32_t nnode, Node *const *now, Node *const *root,
                   const char *const *variant);

/* What the file says of a value; NULL: nothing. */
const ValueChoice *value_given(const Plan *, Node *);
/* What is decided of it: to be filled in. */
ValueChoice *value_record(Plan *, Node *);
/* The same, where anything is; else NULL. */
const ValueChoice *value_decided(const Plan *, const Node *);
/* A line that says this of all values with its key. */
void value_print(StrBuf *, const Plan *, Node *, const ValueChoice *);
/* Every line that says which device computes a value knows one of the plan's; false after a fault.
 */
bool values_devices(const Plan *);
/* The memory that a stored value was put into. */
void value_note_memory(Plan *, Node *, const char *memory);
void values_free(Plan *);                 /* what is not in the plan's arena */
uint64_t value_key(const Plan *, Node *); /* 0: none */
/* Number of the given choice that stands for this value (by its neighbourhood, if need be), or
 * -1. */
int value_match(const Plan *, Node *);
/* Whether the file was written for another graph: then what no longer fits is left to the compiler,
 * and is no fault. */
bool values_changed(const Plan *);
uint64_t value_given_key(const Plan *, int given);
void values_print(StrBuf *, const Plan *);
/* Tells of lines that speak of no value of this model, and counts: lines, and those that apply. */
void values_report(const Plan *, int *lines, int *applied);

#endif
