# shellcheck shell=bash
# Chooses between Docker and .venv, and runs commands in Docker.

# shellcheck source=lib/labels.sh
. "$root/scripts/lib/labels.sh"

# parse_way ARGUMENT...: sets `asked` to docker, local or nothing, `passed_on` to the names given with -e, and
# `arguments` to everything after these flags.
# shellcheck disable=SC2034 # not every script reads all of them
parse_way() {
    asked='' passed_on=()
    while [ $# -gt 0 ]; do
        case $1 in
        --docker | --local) asked=${1#--} ;;
        -e | --env)
            [[ ${2:-} =~ ^[A-Za-z_][A-Za-z0-9_]*(=|$) ]] ||
                die 2 "$1 takes NAME or NAME=VALUE, got '${2:-}'; for instance: -e WANDB_API_KEY"
            passed_on+=("${2%%=*}")
            [[ $2 != *=* ]] || export "${2?}"
            shift
            ;;
        -h | --help)
            show_help
            exit 0
            ;;
        *) break ;;
        esac
        shift
    done
    arguments=("$@")
}

# Prints "ready" if `docker compose` can be used, or else the reason in one word.
engine_state() {
    local answer
    command -v docker >/dev/null || {
        echo absent
        return
    }
    if ! answer=$(timeout 20 docker version --format '{{.Server.Version}}' 2>&1); then
        [[ $answer == *"ermission denied"* ]] && echo denied || echo silent
    elif ! docker compose version >/dev/null 2>&1; then
        echo no-compose
    else
        echo ready
    fi
}

# explain_engine STATE: prints why the engine cannot be used, and what to do.
explain_engine() {
    case $1 in
    denied)
        echo "a Docker engine is here, but $(id -un) may not use it; add yourself to its group" \
            "(sudo usermod -aG docker $(id -un), then log in again)"
        ;;
    no-compose) echo "the Docker engine has no Compose; install it (sudo scripts/docker-engine)" ;;
    *) echo "no Docker engine answers; set one up (sudo scripts/docker-engine)" ;;
    esac
}

# Exits if the engine cannot be used, in scripts that have no other way.
need_engine() {
    local state
    state=$(engine_state)
    [ "$state" = ready ] || die 1 "$(explain_engine "$state")"
}

# choose_way ASKED: sets `way` to docker or local. ASKED is empty if the user did not choose. If there is an engine that
# cannot be used, this is an error, because silently using .venv would hide the problem.
choose_way() {
    local state=local
    [ "$1" = local ] || state=$(engine_state)
    way=docker
    case $state:$1 in
    ready:*) ;;
    local:*) way=local ;;
    denied:* | no-compose:* | *:docker) die 1 "$(explain_engine "$state") or choose .venv instead: --local" ;;
    *) way=local ;;
    esac
    if [ "$way" = docker ]; then
        say "using the Docker engine: docker compose run --rm $program (.venv instead: --local)"
    elif inside_image; then
        say "using what this container has"
    elif [ -n "$1" ]; then
        say "using .venv with Python 3.11 (the image instead: --docker)"
    else
        say "no Docker engine answers, so using .venv with Python 3.11 (the image instead: scripts/docker-engine, --docker)"
    fi
}

published=() # flags of `docker compose run` for ports, which a script may set

# run_docker SERVICE ARGUMENT...: builds the service's image if needed, runs it, and exits with its status.
run_docker() {
    compose=(docker compose) flags=(--rm "${published[@]}")
    cd "$root"
    if gpu_for_docker; then
        say "an NVIDIA GPU was found: compose.gpu.yaml is added"
        compose+=(-f compose.yaml -f compose.gpu.yaml)
        export TANK_DEVICE=cuda
    fi
    pass_certificates
    [ -z "${PUFFER_COMMAND:-}" ] || flags+=(--env PUFFER_COMMAND)
    pass_variables
    prepare_image "$1"
    if [ -t 0 ] && [ -t 1 ]; then
        exec "${compose[@]}" --progress quiet run "${flags[@]}" "$@"
    fi
    run_unattended "$@"
}

# Passes the certificates of this machine to builds, in case a proxy signs HTTPS traffic.
pass_certificates() {
    [ ! -f "${SSL_CERT_FILE:-}" ] || user_sets TANK_CA || export TANK_CA=$SSL_CERT_FILE
}

# Passes the variables of -e, and all HF_* and WANDB_* variables, because Compose has no patterns for names. Variables
# with folders (HF_HOME, WANDB_DIR, ...) are left out, because these folders are not in the container.
pass_variables() {
    local name
    for name in $(compgen -e | grep -E '^(HF|WANDB)_' | grep -Ev '_(HOME|DIR|CACHE|PATH)$') ${passed_on[@]+"${passed_on[@]}"}; do
        flags+=(--env "$name")
    done
}

