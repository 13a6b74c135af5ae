#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

/* Writes the discounted returns of one environment. All arrays have the shape (steps, envs). The CPU and the GPU
   use this function, so a test without a GPU covers it. */
ON_BOTH inline void discount(const float *rewards, const bool *ends, float *returns, int64_t steps,
                             int64_t envs, int64_t env, float gamma) {
    float sum = 0;
    for (int64_t at = (steps - 1) * envs + env; at >= 0; at -= envs) {
        sum = rewards[at] + (ends[at] ? 0 : gamma * sum);
        returns[at] = sum;
    }
}
