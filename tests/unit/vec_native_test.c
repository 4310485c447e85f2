/* vec_native_test.c - vec_test.c, compiled for the ISA of this machine. */
#include "vec_test.c"
