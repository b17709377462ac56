# The CPU image: everything of the environment, nothing of the project, whose code comes from the mounted checkout.
# Base: Debian 12.12, slim. Without a registry: --build-arg BASE=<image of a debootstrap folder> (docs/guides/containers.md).
ARG BASE=docker.io/library/debian@sha256:d5d3f9c23164ea16f31852f95bd5959aad1c5e854332fe00f7b3a20fcc9f635c
FROM ${BASE}

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        bubblewrap ca-certificates g++ git libpython3.11-dev make procps python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

# Package indexes are the builder's: pip reads these from the environment, and none of them stays in the image.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ARG PIP_FIND_LINKS
ARG PIP_CERT
COPY containers/cpu.lock /opt/dice.lock
RUN python3 -m venv /opt/dice \
    && /opt/dice/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /opt/dice.lock

COPY --chmod=755 containers/dice /opt/dice/bin/dice
ENV PATH=/opt/dice/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    PYTHONNOUSERSITE=1 \
    PYTHONDONTWRITEBYTECODE=1
LABEL org.opencontainers.image.title="dice-cpu" \
    org.opencontainers.image.description="DICE reproduction: data, CPU verification, scores, tables"
