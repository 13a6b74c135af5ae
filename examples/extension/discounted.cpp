#include "discounted.h"

#include <torch/extension.h>
#ifdef WITH_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

void discount_on_gpu(const float *rewards, const bool *ends, float *returns, int64_t steps, int64_t envs,
                     float gamma, cudaStream_t stream);
#endif

/* Returns the discounted sum of rewards from each step to the end of its episode. */
torch::Tensor discounted(torch::Tensor rewards, torch::Tensor ends, double gamma) {
    TORCH_CHECK(rewards.dim() == 2 && rewards.scalar_type() == torch::kFloat32,
                "rewards must be float32 (steps, envs), got ", rewards.scalar_type(), " ", rewards.sizes());
    TORCH_CHECK(ends.sizes() == rewards.sizes() && ends.scalar_type() == torch::kBool, "ends must be bool ",
                rewards.sizes(), ", got ", ends.scalar_type(), " ", ends.sizes());
    TORCH_CHECK(ends.device() == rewards.device(), "rewards are on ", rewards.device(), ", ends on ",
                ends.device());
    rewards = rewards.contiguous();
    ends = ends.contiguous();
    const int64_t steps = rewards.size(0), envs = rewards.size(1);
    torch::Tensor returns = torch::empty_like(rewards);
    if (returns.numel() == 0) return returns;
    const float *rewards_data = rewards.const_data_ptr<float>();
    const bool *ends_data = ends.const_data_ptr<bool>();
    float *returns_data = returns.mutable_data_ptr<float>();
    if (rewards.is_cuda()) {
#ifdef WITH_CUDA
        const c10::cuda::CUDAGuard guard(rewards.device());
        discount_on_gpu(rewards_data, ends_data, returns_data, steps, envs, gamma,
                        c10::cuda::getCurrentCUDAStream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        return returns;
#endif
    }
    TORCH_CHECK(rewards.is_cpu(), "this build has no kernel for ", rewards.device());
    for (int64_t env = 0; env < envs; env++)
        discount(rewards_data, ends_data, returns_data, steps, envs, env, gamma);
    return returns;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.def("discounted", &discounted);
}
