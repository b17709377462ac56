#!/bin/sh
# Builds an image from its recipe: containers/build.sh cpu|cuda|tex [arguments of the engine's build]
# Environment: DICE_ENGINE (podman, docker or apptainer; default podman), PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS,
# PIP_CERT. Apptainer writes the file containers/dice-<kind>.sif, the others the image localhost/dice-<kind>.
set -eu
kind=${1:-}
case $kind in
    cpu | cuda | tex) shift ;;
    *) echo "usage: containers/build.sh cpu|cuda|tex [arguments of the engine's build]" >&2; exit 2 ;;
esac
engine=${DICE_ENGINE:-podman}
if ! command -v "$engine" > /dev/null; then
    echo "$engine is not installed; install it or set DICE_ENGINE to podman, docker or apptainer." >&2
    exit 1
fi
cd "$(dirname "$0")/.."
for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_CERT; do
    if printenv "$name" > /dev/null; then
        value=$(printenv "$name")
        if [ "$engine" = apptainer ]; then  # of the host's variables its %post sees those with this prefix
            export "APPTAINERENV_$name=$value"
        else
            set -- --build-arg "$name=$value" "$@"
        fi
    fi
done
if [ "$engine" = apptainer ]; then
    exec apptainer build "$@" "containers/dice-$kind.sif" "containers/$kind.def"
fi
exec "$engine" build --file "containers/$kind.Dockerfile" --tag "localhost/dice-$kind" "$@" .
