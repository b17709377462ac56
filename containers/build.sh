#!/bin/sh
# Builds an image from its recipe: containers/build.sh cpu|cuda|tex [arguments of `podman build`]
# Environment: DICE_ENGINE (podman or docker; default podman), PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS, PIP_CERT.
set -eu
kind=${1:-}
case $kind in
    cpu | cuda | tex) shift ;;
    *) echo "usage: containers/build.sh cpu|cuda|tex [arguments of the engine's build]" >&2; exit 2 ;;
esac
engine=${DICE_ENGINE:-podman}
if ! command -v "$engine" > /dev/null; then
    echo "$engine is not installed; install it or set DICE_ENGINE to podman or docker." >&2
    exit 1
fi
for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_CERT; do
    if printenv "$name" > /dev/null; then
        set -- --build-arg "$name=$(printenv "$name")" "$@"
    fi
done
cd "$(dirname "$0")/.."
exec "$engine" build --file "containers/$kind.Dockerfile" --tag "localhost/dice-$kind" "$@" .
