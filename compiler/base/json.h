/* json.h - JSON written and read: what `ingot inspect` tells, and what other commands have told. */
#ifndef JSON_H
#define JSON_H

#include "base.h"

/* "text" with escapes; what is no UTF-8 byte by byte as \u00xx. NULL: null. */
void json_string(StrBuf *, const char *);

typedef enum {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_LIST,
    JSON_OBJECT
} JsonKind;
typedef struct Json Json;
struct Json {
    JsonKind kind;
    double number;
    const char *text; /* of a string: without escapes */
    const char *name; /* in an object */
    Json *item;       /* of a list or an object: the first */
    Json *next;
};
/* NULL if the text is no JSON, with the reason in *why. */
const Json *json_read(Arena *, const char *text, const char **why);
/* NULL-safe: the member of that name, or NULL. */
const Json *json_member(const Json *, const char *name);
double json_number(const Json *, double otherwise);
const char *json_text(const Json *, const char *otherwise);

#endif
