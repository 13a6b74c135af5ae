# shellcheck shell=bash
# Values of an image's labels. compose.yaml reads them from the environment.

# label_images: exports the version, the commit (with "-dirty" if files have changed since), its time, the origin of the
# sources and the digest of the base image. Each is empty if unknown. The time is the commit's, so that building twice
# gives the same image.
label_images() {
    local base=${TANK_BASE_IMAGE:-debian:bookworm-slim}
    TANK_VERSION=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../../pufferlib/__init__.py")
    TANK_REVISION=$(git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || true)
    TANK_CREATED=$(git log -1 --format=%cI 2>/dev/null || true)
    # Only what others can reach too; and never a name or password in the address.
    TANK_SOURCE=$(git remote get-url origin 2>/dev/null | sed -n 's#^\(https://\)\([^/@]*@\)\?#\1#p' || true)
    TANK_BASE_DIGEST=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$base" 2>/dev/null |
        sed -n '1s/.*@//p' || true)
    export TANK_VERSION TANK_REVISION TANK_CREATED TANK_SOURCE TANK_BASE_DIGEST
}
