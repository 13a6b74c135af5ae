# Targets of `docker buildx bake`, which builds images for several devices and processors at once:
#
#   docker buildx bake                       runtime and tank, for the CPU and for CUDA
#   docker buildx bake tank-full-cpu         one image: its service and its device
#   docker buildx bake runtime-cuda-arm64    for ARM64 (docs/images.md)
#
# Bake also reads compose.yaml. Its services define everything else: arguments, labels, certificates.

variable "TANK_REGISTRY" { default = "puffertank" }
variable "TANK_RELEASE" { default = "" } # start of tags, such as 0.3.0-

group "default" { targets = ["runtime-cpu", "runtime-cuda", "tank-cpu", "tank-cuda"] }

target "image" {
  name = "${service}-${device}"
  matrix = {
    service = ["runtime", "tank", "tank-full", "notebook", "test", "dev", "docs"]
    device  = ["cpu", "cuda"]
  }
  inherits = [service]
  args     = { DEVICE = device }
  tags     = ["${TANK_REGISTRY}/${service}:${TANK_RELEASE}${device}"]
}

# The locks have the packages of ARM64 for CUDA only. This image also runs without a GPU.
target "runtime-cuda-arm64" {
  inherits  = ["runtime-cuda"]
  platforms = ["linux/arm64"]
  tags      = ["${TANK_REGISTRY}/runtime:${TANK_RELEASE}cuda-arm64"]
}
