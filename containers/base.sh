#!/bin/sh
# A Debian 12 base image without a registry: containers/base.sh NAME  (as root; needs debootstrap)
# Environment: DICE_ENGINE (podman, docker or apptainer; default podman), DEBIAN_MIRROR.
# Apptainer has no names of images: localhost/debian-base:12 is the file containers/debian-base-12.sif.
set -eu
name=${1:-}
if [ -z "$name" ]; then
    echo "usage: containers/base.sh NAME" >&2
    exit 2
fi
if [ "$(id -u)" != 0 ] || ! command -v debootstrap > /dev/null; then
    echo "this needs root and debootstrap (Debian, Ubuntu: apt-get install debootstrap)." >&2
    exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
debootstrap --variant=minbase bookworm "$folder" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
engine=${DICE_ENGINE:-podman}
if [ "$engine" = apptainer ]; then
    find "$folder/dev" -mindepth 1 -delete  # devices are the host's, and not everyone may make their nodes
    apptainer build "$(dirname "$0")/$(basename "$name" | tr : -).sif" "$folder"
else
    tar --directory "$folder" --create . | "$engine" import - "$name"
fi
