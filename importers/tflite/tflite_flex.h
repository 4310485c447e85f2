/* tflite_flex.h - numbers in the options of custom operators (tflite_flex.c). */
#ifndef TFLITE_FLEX_H
#define TFLITE_FLEX_H

#include "tflite_model.h"

typedef struct {
    const char *name;
    bool is_float;
    int64_t i;
    double f; /* the same as a float */
} TfliteNumber;

/** Those of the map, up to `most`; -1: it is no map, or broken. */
int tflite_flex_numbers(const ingot_tflite_list *options, TfliteNumber *out, int most);

#endif
