/*
 * safetensors.c - the one translation unit that holds the code of safetensors.h.
 */
#define _POSIX_C_SOURCE 200809L
#define INGOT_SAFETENSORS_IMPLEMENTATION
#include "safetensors.h"
