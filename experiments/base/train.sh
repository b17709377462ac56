#!/bin/sh
# The tiny scale's two base models from nothing, on one GPU: block diffusion and next-token prediction, from the same pairs
# in as many steps. What they take: README.md in this folder.
#
#   OUT_DIR=trained experiments/base/train.sh [further options of dice sft]
#
# OUT_DIR gets tiny.tar.gz and tiny-ar.tar.gz, which are unpacked in this folder, and losses.txt. WORK_DIR (results/base) has
# the corpus and the runs: the same command goes on where it was interrupted. PAIRS: size of the corpus.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT_DIR:?name the folder that gets the checkpoints, as in OUT_DIR=trained experiments/base/train.sh}
work=${WORK_DIR:-$here/../../results/base}
pairs=${PAIRS:-64000}
files=16
export PYTHONPATH="$here/../../src${PYTHONPATH:+:$PYTHONPATH}"
dice() { "${PYTHON:-python3}" -m dice.cli "$@"; }
say() { echo "$(date +%H:%M:%S) $*"; }
all() { for process in $1; do wait "$process" || exit 1; done; }

mkdir -p "$out" "$work"
out=$(cd "$out" && pwd)
cd "$work"

say "corpus: $pairs pairs"
each=$((pairs / files))
written=$(seq -f pairs-%g.jsonl 0 $((files - 1)))
processes=""
for number in $(seq 0 $((files - 1))); do
    test -f "pairs-$number.jsonl" || {
        export OMP_NUM_THREADS=1
        dice synth --quiet --config "$here/tiny-corpus.yaml" --n "$each" --start $((number * each)) \
            --out "pairs-$number.jsonl" >"synth-$number.log" 2>&1 || { cat "synth-$number.log" >&2; exit 1; }
    } &
    processes="$processes $!"
done
all "$processes"
test -f tokenizer/tokenizer.json.manifest.json ||
    dice tokenizer --pairs pairs-0.jsonl --rows 4000 --vocab-size 1024 --out tokenizer

say "both models side by side; their progress is in $work/{block_diffusion,autoregressive}.log"
processes=""
for objective in block_diffusion autoregressive; do
    # shellcheck disable=SC2086 # one word for each file
    dice sft --config "$here/tiny.yaml" --objective "$objective" --pairs $written --tokenizer tokenizer \
        --out "$objective" --set tensorboard=false "$@" >"$objective.log" 2>&1 ||
        { tail -n 40 "$objective.log" >&2; exit 1; } &
    processes="$processes $!"
done
all "$processes"

rm -f losses.part
for objective in block_diffusion autoregressive; do
    case $objective in block_diffusion) name=tiny ;; *) name=tiny-ar ;; esac
    dice publish --out "$name" "$objective/model" "$objective/model.manifest.json"
    tar -czf "$out/$name.tar.gz" "$name"
    echo "$name: $(tail -n 1 "$objective.log")" >>losses.part
    awk 'NR == 1 || NR % 250 == 0' "$objective/history.jsonl" | cut -d, -f1-3 >>losses.part
done
mv losses.part "$out/losses.txt"
cat "$out/losses.txt"
say "checkpoints are in $out"
