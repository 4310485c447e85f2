/*
 * igrt_cpu.h - which instructions the processor has, beside those that every one of its kind has.
 *
 * A feature is a bit of a mask. A file that is compiled for a machine (-march, -mcpu) may hold the
 * instructions of IGRT_CPU_BUILT anywhere, so what is needed is asked from outside of it, by a file
 * that is compiled for any machine:
 *
 *     model.c        const uint64_t model_cpu_needs = IGRT_CPU_BUILT;                     a number,
 *                    no code
 *     model_init.c   if (igrt_cpu_lacks(model_cpu_needs)) return IGRT_ERR_FEATURE;
 *
 * On x86 CPUID tells, and XGETBV which registers the system saves; on aarch64 and 64-bit RISC-V
 * Linux, and the processor itself how large the vectors of SVE and of V are. Elsewhere nothing can
 * be asked, and nothing is lacking.
 *
 * In the lists is what compilers emit by themselves and what kernels call by name; not what needs
 * an intrinsic that no kernel has (AES, random numbers), which a virtual machine may well hide. The
 * order is the one in which they are told of: a level's largest vectors first.
 */
#ifndef IGRT_CPU_H
#define IGRT_CPU_H

#include "igrt.h"

/* X(enumerator suffix, name, what compilers define, function of CPUID (F7_1: 7, subfunction 1; F81:
 * 0x80000001), register, bit, what the system has to save). Intel's Software Developer's Manual,
 * volume 2A, CPUID; AMD64 Architecture Programmer's Manual, volume 3, appendix E. */
#define IGRT_CPU_X86_LIST(X)                                                       \
    X(AMX_TILE, "amx_tile", __AMX_TILE__, F7, EDX, 24, TILES)                      \
    X(AMX_INT8, "amx_int8", __AMX_INT8__, F7, EDX, 25, TILES)                      \
    X(AMX_BF16, "amx_bf16", __AMX_BF16__, F7, EDX, 22, TILES)                      \
    X(AVX512F, "avx512f", __AVX512F__, F7, EBX, 16, ZMM)                           \
    X(AVX512BW, "avx512bw", __AVX512BW__, F7, EBX, 30, ZMM)                        \
    X(AVX512CD, "avx512cd", __AVX512CD__, F7, EBX, 28, ZMM)                        \
    X(AVX512DQ, "avx512dq", __AVX512DQ__, F7, EBX, 17, ZMM)                        \
    X(AVX512VL, "avx512vl", __AVX512VL__, F7, EBX, 31, ZMM)                        \
    X(AVX512_VNNI, "avx512_vnni", __AVX512VNNI__, F7, ECX, 11, ZMM)                \
    X(AVX512_BF16, "avx512_bf16", __AVX512BF16__, F7_1, EAX, 5, ZMM)               \
    X(AVX512_FP16, "avx512_fp16", __AVX512FP16__, F7, EDX, 23, ZMM)                \
    X(AVX512_IFMA, "avx512_ifma", __AVX512IFMA__, F7, EBX, 21, ZMM)                \
    X(AVX512_VBMI, "avx512_vbmi", __AVX512VBMI__, F7, ECX, 1, ZMM)                 \
    X(AVX512_VBMI2, "avx512_vbmi2", __AVX512VBMI2__, F7, ECX, 6, ZMM)              \
    X(AVX512_BITALG, "avx512_bitalg", __AVX512BITALG__, F7, ECX, 12, ZMM)          \
    X(AVX512_VPOPCNTDQ, "avx512_vpopcntdq", __AVX512VPOPCNTDQ__, F7, ECX, 14, ZMM) \
    X(AVX_VNNI, "avx_vnni", __AVXVNNI__, F7_1, EAX, 4, YMM)                        \
    X(AVX_VNNI_INT8, "avx_vnni_int8", __AVXVNNIINT8__, F7_1, EDX, 4, YMM)          \
    X(AVX_VNNI_INT16, "avx_vnni_int16", __AVXVNNIINT16__, F7_1, EDX, 10, YMM)      \
    X(AVX_IFMA, "avx_ifma", __AVXIFMA__, F7_1, EAX, 23, YMM)                       \
    X(AVX_NE_CONVERT, "avx_ne_convert", __AVXNECONVERT__, F7_1, EDX, 5, YMM)       \
    X(AVX2, "avx2", __AVX2__, F7, EBX, 5, YMM)                                     \
    X(FMA, "fma", __FMA__, F1, ECX, 12, YMM)                                       \
    X(F16C, "f16c", __F16C__, F1, ECX, 29, YMM)                                    \
    X(AVX, "avx", __AVX__, F1, ECX, 28, YMM)                                       \
    X(FMA4, "fma4", __FMA4__, F81, ECX, 16, YMM)                                   \
    X(XOP, "xop", __XOP__, F81, ECX, 11, YMM)                                      \
    X(GFNI, "gfni", __GFNI__, F7, ECX, 8, XMM)                                     \
    X(SSE4_2, "sse4_2", __SSE4_2__, F1, ECX, 20, XMM)                              \
    X(SSE4_1, "sse4_1", __SSE4_1__, F1, ECX, 19, XMM)                              \
    X(SSSE3, "ssse3", __SSSE3__, F1, ECX, 9, XMM)                                  \
    X(SSE3, "sse3", __SSE3__, F1, ECX, 0, XMM)                                     \
    X(SSE4A, "sse4a", __SSE4A__, F81, ECX, 6, XMM)                                 \
    X(BMI1, "bmi1", __BMI__, F7, EBX, 3, XMM)                                      \
    X(BMI2, "bmi2", __BMI2__, F7, EBX, 8, XMM)                                     \
    X(LZCNT, "lzcnt", __LZCNT__, F81, ECX, 5, XMM)                                 \
    X(MOVBE, "movbe", __MOVBE__, F1, ECX, 22, XMM)                                 \
    X(POPCNT, "popcnt", __POPCNT__, F1, ECX, 23, XMM)                              \
    X(TBM, "tbm", __TBM__, F81, ECX, 21, XMM)                                      \
    X(APX, "apx_f", __APX_F__, F7_1, EDX, 21, APX)

