# shellcheck shell=bash
# Which of the two ways is taken, and the Docker way: whether an engine can be used, and the compose command.

# shellcheck source=lib/labels.sh
. "$root/scripts/lib/labels.sh"

# parse_way ARGUMENT...: sets `asked` to docker, local or nothing, `passed_on` to the variables of -e, and `arguments` to
# what follows these flags.
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

# Prints what stands in the way of `docker compose`: nothing ("ready"), or the reason in one word.
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

# choose_way ASKED: sets `way` to docker or local. ASKED is empty where the user left it to the script.
# An engine that is there but cannot be used is an error, because silently taking the other way would hide it.
choose_way() {
    local state=local
    [ "$1" = local ] || state=$(engine_state)
    way=docker
    case $state:$1 in
    ready:*) ;;
    local:*) way=local ;;
    denied:*)
        die 1 "a Docker engine is here, but $(id -un) may not use it; add yourself to its group" \
            "(sudo usermod -aG docker $(id -un), then log in again) or choose .venv instead: --local"
        ;;
    no-compose:*)
        die 1 "the Docker engine has no Compose; install it (sudo scripts/docker-engine) or choose .venv instead: --local"
        ;;
    *:docker) die 1 "no Docker engine answers; set one up (sudo scripts/docker-engine) or choose .venv instead: --local" ;;
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

# run_docker SERVICE ARGUMENT...: builds the service's image (quick when it is there), runs it, and ends as it does.
run_docker() {
    compose=(docker compose) flags=(--rm)
    cd "$root"
    if gpu_for_docker; then
        say "an NVIDIA GPU was found: compose.gpu.yaml is added"
        compose+=(-f compose.yaml -f compose.gpu.yaml)
        export TANK_DEVICE=cuda
    fi
    # The authorities that this machine trusts, where it has its own (a proxy that signs HTTPS).
    if [ -f "${SSL_CERT_FILE:-}" ] && ! user_sets TANK_CA; then
        export TANK_CA=$SSL_CERT_FILE
    fi
    [ -z "${PUFFER_COMMAND:-}" ] || flags+=(--env PUFFER_COMMAND)
    pass_variables
    prepare_image "$1"
    if [ -t 0 ] && [ -t 1 ]; then
        exec "${compose[@]}" --progress quiet run "${flags[@]}" "$@"
    fi
    run_unattended "$@"
}

# Adds the variables of -e, and those of trackers and model hubs, which Compose cannot name by a pattern. Folders of this
# machine (HF_HOME, WANDB_DIR, ...) are not in the container.
pass_variables() {
    local name
    for name in $(compgen -e | grep -E '^(HF|WANDB)_' | grep -Ev '_(HOME|DIR|CACHE|PATH)$') ${passed_on[@]+"${passed_on[@]}"}; do
        flags+=(--env "$name")
    done
}

# prepare_image SERVICE: builds its image, or brings it up to date.
prepare_image() {
    local config image
    config=$("${compose[@]}" config "$1") || die 1 "Compose cannot read its settings, the line above says why; see .env.example"
    image=$(sed -n '/^ *image: /{s///p;q;}' <<<"$config")
    device=$(sed -n '/^ *DEVICE: /{s///p;q;}' <<<"$config")
    [[ $device == cpu || $device == cuda ]] ||
        die 2 "TANK_DEVICE must be cpu or cuda, got $device; change it in the environment or in .env"
    label_images
    if docker image inspect "$image" >/dev/null 2>&1; then
        step "bringing the image up to date" build_image "$1"
        # What an edit has left without a name; only ours have this label.
        docker image prune --force --filter label=tank.target >/dev/null 2>&1 || true
        return
    fi
    say "building the image $image, which takes $(forecast "$1") the first time"
    fetch_parts || true
    build_image "$1" >&2 ||
        die 1 "building the image failed, the lines above say why; a full disk: docker system prune;" \
            "no network: try again later; or choose .venv instead: --local"
}

# forecast SERVICE: the time and the disk that a first build takes, as measured on 2 cores (docs/images.md).
forecast() {
    case $1:$device in
    tank:cpu) echo "about 5 minutes and 8 GB of disk" ;;
    tank:cuda) echo "about 10 minutes and 16 GB of disk" ;;
    *:cpu) echo "about 15 minutes and 12 GB of disk" ;;
    *) echo "about 20 minutes and 20 GB of disk" ;;
    esac
}

# run_unattended SERVICE ARGUMENT...: where no terminal is. There a signal ends Compose and leaves its container
# running, so that the container has a name, by which it is stopped here.
run_unattended() {
    local status=0
    container=puffertank-$1-$$-$RANDOM
    [ ! -t 0 ] || exec </dev/null # who runs in the background may not read from a terminal
    trap 'stop_container 129' HUP
    trap 'stop_container 130' INT
    trap 'stop_container 143' TERM
    # In a process group of its own: what is meant for all (Ctrl-C) ends the script alone, and Compose goes on
    # to show what the container says at its end.
    set -m
    "${compose[@]}" --progress quiet run "${flags[@]}" -T --name "$container" "$@" <&0 &
    set +m
    wait $! || status=$?
    [ "$status" -eq 0 ] || docker stop "$container" >/dev/null 2>&1 || true # left behind where Compose was killed
    exit "$status"
}

# stop_container STATUS: gives training the time to write its checkpoint, then exits.
stop_container() {
    trap - HUP INT TERM
    # Before the container has started, stopping it changes nothing: hence again. Without $! there is no client yet.
    while kill -0 "${!:-}" 2>/dev/null; do
        docker stop --time 30 "$container" >/dev/null 2>&1 || sleep 0.2
    done
    exit "$1"
}

build_image() { "${compose[@]}" build "$1" || { fetch_parts && "${compose[@]}" build "$1"; }; }

# Gets by other means what the build downloads: the base image where no container registry answers, and the CPU build
# of torch where this machine's pip settings offer it. True when there is a new wheel to build with.
fetch_parts() {
    user_sets TANK_BASE_IMAGE || docker/bootstrap-base >&2 ||
        die 1 "there is no base image; connect to a container registry, or make one as root: sudo docker/bootstrap-base"
    [ "$device" = cpu ] && ! compgen -G 'docker/wheels/cpu/*.whl' >/dev/null &&
        docker/fill-wheels >&2 2>/dev/null
}

# Where the user's own settings choose the device, nothing is added to them.
gpu_for_docker() {
    ! user_sets COMPOSE_FILE && ! user_sets TANK_DEVICE && has_gpu &&
        [[ $(docker info --format '{{json .Runtimes}}') == *nvidia* ]]
}

# Whether a setting has a value in the environment or in .env.
user_sets() { [ -n "${!1:-}" ] || grep -qs "^$1=." .env; }
