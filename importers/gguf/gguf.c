/* gguf.c - the one copy of gguf.h's functions inside the library. */
#define _POSIX_C_SOURCE 200809L
#define INGOT_GGUF_IMPLEMENTATION
#include "gguf.h"