/* SVE's vectors have the size that the compiler was told, and no other. */
#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 256
#define IGRT_CPU_SVE_IS_256 1
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 512
#define IGRT_CPU_SVE_IS_512 1
#endif

/* X(enumerator suffix, name, what compilers define, AT_HWCAP or AT_HWCAP2, bytes that a vector of
 * SVE has to have, bit, 0). Linux, arch/arm64/include/uapi/asm/hwcap.h. */
#define IGRT_CPU_ARM64_LIST(X)                                                   \
    X(SVE_512, "sve of 512 bits", IGRT_CPU_SVE_IS_512, HWCAP, 64, 22, 0)         \
    X(SVE_256, "sve of 256 bits", IGRT_CPU_SVE_IS_256, HWCAP, 32, 22, 0)         \
    X(SME, "sme", __ARM_FEATURE_SME, HWCAP2, 0, 23, 0)                           \
    X(SVE2, "sve2", __ARM_FEATURE_SVE2, HWCAP2, 0, 1, 0)                         \
    X(SVE, "sve", __ARM_FEATURE_SVE, HWCAP, 0, 22, 0)                            \
    X(SVE_I8MM, "svei8mm", __ARM_FEATURE_SVE_MATMUL_INT8, HWCAP2, 0, 9, 0)       \
    X(SVE_BF16, "svebf16", __ARM_FEATURE_SVE_BF16, HWCAP2, 0, 12, 0)             \
    X(I8MM, "i8mm", __ARM_FEATURE_MATMUL_INT8, HWCAP2, 0, 13, 0)                 \
    X(BF16, "bf16", __ARM_FEATURE_BF16, HWCAP2, 0, 14, 0)                        \
    X(ASIMDDP, "asimddp", __ARM_FEATURE_DOTPROD, HWCAP, 0, 20, 0)                \
    X(ASIMDFHM, "asimdfhm", __ARM_FEATURE_FP16_FML, HWCAP, 0, 23, 0)             \
    X(ASIMDHP, "asimdhp", __ARM_FEATURE_FP16_VECTOR_ARITHMETIC, HWCAP, 0, 10, 0) \
    X(ASIMDRDM, "asimdrdm", __ARM_FEATURE_QRDMX, HWCAP, 0, 12, 0)                \
    X(FCMA, "fcma", __ARM_FEATURE_COMPLEX, HWCAP, 0, 14, 0)                      \
    X(FRINT, "frint", __ARM_FEATURE_FRINT, HWCAP2, 0, 8, 0)                      \
    X(SHA3, "sha3", __ARM_FEATURE_SHA3, HWCAP, 0, 17, 0)                         \
    X(MOPS, "mops", __ARM_FEATURE_MOPS, HWCAP2, 0, 43, 0)                        \
    X(ATOMICS, "atomics", __ARM_FEATURE_ATOMICS, HWCAP, 0, 8, 0)                 \
    X(CRC32, "crc32", __ARM_FEATURE_CRC32, HWCAP, 0, 7, 0)

/* Vectors of V have at least the size that the compiler was told. */
#if defined(__riscv_v_min_vlen) && __riscv_v_min_vlen >= 512
#define IGRT_CPU_V_IS_512 1
#elif defined(__riscv_v_min_vlen) && __riscv_v_min_vlen >= 256
#define IGRT_CPU_V_IS_256 1
#endif
#if defined(__riscv_v)
#define IGRT_CPU_V_IS_THERE 1
#endif

/* The same of RISC-V, but that a vector may be longer. Linux, arch/riscv/include/uapi/asm/hwcap.h:
 * the letter of an extension. */
