/* Which of the compiled levels this processor can run. Compiled without special instructions, so that it runs everywhere. */

#include <stdint.h>

/* Raised whenever arguments or layouts of the functions change; native_kernels.py compares it. */
int32_t tfm_version(void) { return 5; }

/* 2: AVX-512 with VNNI; 1: AVX2; 0: none. */
int32_t tfm_level(void) {
    __builtin_cpu_init();
    int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512vnni");
    return has_avx2 && has_avx512 ? 2 : has_avx2 ? 1 : 0;
}
