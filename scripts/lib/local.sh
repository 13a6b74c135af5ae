# shellcheck shell=bash
# Sets up a .venv with Python 3.11 in the checkout, and updates it when the sources change.

venv=$root/.venv/bin

# setup_local EXTRAS: installs pufferlib with these comma-separated extras into .venv, unless it is there already.
setup_local() {
    local extras=$1 stamp=$root/.venv/tank-stamp built='' installed='' place='' print
    if inside_image; then
        venv=/opt/venv/bin
        ! command -v tank-develop >/dev/null || step "compiling what changed" tank-develop
        return
    fi
    # A second script that starts at the same time waits here, instead of installing into the same folder. NFS locks only
    # files that are open for writing.
    if [ -w "$root/pyproject.toml" ]; then exec 9<>"$root/pyproject.toml"; else exec 9<"$root/pyproject.toml"; fi
    flock 9 || say "$root cannot be locked; do not start two scripts at once"
    print=$(fingerprint)
    if [ -f "$stamp" ]; then
        read -r built installed place <"$stamp" || true
    fi
    if [ -n "$place" ] && [ "$place" != "$root" ]; then
        say "$root/.venv was made in $place, whose paths it contains: making a new one"
        rm -rf "$root/.venv"
        built='' installed=''
    fi
    if [ "$built" != "$print" ] || ! includes "$installed" "$extras"; then
        [ -w "$root" ] || die 1 "$root cannot be written; use a checkout that belongs to you, on a writable disk"
        extras=$(tr ',' '\n' <<<"$extras,$installed" | sed '/^$/d' | sort -u | paste -sd,)
        install_local "$extras"
        echo "$print $extras $root" >"$stamp"
    fi
    exec 9<&-
    export PATH=$venv:$PATH VIRTUAL_ENV=$root/.venv
}

# Succeeds in our own containers, where everything is installed already. Only service dev has an editable package.
inside_image() { command -v tank-entrypoint >/dev/null; }

# Prints a hash that changes when pufferlib must be installed again: after a change of the build files, of C or Cython
# code, or of the names of Python modules. The contents of Python modules are read from the checkout.
fingerprint() {
    (
        cd "$root"
        find pufferlib bindings -name '*.py' | LC_ALL=C sort
        find pufferlib \( -name '*.[ch]' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.in' \) | LC_ALL=C sort | xargs -r cat
        cat pyproject.toml CMakeLists.txt
    ) | sha256sum | cut -c1-16
}

# includes HAVE WANT: succeeds if every item of the second comma-separated list is in the first.
includes() {
    local item
    for item in ${2//,/ }; do
        [[ ",$1," == *",$item,"* ]] || return 1
    done
}

install_local() {
    local extras=$1 requirements compiler
    read -ra compiler <<<"${CC:-cc}" # it may have options
    command -v "${compiler[0]}" >/dev/null ||
        die 1 "no C compiler (${CC:-cc}) to build the environments with; install one" \
            "(Debian: apt-get install gcc)$(or_docker "the image, which needs none here")"
    [ -x "$venv/pip" ] || make_venv
    "$venv/python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
        die 1 "$root/.venv is $("$venv/python" --version), but the tools of this checkout need Python 3.11;" \
            "remove that folder and run the same command again"
    install_torch
    requirements=$("$venv/python" -c "$print_build_requirements" "$root/pyproject.toml")
    # Without build isolation, the build tools stay in .venv and later builds compile only changed files.
    # shellcheck disable=SC2086 # one requirement per word
    step "installing the build tools" pip_install $requirements
    step "building pufferlib with its extras $extras" pip_install --no-build-isolation -e "${root}[$extras]"
}

print_build_requirements='import sys, tomllib
print(*tomllib.load(open(sys.argv[1], "rb"))["build-system"]["requires"])'

make_venv() {
    local python
    python=$(find_python)
    step "making .venv with $python" "$python" -m venv "$root/.venv"
}

# Prints the first Python 3.11 that can create a venv and has C headers. Exits with an error if there is none.
find_python() {
    local candidate lacks found
    found="no Python 3.11 was found (python3 is $(python3 --version 2>/dev/null || echo missing))"
    for candidate in python3.11 python3 python "$HOME"/.pyenv/versions/3.11*/bin/python3.11 \
        "$(uv python find 3.11 2>/dev/null)"; do
        lacks=$("$candidate" -c "$probe" 2>/dev/null) || continue
        if [ -z "$lacks" ]; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
        found="$candidate is Python 3.11 but lacks $lacks"
    done
    die 1 "$found; install it (Debian 12: apt-get install python3.11 python3.11-venv python3.11-dev, elsewhere:" \
        "uv python install 3.11)$(or_docker "the image, which has it")"
}

probe='import sys, os, sysconfig, importlib.util
if sys.version_info[:2] != (3, 11): sys.exit(1)
if not importlib.util.find_spec("ensurepip"): print("venv")
elif not os.path.exists(sysconfig.get_path("include") + "/Python.h"): print("its C headers")'

install_torch() {
    local torch
    torch=$(grep -o 'torch==[0-9.]*' "$root/pyproject.toml" | head -n 1)
    if "$venv/python" -c "$has_version" "${torch#*==}" 2>/dev/null; then
        return
    elif has_gpu; then
        step "installing $torch for the NVIDIA GPU found here (2.5 GB)" pip_install "$torch"
    else
        step "installing $torch for the CPU (no NVIDIA GPU that it can use)" install_torch_cpu "$torch"
    fi
}

has_version='import sys, importlib.metadata
sys.exit(importlib.metadata.version("torch").split("+")[0] != sys.argv[1])'

# Tries three sources for the CPU build: the user's pip settings, then uv, which knows PyTorch's own index (so that no
# host is named here), and last the default build of the package index. That build includes CUDA, is a download of
# 2.5 GB, and runs on a CPU just as well.
install_torch_cpu() {
    pip_install "$1+cpu" && return
    pip_install uv && uv_install --torch-backend cpu "$1" && return
    pip_install "$1"
}

pip_install() { PATH=$venv:$PATH "$venv/python" -m pip install -q --no-input --disable-pip-version-check "$@"; }

uv_install() { "$venv/uv" pip install -q --python "$venv/python" "$@"; }
