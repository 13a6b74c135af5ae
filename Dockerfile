# Seven images. Stages that change rarely come first:
#
#   base -> torch -> deps -+-> runtime            the library and the packages for training
#                          +-> envs -> common -+-> tank    + third-party environments (the default image)
#                                              +-> notebook  + JupyterLab
#                                              +-> full -+-> tank-full   + bindings that pip alone cannot install
#                                                        +-> tools -+-> test   + compilers, test and lint tools
#                                                                   +-> dev    + debugger, git, editable package
#   base -> uv                installer and certificates
#   base -> native -> build   compiled modules, then our wheel, which is copied last into all images except dev
#   deps -> zig -> games      every Ocean game as a web page with its agent
#   deps -> site              documentation with these games as static files, which base -> docs serves
#   deps -> compilers         builds wheels for bindings whose packages have none
#
# Uses version 1.2 of the Dockerfile syntax, which engine 20.10 supports without downloading a frontend.
# docker/README.md explains the arguments, the locks and how to change an image.

ARG BASE_IMAGE=debian:bookworm-slim
ARG DEVICE=cpu

# Files of the checkout that images contain. Each folder in /recipes is copied to / as a whole, because BuildKit then gives
# the folders on the way the constant times and modes that they have here. A single file would leave its folder the time
# of the build. Copies from a stage are compared by content, and comments of lists and locks are removed, so editing a
# comment does not reinstall anything.
FROM ${BASE_IMAGE} AS recipes
WORKDIR /checkout
COPY docker/bin bin
COPY docker/apt apt
COPY docker/locks locks
COPY bindings bindings
RUN find apt locks bindings -type f -exec sed -i '/^[[:space:]]*#/d' {} + \
    && for file in apt/*.txt locks/*.txt; do install -D --mode=644 "$file" "/recipes/${file%.txt}/opt/tank/$file"; done \
    && for file in bindings/*/binding.toml bindings/*/lock.txt bindings/*/build.txt; do \
        install -D --mode=644 "$file" "/recipes/${file%/*}/opt/tank/$file"; done \
    && for file in bin/*-install bin/binding bin/finish-layer bin/slim; do \
        install -D "$file" "/recipes/$file/usr/local/s$file"; done \
    && for file in bin/tank-*; do install -D "$file" "/recipes/$file/usr/local/$file"; done \
    && find /recipes -exec touch --date=@1577836800 {} +

FROM ${BASE_IMAGE} AS base
# Our code is MIT. For the licences of packages see docs/bindings.md, /usr/share/doc and each package's metadata.
LABEL org.opencontainers.image.title="PufferTank" \
      org.opencontainers.image.licenses="MIT AND LicenseRef-third-party"
COPY --from=recipes /recipes/bin/apt-install /recipes/bin/finish-layer /recipes/bin/pip-install /recipes/bin/slim \
    /recipes/apt/base /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install base
# The entrypoint gives user tank the uid and gid of the mounted checkout's owner.
# Folders for Compose volumes are created here for tank, because the engine would create them for root.
# Group 0 can write there too, because OpenShift runs containers as arbitrary users of that group.
RUN start=$(date +%s) \
    && groupadd --gid 1000 tank \
    && SOURCE_DATE_EPOCH=1577836800 useradd --uid 1000 --gid tank --create-home --shell /bin/bash tank \
    && install --directory --owner=tank --group=0 --mode=0775 /workspace /home/tank/.cache \
    && chgrp 0 /home/tank && chmod g=u /home/tank \
    && python3 -m venv --without-pip /opt/venv \
    && finish-layer "$start"
ENV PATH=/opt/venv/bin:$PATH \
    VIRTUAL_ENV=/opt/venv \
    HOME=/home/tank \
    LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
WORKDIR /workspace
ENTRYPOINT ["tini", "-s", "--", "tank-entrypoint"]

# The installer, and the certificates that worked for the package index: the host's (secret `ca`) or the image's own.
# Only this stage uses the secret, because BuildKit 0.13 reads all files of a stage before each RUN with a secret.
FROM base AS uv
COPY --from=recipes /recipes/apt/uv /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install uv
COPY --from=recipes /recipes/locks/uv /
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    start=$(date +%s) \
    && python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --no-cache-dir --require-hashes --no-deps -r /opt/tank/locks/uv.txt \
    && cp /etc/ssl/certs/ca-certificates.crt /opt/ca.crt \
    && install -D --target-directory=/opt/image/usr/local/bin /opt/uv/bin/uv \
    && finish-layer "$start"

# Tools that strip debug symbols from packages. Later stages mount this stage.
FROM base AS strip
COPY --from=recipes /recipes/apt/strip /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install strip

# If TANK_DEVICE has another value, the build fails with the name of a missing stage. This name explains the error.
FROM base AS tank-device-one-of-cpu-cuda-is-cpu

# Driver features that the container needs: graphics for rendering MuJoCo, video for encoding. A driver that is too old
# for torch's CUDA is refused when the container starts. Without this, torch would find no GPU and train on the CPU.
FROM base AS tank-device-one-of-cpu-cuda-is-cuda
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics,video \
    NVIDIA_REQUIRE_CUDA=cuda>=13.0

FROM tank-device-one-of-cpu-cuda-is-${DEVICE} AS torch
ARG DEVICE
ENV TANK_DEVICE=${DEVICE}
# uv stays in the images, so that users can build their own images on top.
COPY --from=uv /opt/image /
COPY --from=recipes /recipes/locks/torch-${DEVICE} /
RUN --mount=type=bind,source=docker/wheels,target=/mnt/wheels \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=strip,target=/mnt/strip \
    pip-install "torch-${DEVICE}" torch triton

FROM torch AS deps
COPY --from=recipes /recipes/locks/core /
RUN --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=strip,target=/mnt/strip \
    pip-install core av fontTools kiwisolver PIL

FROM deps AS envs
COPY --from=recipes /recipes/apt/envs /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install envs
COPY --from=recipes /recipes/locks/envs /
RUN --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=strip,target=/mnt/strip \
    pip-install envs ray tensorboard_data_server
COPY --from=recipes /recipes/bin/binding /

FROM deps AS compilers
COPY --from=recipes /recipes/apt/build /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install build
COPY --from=recipes /recipes/bin/binding /

# The bindings, made by scripts/lock from bindings/*/binding.toml:
FROM compilers AS bsuite-wheels
COPY --from=recipes /recipes/bindings/bsuite /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding compile bsuite

