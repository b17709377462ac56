# The LaTeX image, for paper/. TeX Live is Debian 12's (2022); nothing is installed from elsewhere.
ARG BASE=docker.io/library/debian@sha256:d5d3f9c23164ea16f31852f95bd5959aad1c5e854332fe00f7b3a20fcc9f635c
FROM ${BASE}

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        latexmk make texlive-fonts-recommended texlive-latex-base texlive-latex-extra texlive-latex-recommended \
    && rm -rf /var/lib/apt/lists/*
ENV LANG=C.UTF-8
LABEL org.opencontainers.image.title="dice-tex" \
    org.opencontainers.image.description="DICE reproduction: the paper"
