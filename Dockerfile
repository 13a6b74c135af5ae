# What changes least comes first, and ends in four images:
#
#   base -> torch -> deps -+-> runtime                the library and what training needs
#                          +-> envs -+-> tank         + third-party environments: the default
#                                    +-> tools -+-> test   + compilers, test and lint tools
#                                               +-> dev    + debugger, git; the package is editable
#   base -> uv, build                                 installer; our wheel, copied last into runtime, tank and test
#
# Written in version 1.2 of the Dockerfile language, which engine 20.10 speaks without downloading a frontend.
# docker/README.md explains the arguments, the locks and how to add to an image.

ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BASE_IMAGE} AS base
LABEL org.opencontainers.image.title="PufferTank" \
      org.opencontainers.image.licenses="MIT"
COPY docker/bin/apt-install docker/bin/pip-install /usr/local/sbin/
COPY docker/apt/base.txt /opt/tank/apt/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install base
# The entrypoint gives user tank the uid and gid of whoever owns the mounted checkout.
# Folders that Compose mounts volumes on exist and belong to tank, else the engine makes them root's.
RUN groupadd --gid 1000 tank \
    && useradd --uid 1000 --gid tank --create-home --shell /bin/bash tank \
    && install --directory --owner=tank --group=tank /workspace /home/tank/.cache \
    && python3 -m venv --without-pip /opt/venv
# PYTHONSAFEPATH: the working folder is the checkout, and must not shadow the installed package.
ENV PATH=/opt/venv/bin:$PATH \
    HOME=/home/tank \
    LANG=C.UTF-8 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /workspace
ENTRYPOINT ["tini", "-s", "--", "tank-entrypoint"]

# The installer of every later stage. It is mounted where it is needed and lies in no image.
FROM base AS uv
COPY docker/apt/uv.txt /opt/tank/apt/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install uv
COPY docker/locks/uv.txt /opt/tank/locks/
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --no-cache-dir --require-hashes --no-deps -r /opt/tank/locks/uv.txt

FROM base AS torch
ARG DEVICE=cpu
ENV TANK_DEVICE=${DEVICE}
COPY docker/locks/torch-${DEVICE}.txt /opt/tank/locks/
RUN --mount=type=bind,from=uv,source=/opt/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=docker/wheels,target=/mnt/wheels \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install "torch-${DEVICE}"

FROM torch AS deps
COPY docker/locks/core.txt /opt/tank/locks/
RUN --mount=type=bind,from=uv,source=/opt/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install core

FROM deps AS envs
COPY docker/apt/envs.txt /opt/tank/apt/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install envs
COPY docker/locks/envs.txt /opt/tank/locks/
RUN --mount=type=bind,from=uv,source=/opt/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install envs

FROM envs AS tools
COPY docker/apt/build.txt docker/apt/tools.txt /opt/tank/apt/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install build tools
COPY docker/locks/tools.txt /opt/tank/locks/
RUN --mount=type=bind,from=uv,source=/opt/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install tools

# The wheel is built beside the stages above, from the build requirements alone and without a network.
# The cache mount keeps CMake's folder, so that a change compiles only what it touches.
FROM base AS build
COPY docker/apt/build.txt /opt/tank/apt/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install build
COPY docker/locks/build.txt /opt/tank/locks/
RUN --mount=type=bind,from=uv,source=/opt/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=cache,target=/var/cache/uv \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    pip-install build
WORKDIR /src
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY pufferlib pufferlib
COPY bindings bindings
RUN --mount=type=bind,from=uv,source=/opt/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=cache,target=/src/build \
    uv build --quiet --no-cache --wheel --offline --no-build-isolation --out-dir /dist \
    && uv pip install --quiet --no-cache --offline --no-index --no-deps --compile-bytecode --link-mode copy \
        --prefix /package /dist/*.whl

FROM deps AS runtime
LABEL tank.target="runtime"
COPY docker/bin/tank-entrypoint /usr/local/bin/
COPY --from=build /package /opt/venv
USER 1000
CMD ["puffer", "train", "breakout"]

FROM envs AS tank
LABEL tank.target="tank"
COPY docker/bin/tank-entrypoint /usr/local/bin/
COPY --from=build /package /opt/venv
USER 1000
CMD ["puffer", "train", "breakout"]

FROM tools AS test
LABEL tank.target="test"
COPY docker/bin/tank-entrypoint /usr/local/bin/
COPY --from=build /package /opt/venv
ENV TANK_COMMAND=pytest
USER 1000
CMD ["pytest"]

FROM tools AS dev
LABEL tank.target="dev"
COPY docker/apt/dev.txt /opt/tank/apt/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt,sharing=locked \
    apt-install dev
COPY docker/bin/tank-entrypoint docker/bin/tank-develop /usr/local/bin/
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY pufferlib pufferlib
COPY bindings bindings
# Compiled again by tank-develop, as any user of group venv, after a change of C or Cython; the folder is not
# the checkout's own build/, which belongs to the compilers and paths of the host.
ENV SKBUILD_BUILD_DIR=/tmp/pufferlib-build
RUN groupadd venv && usermod --append --groups venv tank \
    && tank-develop \
    && rm -r "$SKBUILD_BUILD_DIR" \
    && find /opt/venv -type d -exec chgrp venv {} + -exec chmod g+ws {} +
USER 1000
CMD ["bash"]