FROM compilers AS crafter-wheels
COPY --from=recipes /recipes/bindings/crafter /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding compile crafter

FROM compilers AS textworld-wheels
COPY --from=recipes /recipes/bindings/textworld /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding compile textworld

FROM compilers AS kinetix-wheels
COPY --from=recipes /recipes/bindings/kinetix /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding compile kinetix

FROM compilers AS nmmo-wheels
COPY --from=recipes /recipes/bindings/nmmo /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding compile nmmo

FROM compilers AS minihack-wheels
COPY --from=recipes /recipes/bindings/minihack /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding compile minihack

FROM compilers AS microrts-wheels
COPY --from=recipes /recipes/bindings/microrts /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding compile microrts

FROM envs AS common

# Atari 2600
COPY --from=recipes /recipes/bindings/atari /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install atari

# bsuite
COPY --from=recipes /recipes/bindings/bsuite /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=bsuite-wheels,source=/wheels,target=/mnt/wheels \
    binding install bsuite

# DeepMind Control Suite
COPY --from=recipes /recipes/bindings/dmcontrol /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install dmcontrol

# Pokemon Red
COPY --from=recipes /recipes/bindings/pokemon_red /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=strip,target=/mnt/strip \
    binding install pokemon_red

# ViZDoom
COPY --from=recipes /recipes/bindings/vizdoom /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install vizdoom

