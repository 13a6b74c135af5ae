#include <cuda_runtime.h>

#include "discounted.h"

__global__ void discount_each(const float *rewards, const bool *ends, float *returns, int64_t steps,
                              int64_t envs, float gamma) {
    const int64_t env = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (env < envs) discount(rewards, ends, returns, steps, envs, env, gamma);
}

/* This file includes nothing of torch, so nvcc compiles it in seconds. */
void discount_on_gpu(const float *rewards, const bool *ends, float *returns, int64_t steps, int64_t envs,
                     float gamma, cudaStream_t stream) {
    const int threads = 128;
    discount_each<<<(envs + threads - 1) / threads, threads, 0, stream>>>(rewards, ends, returns, steps, envs,
                                                                          gamma);
}
