# shellcheck shell=bash
# What CI does in each place: with the images, in the dev container, and in a fresh clone without Docker.

readonly cli_version=0.89.0 # of @devcontainers/cli
clone=$work/clone

# Where pip's settings on this machine offer no CPU build of torch, the images' own build looks for it.
fetch_wheel() { docker/fill-wheels || true; }

# Alone and first: its tests take longest, and it has nearly all layers that the others are made of. Of layers that
# several targets build at the same time, BuildKit keeps some under names by which the next build does not find them.
build_test_image() { docker compose --progress plain build test; }

build_images() { docker compose --progress plain --profile '*' build; }

build_cuda_image() { TANK_DEVICE=cuda docker compose --progress plain build tank; }

# fresh_clone FOLDER: what a stranger gets, and the wheel for the images.
fresh_clone() {
    git clone -q . "$1"
    cp docker/wheels/cpu/*.whl "$1/docker/wheels/cpu/" || true
}

# The command line tool never maps uid 0, so it runs as an ordinary user that the engine lets in.
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

# What depends on the way: the engine's tests, which skip in the image (docker/check has its own step), and what pip
# built and installed here: the compiled code, its processes, the modules and extras.
local_test() {
    in_clone run_local -m place --ignore tests/image/test_checks_of_a_built_image.py
}

run_local() { ./scripts/test --local -n auto --junitxml "$report.xml" "$@"; }

# With the packages of every binding in the clone: that each of them plays and draws as it does in the image.
bindings_outside() {
    TANK_BINDINGS=all in_clone run_local -k "contract or picture or microrts" tests/conformance/test_bindings.py \
        tests/bindings/test_microrts.py
}

check_images() {
    local images
    mapfile -t images < <(docker compose --profile '*' config --images)
    [[ " $steps_without " == *" cuda-image "* ]] || images+=(puffertank/tank:cuda)
    PYTEST_ADDOPTS="--junitxml $PWD/$report.xml" in_clone docker/check "${images[@]}"
}

# Only what passed with every binding and step is a base for leaving some out, and only where it is a commit.
keep_as_passed() {
    if ! grep -q . "$work"/*.broken && [ -z "$(git status --porcelain)" ]; then
        git update-ref refs/tank/ci-passed HEAD
        remember "passed whole; for fresh clones: echo $(git rev-parse HEAD) >.ci/passed, and commit it"
    fi
}
