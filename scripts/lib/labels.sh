# shellcheck shell=bash
# Sets the values of the image labels, which compose.yaml reads from the environment.

# label_images: exports the version, the commit (with "-dirty" if files have changed since), the time of the commit, the
# URL of the repository and the digest of the base image. A value is empty if it is unknown. The label has the commit's
# time instead of the current time, so that two builds give the same image. TANK_LOCKS is the hash of all locked packages.
label_images() {
    local base=${TANK_BASE_IMAGE:-debian:bookworm-slim}
    TANK_VERSION=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../../pufferlib/__init__.py")
    TANK_REVISION=$(git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || true)
    if [[ $TANK_REVISION =~ ^[0-9a-f]+$ && $(git ls-files --others --exclude-standard -- bindings docker pufferlib) ]]; then
        TANK_REVISION+=-dirty # new files, which an image would contain
    fi
    TANK_CREATED=$(git log -1 --format=%cI 2>/dev/null || true)
    # Only public https URLs, without a user name or password.
    TANK_SOURCE=$(git remote get-url origin 2>/dev/null | sed -n 's#^\(https://\)\([^/@]*@\)\?#\1#p' || true)
    TANK_BASE_DIGEST=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$base" 2>/dev/null |
        sed -n '1s/.*@//p' || true)
    TANK_LOCKS=$(hash_locks)
    export TANK_VERSION TANK_REVISION TANK_CREATED TANK_SOURCE TANK_BASE_DIGEST TANK_LOCKS
}

# hash_locks: prints a hash of the locks of Python packages and the lists of Debian packages.
hash_locks() {
    (cd "$(dirname "${BASH_SOURCE[0]}")/../.." && LC_ALL=C &&
        { cat docker/locks/*.txt docker/apt/*.txt bindings/*/*.txt 2>/dev/null || true; }) | sha256sum | cut -c1-12
}

# release_tag DEVICE: prints the tag of published images of this commit: its version, commit, locks and device. Needs
# label_images. Fails if files have changed since the commit.
release_tag() {
    [[ $TANK_REVISION =~ ^[0-9a-f]{40}$ ]] && echo "$TANK_VERSION-${TANK_REVISION:0:12}-$TANK_LOCKS-$1"
}