#define IGRT_CPU_RISCV64_LIST(X)                                            \
    X(V_512, "v with 512 bits", IGRT_CPU_V_IS_512, HWCAP, 64, 'V' - 'A', 0) \
    X(V_256, "v with 256 bits", IGRT_CPU_V_IS_256, HWCAP, 32, 'V' - 'A', 0) \
    X(V, "v", IGRT_CPU_V_IS_THERE, HWCAP, 0, 'V' - 'A', 0)

#if defined(__x86_64__) || defined(__i386__)
#define IGRT_CPU_LIST(X) IGRT_CPU_X86_LIST(X)
#elif defined(__aarch64__)
#define IGRT_CPU_LIST(X) IGRT_CPU_ARM64_LIST(X)
#elif defined(__riscv_xlen) && __riscv_xlen == 64
#define IGRT_CPU_LIST(X) IGRT_CPU_RISCV64_LIST(X)
#else
#define IGRT_CPU_LIST(X)
#endif

/* The number of a feature's bit: IGRT_CPU_AVX2, IGRT_CPU_I8MM. At most 64 on each machine. */
enum {
#define IGRT_X(id, name, macro, from, reg, bit, state) IGRT_CPU_##id,
    IGRT_CPU_LIST(IGRT_X)
#undef IGRT_X
        IGRT_CPU_COUNT
};

/* 1 of what is defined as 1, whose text is a character long; 0 of what is not defined, whose text
 * is its name. */
#define IGRT_CPU_TEXT(x) #x
#define IGRT_CPU_SPELL(value) IGRT_CPU_TEXT(value)
#define IGRT_CPU_FLAG(macro) (sizeof IGRT_CPU_SPELL(macro) == 2)
#define IGRT_CPU_BIT(id, name, macro, from, reg, bit, state) \
    | (uint64_t)IGRT_CPU_FLAG(macro) << IGRT_CPU_##id

/* Of AMX the code is the kernels' alone; emulated, it is none. */
#if defined(IGRT_EMULATE_AMX) && (defined(__x86_64__) || defined(__i386__))
#define IGRT_CPU_NOT_USED                                                  \
    (UINT64_C(1) << IGRT_CPU_AMX_TILE | UINT64_C(1) << IGRT_CPU_AMX_INT8 | \
     UINT64_C(1) << IGRT_CPU_AMX_BF16)
#else
#define IGRT_CPU_NOT_USED UINT64_C(0)
#endif

/* What the file that has this in it is compiled for: a constant expression. */
#define IGRT_CPU_BUILT ((UINT64_C(0) IGRT_CPU_LIST(IGRT_CPU_BIT)) & ~IGRT_CPU_NOT_USED)

/* Of a function: compiled for any x86-64, whatever the flags of its file. None is in a hurry: they
 * are small. */
#if defined(__GNUC__) && defined(__x86_64__)
#define IGRT_CPU_ANY \
    __attribute__((cold, target("no-sse3,no-bmi,no-bmi2,no-lzcnt,no-popcnt,no-movbe")))
#else
#define IGRT_CPU_ANY
#endif

#endif

#if defined(IGRT_FUNCTIONS) && !defined(IGRT_CPU_FUNCTIONS_H)
#define IGRT_CPU_FUNCTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the processor has and the system lets programs use; all bits where nothing can be asked. */
IGRT_CPU_ANY uint64_t igrt_cpu_features(void);

/* Which of the wanted ones cannot be used: 0, all can. Asks Linux for the tiles of AMX where they
 * are wanted: a process has to. */
IGRT_CPU_ANY uint64_t igrt_cpu_lacks(uint64_t wanted);

/* "avx512_vnni": the name of a bit, from 0; NULL after the last. */
IGRT_CPU_ANY static inline const char *igrt_cpu_name(int bit)
{
    static const char *const names[] = {
#define IGRT_X(id, name, macro, from, reg, bit, state) name,
        IGRT_CPU_LIST(IGRT_X)
#undef IGRT_X
            NULL};
    return bit < 0 || bit >= IGRT_CPU_COUNT ? NULL : names[bit];
}

/* IGRT_OK, or IGRT_ERR_FEATURE: then fault->what has the first of those that are lacking, and
 * fault->value the mask of all. */
IGRT_CPU_ANY static inline igrt_status igrt_cpu_check(uint64_t needs, igrt_fault *fault)
{
    const uint64_t lacks = igrt_cpu_lacks(needs);
    fault->what = NULL;
    fault->value = (int64_t)lacks;
    fault->least = lacks != 0; /* above greatest: what says it all */
    fault->greatest = 0;
    for (int bit = 0; bit < IGRT_CPU_COUNT && !fault->what; bit++)
        if (lacks >> bit & 1)
            fault->what = igrt_cpu_name(bit);
    return lacks ? IGRT_ERR_FEATURE : IGRT_OK;
}

#ifdef __cplusplus
}
#endif
#endif