# Box2D
COPY --from=recipes /recipes/bindings/box2d /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=strip,target=/mnt/strip \
    binding install box2d

# Butterfly (PettingZoo)
COPY --from=recipes /recipes/bindings/butterfly /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install butterfly

# Classic control
COPY --from=recipes /recipes/bindings/classic /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install classic

# Crafter
COPY --from=recipes /recipes/bindings/crafter /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=crafter-wheels,source=/wheels,target=/mnt/wheels \
    --mount=type=bind,from=strip,target=/mnt/strip \
    binding install crafter

# MAgent2
COPY --from=recipes /recipes/bindings/magent2 /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install magent2

# MiniGrid
COPY --from=recipes /recipes/bindings/minigrid /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install minigrid

# MuJoCo
COPY --from=recipes /recipes/bindings/mujoco /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install mujoco

# OpenSpiel
COPY --from=recipes /recipes/bindings/openspiel /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install openspiel

# stable-retro
COPY --from=recipes /recipes/bindings/retro /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=strip,target=/mnt/strip \
    binding install retro

# TextWorld
COPY --from=recipes /recipes/bindings/textworld /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=textworld-wheels,source=/wheels,target=/mnt/wheels \
    binding install textworld

FROM common AS full

# Craftax
COPY --from=recipes /recipes/bindings/craftax /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install craftax

# Kinetix
COPY --from=recipes /recipes/bindings/kinetix /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=kinetix-wheels,source=/wheels,target=/mnt/wheels \
    binding install kinetix

# NetHack
COPY --from=recipes /recipes/bindings/nethack /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install nethack

# Neural MMO 2
COPY --from=recipes /recipes/bindings/nmmo /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=nmmo-wheels,source=/wheels,target=/mnt/wheels \
    binding install nmmo

# Procgen
COPY --from=recipes /recipes/bindings/procgen /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install procgen

# Griddly
COPY --from=recipes /recipes/bindings/griddly /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install griddly

# MiniHack
COPY --from=recipes /recipes/bindings/minihack /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=minihack-wheels,source=/wheels,target=/mnt/wheels \
    binding install minihack

# Slime Volleyball
COPY --from=recipes /recipes/bindings/slimevolley /
RUN --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    binding install slimevolley

# MicroRTS
COPY --from=recipes /recipes/bindings/microrts /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    --mount=type=bind,from=uv,source=/opt/uv,target=/opt/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=bind,from=microrts-wheels,source=/wheels,target=/mnt/wheels \
    binding install microrts

# end of the bindings

