/* vec_avx2_test.c - vec_test.c, compiled for AVX2, where this machine has it. */
#include <stdio.h>

#define main vec_main
#include "vec_test.c"
#undef main

int main(void)
{
#if defined(__AVX2__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        puts("skipped: this machine has no AVX2");
        return 0;
    }
#endif
    return vec_main();
}
