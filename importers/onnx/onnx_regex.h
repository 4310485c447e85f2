/* onnx_regex.h - regular expressions as programs for the library kernel regex_match. */
#ifndef INGOT_ONNX_REGEX_H
#define INGOT_ONNX_REGEX_H

#include "igrt_text.h"
#include "onnx.h"

/* The size of the program, in the context's memory; 0 if the pattern is none, and why. */
int regex_compile(ingot_context *, const char *pattern, const int32_t **program,
                  const char **fault);

#endif
