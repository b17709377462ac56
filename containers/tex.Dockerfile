# The LaTeX image, for paper/. TeX Live is Debian 12's (2022); nothing is installed from elsewhere.
ARG BASE=docker.io/library/debian:12-slim
FROM ${BASE}

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        latexmk make texlive-fonts-recommended texlive-latex-base texlive-latex-extra texlive-latex-recommended \
    && rm -rf /var/lib/apt/lists/*
ENV LANG=C.UTF-8