# prepare_image SERVICE: builds the service's image, or brings it up to date. With TANK_PULL, Compose itself pulls it.
prepare_image() {
    local config image
    config=$("${compose[@]}" config "$1") || die 1 "Compose cannot read its settings, the line above says why; see .env.example"
    image=$(sed -n '/^ *image: /{s///p;q;}' <<<"$config")
    device=$(sed -n '/^ *DEVICE: /{s///p;q;}' <<<"$config")
    [[ $device == cpu || $device == cuda ]] ||
        die 2 "TANK_DEVICE must be cpu or cuda, got $device; change it in the environment or in .env"
    label_images
    ! user_sets TANK_PULL && ! pull_published "$1" || return 0
    if docker image inspect "$image" >/dev/null 2>&1; then
        step "bringing the image up to date" build_image "$1"
        # Removes images that a rebuild left without a name. The label limits this to our own images.
        docker image prune --force --filter label=tank.target >/dev/null 2>&1 || true
        return
    fi
    say "building the image $image, which takes $(forecast "$1") the first time"
    fetch_parts || true
    build_image "$1" >&2 ||
        die 1 "building the image failed, the lines above say why; a full disk: docker system prune;" \
            "no network: try again later; or choose .venv instead: --local"
}

# pull_published SERVICE: with TANK_REGISTRY, pulls the image of this commit from there. Fails if it has none, or if files
# have changed since the commit.
pull_published() {
    local tag
    user_sets TANK_REGISTRY && ! user_sets TANK_TAG || return
    if ! tag=$(release_tag "$device"); then
        say "files have changed since the last commit, so no published image fits: building one"
    elif ! TANK_TAG=$tag TANK_PULL=missing "${compose[@]}" --progress quiet pull "$1" >/dev/null 2>&1; then
        say "TANK_REGISTRY has no image of this commit ($tag), or does not answer: building one"
    else
        say "using the published image $tag"
        export TANK_TAG=$tag TANK_PULL=missing
        return
    fi
    return 1
}

# forecast SERVICE: prints the time and disk space of a first build, as measured on 2 cores (docs/build-images.md).
forecast() {
    case $1:$device in
    tank:cpu) echo "about 5 minutes and 8 GB of disk" ;;
    tank:cuda) echo "about 10 minutes and 16 GB of disk" ;;
    *:cpu) echo "about 15 minutes and 12 GB of disk" ;;
    *) echo "about 20 minutes and 20 GB of disk" ;;
    esac
}

# run_unattended SERVICE ARGUMENT...: runs a service without a terminal. Without a terminal, a signal stops Compose but
# not its container. The container therefore gets a name, and this script stops it.
run_unattended() {
    local status=0
    container=puffertank-$1-$$-$RANDOM
    [ ! -t 0 ] || exec </dev/null # a background process may not read from a terminal
    trap 'stop_container 129' HUP
    trap 'stop_container 130' INT
    trap 'stop_container 143' TERM
    # Compose gets its own process group, so that Ctrl-C only reaches this script. Compose keeps printing the output of
    # the container until it stops.
    set -m
    "${compose[@]}" --progress quiet run "${flags[@]}" -T --name "$container" "$@" <&0 &
    set +m
    wait $! || status=$?
    [ "$status" -eq 0 ] || docker stop "$container" >/dev/null 2>&1 || true # still running if Compose was killed
    exit "$status"
}

# stop_container STATUS: stops the container and exits. Training has 30 seconds to save a checkpoint.
stop_container() {
    trap - HUP INT TERM
    # Repeats, because `docker stop` has no effect before the container has started. $! is empty before Compose starts.
    while kill -0 "${!:-}" 2>/dev/null; do
        docker stop --time 30 "$container" >/dev/null 2>&1 || sleep 0.2
    done
    exit "$1"
}

build_image() { "${compose[@]}" build "$1" || { fetch_parts && "${compose[@]}" build "$1"; }; }

# Gets the base image and the CPU build of torch without the usual downloads: the base image if no container registry
# answers, and torch if this machine's pip settings offer it. Succeeds if there is a new wheel to build with.
fetch_parts() {
    user_sets TANK_BASE_IMAGE || docker/bootstrap-base >&2 ||
        die 1 "there is no base image; connect to a container registry, or build one as root: sudo docker/bootstrap-base"
    [ "$device" = cpu ] && ! compgen -G "docker/wheels/cpu/torch-$(locked_torch)-*.whl" >/dev/null &&
        docker/fill-wheels >&2 2>/dev/null
}

locked_torch() { sed -n 's/^torch==\([^ ]*\).*/\1/p' docker/locks/torch-cpu.txt; }

# Succeeds if Docker should use the GPU. If the user's settings already choose the device, they are left alone.
gpu_for_docker() {
    ! user_sets COMPOSE_FILE && ! user_sets TANK_DEVICE && has_gpu || return
    [[ $(docker info --format '{{json .Runtimes}}') != *nvidia* ]] || return 0
    say "an NVIDIA GPU was found, but the Docker engine has no NVIDIA container toolkit: using the CPU until it is installed"
    return 1
}

# Succeeds if a setting has a value in the environment or in .env.
user_sets() { [ -n "${!1:-}" ] || grep -qs "^$1=." .env; }
