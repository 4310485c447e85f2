/* tflite.c - the one copy of tflite.h's functions inside the library. */
#define _POSIX_C_SOURCE 200809L
#define INGOT_TFLITE_IMPLEMENTATION
#include "tflite.h"
