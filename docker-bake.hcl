# Targets of `docker buildx bake`, which builds images for several devices at once:
#
#   docker buildx bake                  runtime and tank, for the CPU and for CUDA
#   docker buildx bake tank-full-cpu    one image: its service and its device
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
  # For --push, if the builder can. An engine with the overlay2 image store pushes layers with gzip.
  output   = ["type=image,oci-mediatypes=true,compression=zstd,compression-level=9,force-compression=true"]
}
