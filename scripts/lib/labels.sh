# shellcheck shell=bash
# What the labels of an image say about its origin; compose.yaml takes it from the environment.

# label_images: exports the commit (with "-dirty" where files were changed since), its time, where the sources come from
# and the digest of the base image; each stays empty where it is not known. The time is the commit's, so that
# building twice gives the same image.
label_images() {
    local base=${TANK_BASE_IMAGE:-debian:bookworm-slim}
    TANK_REVISION=$(git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || true)
    TANK_CREATED=$(git log -1 --format=%cI 2>/dev/null || true)
    # Only what others can reach too; and never a name or password in the address.
    TANK_SOURCE=$(git remote get-url origin 2>/dev/null | sed -n 's#^\(https://\)\([^/@]*@\)\?#\1#p' || true)
    TANK_BASE_DIGEST=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$base" 2>/dev/null |
        sed -n '1s/.*@//p' || true)
    export TANK_REVISION TANK_CREATED TANK_SOURCE TANK_BASE_DIGEST
}
