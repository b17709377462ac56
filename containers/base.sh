#!/bin/sh
# A Debian 12 base image without a registry: containers/base.sh NAME  (as root; needs debootstrap)
# Environment: DICE_ENGINE (podman or docker; default podman), DEBIAN_MIRROR.
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
tar --directory "$folder" --create . | "${DICE_ENGINE:-podman}" import - "$name"
