"""Extension of torch in C++. If torch was built with CUDA, it also has a kernel for the GPU."""

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

if torch.version.cuda:
    # The names differ without their suffix, because setuptools makes one object file for each name.
    sources = ["discounted.cpp", "discounted_gpu.cu"]
    extension = CUDAExtension("discounted", sources, define_macros=[("WITH_CUDA", None)])
else:
    extension = CppExtension("discounted", ["discounted.cpp"])

setup(
    name="discounted",
    version="0.1.0",
    ext_modules=[extension],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)},
)