# The C compiler for the browser. It has a folder of its own, because pip-install removes files that it needs.
FROM deps AS zig
COPY --from=recipes /recipes/locks/compiler /
RUN --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    start=$(date +%s) \
    && UV_CACHE_DIR=/var/cache/uv uv pip install --quiet --python /opt/venv/bin/python --target /opt/zig --require-hashes \
        --no-deps --no-build --link-mode copy -r /opt/tank/locks/compiler.txt \
    && rm -rf /opt/zig/bin /opt/zig/.lock /opt/zig/*.dist-info/uv_cache.json \
    && finish-layer "$start"

FROM full AS tools
COPY --from=recipes /recipes/apt/build /recipes/apt/tools /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install build tools
COPY --from=recipes /recipes/locks/tools /
RUN --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install tools
COPY --from=recipes /recipes/locks/compiler /
COPY --from=zig /opt/zig /opt/venv/lib/python3.11/site-packages

# The C and Cython sources. Copies from a stage are compared by content, so editing Python does not compile anything.
# Cython recognizes a package by its __init__.py, which may be empty.
FROM base AS sources
COPY CMakeLists.txt /sources/
COPY pufferlib /sources/pufferlib
RUN find /sources/pufferlib -type f ! -name '*.[ch]' ! -name '*.in' ! -name '*.p[yx][xd]' \
        ! -name source_hash.py ! -name cached_cython.py ! -name __init__.py -delete \
    && find /sources -name __init__.py -exec truncate --size=0 {} + \
    && find /sources -type d -empty -delete

# Compiles in an empty folder, in parallel with the stages above and without a network. ccache and Cython's cache
# (pufferlib/native/cached_cython.py) compare contents, not times, so an image never contains code that differs from its
# sources. Parallel builds share both caches, and a damaged entry is compiled again. Entries used here are copied to dev.
FROM base AS native
COPY --from=recipes /recipes/apt/build /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install build
COPY --from=uv /opt/image /
COPY --from=recipes /recipes/locks/build /
RUN --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install build
ENV CMAKE_C_COMPILER_LAUNCHER=ccache \
    CCACHE_DIR=/var/cache/ccache \
    CCACHE_NOINODECACHE=1 \
    CCACHE_MAXSIZE=500M \
    CYTHON_CACHE_DIR=/var/cache/cython \
    SOURCE_DATE_EPOCH=1577836800 \
    CC=gcc
COPY --from=sources /sources ./
RUN --mount=type=cache,target=/var/cache/ccache \
    --mount=type=cache,target=/var/cache/cython \
    touch /tmp/start \
    && cmake -S . -B /tmp/pufferlib-build -G Ninja \
    && cmake --build /tmp/pufferlib-build \
    && cmake --install /tmp/pufferlib-build --strip --prefix "$PWD" \
    && rm -r /tmp/pufferlib-build \
    && mkdir /used \
    && find "$CCACHE_DIR" "$CYTHON_CACHE_DIR" -type f ! -name stats -newer /tmp/start \
        -exec cp --parents --target-directory /used {} +

# Our wheel, with the compiled modules and the Python files. The same sources give the same bytes. uv_cache.json is
# removed because uv stores the time of the build in it.
FROM native AS build
COPY pyproject.toml README.md LICENSE ./
COPY pufferlib pufferlib
COPY bindings bindings
COPY docker/python /opt/tank/python
ENV PYC_INVALIDATION_MODE=CHECKED_HASH
RUN uv build --quiet --no-cache --wheel --offline --no-build-isolation --out-dir /dist \
        -C wheel.cmake=false -C wheel.platlib=true \
    && uv pip install --quiet --no-cache --offline --no-index --no-deps --find-links /dist --compile-bytecode \
        --link-mode copy --prefix /package pufferlib \
    && rm /package/lib/python3.11/site-packages/pufferlib-*/uv_cache.json \
    && sed -i /uv_cache.json/d /package/lib/python3.11/site-packages/pufferlib-*/RECORD \
    && cp /opt/tank/python/* /package/lib/python3.11/site-packages/ \
    && rm -f /package/.lock \
    && find /package -exec touch --date="@$SOURCE_DATE_EPOCH" {} +

FROM deps AS runtime
LABEL tank.target="runtime"
COPY --from=recipes /recipes/bin/tank-entrypoint /
COPY --from=build /package /opt/venv
USER 1000
CMD ["puffer", "train", "breakout"]

FROM common AS tank
LABEL tank.target="tank"
COPY --from=recipes /recipes/bin/tank-entrypoint /
COPY --from=build /package /opt/venv
USER 1000
CMD ["puffer", "train", "breakout"]

FROM full AS tank-full
LABEL tank.target="tank-full"
COPY --from=recipes /recipes/bin/tank-entrypoint /
COPY --from=build /package /opt/venv
USER 1000
CMD ["puffer", "train", "breakout"]

# JupyterLab beside the packages of tank. Its first line of output that starts with http has the token.
FROM common AS notebook
LABEL tank.target="notebook"
COPY --from=recipes /recipes/locks/notebook /
RUN --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install notebook
COPY --from=recipes /recipes/bin/tank-entrypoint /
COPY --from=build /package /opt/venv
USER 1000
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--allow-root"]

FROM tools AS test
LABEL tank.target="test"
COPY --from=recipes /recipes/bin/tank-entrypoint /
COPY --from=build /package /opt/venv
# This image has every binding, so a test that would skip because one is missing fails instead.
# Bytecode is kept in the cache volume. Without it, each of pytest's processes would compile all tests again. Python
# finds out by time and size whether it is outdated, so the files need their real time.
RUN find /opt/venv/lib/python3.11/site-packages/pufferlib -name '*.py' -exec touch {} +
ENV TANK_COMMAND=pytest \
    TANK_BINDINGS=all \
    PYTHONDONTWRITEBYTECODE= \
    PYTHONPYCACHEPREFIX=/home/tank/.cache/pycache
USER 1000
CMD ["pytest"]

FROM tools AS dev
LABEL tank.target="dev"
COPY --from=recipes /recipes/apt/dev /
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install dev
COPY --from=recipes /recipes/bin/tank-entrypoint /recipes/bin/tank-develop /
# Members of group venv can install packages, which tank-develop needs.
RUN groupadd venv && usermod --append --groups venv tank \
    && install --directory --group=venv --mode=2775 /var/cache/ccache /var/cache/cython \
    && find /opt/venv -type d -exec chgrp venv {} + -exec chmod g+ws {} +
# The build folder is not build/ in the checkout, which has compilers and paths of the host. It is the same folder as in
# stage native, so that the compiler commands match and ccache finds their results.
ENV SKBUILD_BUILD_DIR=/tmp/pufferlib-build \
    CMAKE_C_COMPILER_LAUNCHER=ccache \
    CCACHE_DIR=/var/cache/ccache \
    CCACHE_NOINODECACHE=1 \
    CCACHE_MAXSIZE=500M \
    CCACHE_UMASK=002 \
    CYTHON_CACHE_DIR=/var/cache/cython \
    CC=gcc
COPY pyproject.toml CMakeLists.txt README.md LICENSE /workspace/
COPY pufferlib /workspace/pufferlib
COPY bindings /workspace/bindings
# Run tank-develop again after a change of C or Cython.
RUN --mount=type=bind,from=native,source=/used,target=/mnt/used \
    umask 002 && cp -r /mnt/used/. / && chmod -R g+w "$CCACHE_DIR" "$CYTHON_CACHE_DIR" \
    && tank-develop \
    && rm -r "$SKBUILD_BUILD_DIR" /opt/venv/.lock # uv's lock is writable for everyone
USER 1000
CMD ["bash"]

# Compiles every Ocean game and its agent to WebAssembly, like scripts/web. The cache holds the C library for the web.
FROM zig AS games
ENV PYTHONPATH=/opt/zig XDG_CACHE_HOME=/var/cache/zig
COPY --from=build /package /opt/venv
WORKDIR /src
COPY scripts/lib/web_site.py scripts/lib/
COPY docs/pictures/ocean docs/pictures/ocean
RUN --mount=type=cache,target=/var/cache/zig \
    python scripts/lib/web_site.py build/web/games

# Builds the documentation like scripts/docs, with warnings as errors.
FROM deps AS site
COPY --from=recipes /recipes/locks/docs /
RUN --mount=type=cache,target=/var/cache/uv \
    --mount=type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install docs
COPY --from=build /package /opt/venv
WORKDIR /src
COPY README.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md LICENSE SECURITY.md Dockerfile compose.yaml docker-bake.hcl ./
COPY docker/README.md docker/
COPY docker/template docker/template
COPY benchmarks/requirements.txt benchmarks/
COPY pufferlib/native/puffer_env.h pufferlib/native/
COPY examples examples
COPY docs docs
COPY --from=games /src/build/web build/web
RUN python -m sphinx --quiet --fail-on-warning -c docs -d /tmp/doctrees . /site

# Contains only the pages. Debian's Python serves them.
FROM base AS docs
LABEL tank.target="docs"
COPY --from=site /site /site
USER 1000
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://localhost:8000', timeout=4)"]
ENTRYPOINT ["tini", "--"]
CMD ["python3", "-m", "http.server", "--directory", "/site", "8000"]
