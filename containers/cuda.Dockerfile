# The CUDA image: NVIDIA's 13.0.1-devel-ubuntu24.04 (nvcc), Python 3.12, PyTorch for CUDA 13.0; the project's code comes from the mounted checkout.
ARG BASE=docker.io/nvidia/cuda@sha256:7d2f6a8c2071d911524f95061a0db363e24d27aa51ec831fcccf9e76eb72bc92
FROM ${BASE}

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        bubblewrap ca-certificates g++ git libpython3.12-dev make procps python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

# Package indexes are the builder's: pip reads these from the environment, and none of them stays in the image.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cu130
ARG PIP_FIND_LINKS
ARG PIP_CERT
COPY containers/cuda.lock /opt/dice.lock
RUN python3 -m venv /opt/dice \
    && /opt/dice/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /opt/dice.lock

COPY --chmod=755 containers/dice /opt/dice/bin/dice
ENV PATH=/opt/dice/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    CUDA_HOME=/usr/local/cuda \
    LANG=C.UTF-8 \
    PYTHONNOUSERSITE=1 \
    PYTHONDONTWRITEBYTECODE=1
LABEL org.opencontainers.image.title="dice-cuda" \
    org.opencontainers.image.description="DICE reproduction: training, generation, verification on a GPU"
