# shellcheck shell=bash
# Functions that CI runs in each place: in the images, in the dev container, and in a fresh clone without Docker.

readonly cli_version=0.89.0 # of @devcontainers/cli
clone=$work/clone

# If pip's settings on this machine offer no CPU build of torch, the build of the image downloads it.
fetch_wheel() { docker/fill-wheels || true; }

# The test image is built first and alone. Its tests take longest, and it shares most of its layers with the others. If
# several targets build the same layer at once, BuildKit may store it so that the next build does not find it.
build_test_image() { docker compose --progress plain build test; }

# One after the other, because building several images at once can fail with "inconsistent graph state"
# (moby/buildkit#2303), and has crashed the engine.
build_images() {
    local service
    for service in runtime tank tank-full notebook dev docs; do
        docker compose --progress plain build "$service" || return
    done
}

build_cuda_image() { TANK_DEVICE=cuda docker compose --progress plain build tank; }

# fresh_clone FOLDER: clones the repository as a new user would, and adds the torch wheel for the images.
fresh_clone() {
    git clone -q . "$1"
    cp docker/wheels/cpu/*.whl "$1/docker/wheels/cpu/" || true
}

# The devcontainer tool does not map uid 0, so it runs as an ordinary user in the docker group.
dev_container() {
    local checkout=$work/devcontainer name status=0
    command -v npm >/dev/null || apt-get -qq install -y --no-install-recommends nodejs npm >/dev/null
    npm install --silent --prefix "$work/cli" "@devcontainers/cli@$cli_version"
    id tank-ci >/dev/null 2>&1 || useradd --uid 12345 --create-home --groups docker tank-ci
    fresh_clone "$checkout"
    chmod 755 "$work"
    chown -R tank-ci: "$checkout"
    (cd "$checkout" && runuser -u tank-ci -- env HOME=/home/tank-ci PATH="$work/cli/node_modules/.bin:$PATH" .ci/devcontainer) ||
        status=$?
    for name in place rebuilt; do
        cp "$checkout/build/$name.xml" "$report.$name.xml" || true
    done
    return "$status"
}

local_tank() {
    fresh_clone "$clone"
    cd "$clone"
    ./scripts/tank --local train breakout --train.total-timesteps 300000
    compgen -G 'runs/*-breakout/summary.json' >/dev/null
}

in_clone() {
    report=$PWD/$report
    cd "$clone"
    "$@"
}

# Tests that depend on the installation: the Docker tests, which are skipped inside the image (docker/check has its own
# step), and the compiled code, processes, modules and extras that pip installed here.
local_test() {
    in_clone run_local -m place --ignore tests/image/test_checks_of_a_built_image.py
}

# Recipes, Slurm, the dev container template and two equal builds. dev_container has installed the tool.
nightly_image_tests() {
    apt-get -qq install -y --no-install-recommends docker-registry >/dev/null
    PATH=$work/cli/node_modules/.bin:$PATH in_clone run_modules --nightly -m "image and nightly" tests/image
}

# Wheels in clean Debian systems, and a release with its bundle.
nightly_release_tests() {
    apt-get -qq install -y --no-install-recommends docker-registry mmdebstrap qemu-user-static skopeo zstd >/dev/null
    in_clone run_modules --nightly -m nightly tests/installation
}

# Printed again at the end of the run, where it is seen. An advisory fails nothing.
known_advisories() { remember "$(.ci/advisories)"; }

# Runs each module in one process, because the tests of a module share a cluster, ports or a release.
run_modules() { run_local --dist loadfile "$@"; }

run_local() { ./scripts/test --local -n auto --junitxml "$report.xml" "$@"; }

# Checks that every binding steps and renders in the clone as it does in the image. Needs the packages of all bindings.
bindings_outside() {
    TANK_BINDINGS=all in_clone run_local -k "contract or render or (separate_process and conformance)" \
        tests/conformance/test_bindings.py tests/bindings/test_microrts.py
}

# The images have no browser. Games in pages also need the compiler for WebAssembly.
browser_tests() {
    apt-get -qq install -y --no-install-recommends chromium-headless-shell >/dev/null
    (cd "$clone" && .venv/bin/puffer install compiler)
    in_clone run_local --all -m browser tests/web
}

check_images() {
    local images
    mapfile -t images < <(docker compose --profile '*' config --images | sort -u)
    [[ " $steps_without " == *" cuda-image "* ]] || images+=(puffertank/tank:cuda)
    PYTEST_ADDOPTS="--junitxml $PWD/$report.xml" in_clone docker/check "${images[@]}"
}

# Records HEAD as a base for .ci/choose. The run must have passed with nothing left out and without local changes.
keep_as_passed() {
    if ! grep -q . "$work"/*.broken && [ -z "$(git status --porcelain)" ]; then
        git update-ref refs/tank/ci-passed HEAD
        remember "full run passed; to record it for fresh clones: echo $(git rev-parse HEAD) >.ci/passed, and commit it"
    fi
}
