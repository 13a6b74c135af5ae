# shellcheck shell=bash
# Functions that all scripts share: messages, help, interrupts and long steps.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=${0##*/}

say() { printf '%s: %s\n' "$program" "$*" >&2; }

# die STATUS MESSAGE...: prints the message and exits.
die() {
    local status=$1
    shift
    say "$@"
    exit "$status"
}

# macOS lacks flock, timeout and a current bash.
[[ $OSTYPE == linux* ]] ||
    die 2 "the scripts need Linux, got $OSTYPE; use the image there: docker compose run --rm tank train breakout"

# Prints the help of the running script, which is the comment at its top.
show_help() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; }

# check_name NAME: exits if this is not the name of a distribution as it is written in pyproject.toml.
check_name() {
    [[ $1 =~ ^[a-z0-9]+(-[a-z0-9]+)*$ ]] ||
        die 2 "--name must be words of lower-case letters and digits with hyphens between, got $1 (--help)"
}

on_interrupt() {
    printf '\n' >&2
    die 130 "interrupted; finished steps are kept, run the same command again to continue"
}

# Handles Ctrl-C until the final command runs, which handles it itself.
trap on_interrupt INT

# or_docker WHAT: prints the end of a hint, in scripts that have the flag --docker. They set `asked` (lib/docker.sh).
or_docker() { [ -z "${asked+set}" ] || printf ' or choose %s: --docker' "$1"; }

# step LABEL COMMAND...: runs a command quietly. If it fails, prints the end of its output and a hint.
step() {
    local label=$1 start=$SECONDS output status=0
    shift
    printf '%s: %s ... ' "$program" "$label" >&2
    output=$("$@" 2>&1) || status=$?
    if [ "$status" -eq 0 ]; then
        printf '%d s\n' "$((SECONDS - start))" >&2
        return
    fi
    printf 'failed\n' >&2
    tail -n 15 <<<"$output" | sed 's/^/    /' >&2
    die 1 "$label failed: $(advice "$output")"
}

# advice OUTPUT: prints a hint for a failure with this output.
advice() {
    case $1 in
    *"No space left on device"* | *"Disk quota exceeded"*)
        echo "the disk is full; free some space (df -h shows where) and run the same command again"
        ;;
    *"Read-only file system"* | *"Permission denied"*)
        echo "a file could not be written; use a checkout that belongs to you ($(id -un)) on a writable disk"
        ;;
    *"requested access to the resource is denied"* | *"unauthorized"* | *"no basic auth credentials"* | *" denied: "*)
        echo "the container registry refused the push; log in with docker login, and check its name"
        ;;
    *"CMAKE_C_COMPILER"*)
        echo "the C compiler does not work; install one (Debian: apt-get install gcc)$(or_docker "the image")"
        ;;
    *"onnection"* | *"name resolution"* | *"dns error"* | *"timed out"* | *"No matching distribution"* | *"Could not find a version"*)
        echo "a package index did not answer or lacks a package; check the network and pip's settings" \
            "(python3 -m pip config list), then run the same command again"
        ;;
    *) echo "the lines above say why; fix the cause and run the same command again" ;;
    esac
}

# Succeeds if there is an NVIDIA GPU whose driver supports CUDA 13, which torch is built for.
has_gpu() {
    local driver
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || return
    [[ $driver =~ ^[0-9]+ ]] || return
    [ "${BASH_REMATCH[0]}" -lt 580 ] || return 0
    say "the NVIDIA driver here is $driver, and CUDA 13 needs 580 or newer: using the CPU until it is updated"
    return 1
}
