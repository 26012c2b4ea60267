#!/usr/bin/env bash
# Data diversification: a model learns from the real pairs, and from what several other models make of them.
#
#   bash examples/data_diversification.sh CONFIG TRAIN DEV SOURCE TARGET [--set ...]
#
# CONFIG has the model and the training. TRAIN and DEV are plain text without the ending: TRAIN.en and TRAIN.it, if
# SOURCE is en and TARGET is it. No other text is needed. All options after TARGET are passed to every training, except
# those of data: the script replaces the section data of CONFIG.
# Two models of each direction translate; they differ in their seed. "K=3" before the command makes three, and
# "TEACHER=other.yaml" sets another config for them; the last model keeps CONFIG.
# It makes the runs forward-1 and so on, reverse-1 and so on, and diversified, and prints the scores of forward-1
# and of diversified on DEV.
# Source: Nguyen et al. 2020, "Data Diversification: A Simple Strategy For Neural Machine Translation".
set -euo pipefail
(($# >= 5)) || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
config=$1 train=$2 dev=$3 source=$4 target=$5 models=${K:-2} teacher=${TEACHER:-$1}
shift 5
[[ $models =~ ^[1-9][0-9]*$ ]] || { echo "K is the number of models of each direction, from 1; it is $models" >&2; exit 2; }

corpus() { echo "{split: $1, source_path: $2, target_path: $3}"; }
data() { echo "data={source: files, source_language: $1, target_language: $2, test_share: 0.0, corpora: [$3]}"; }

corpora="$(corpus train "$train.$source" "$train.$target")"
for number in $(seq "$models"); do
    # Each model translates the text that it was trained on.
    tfm train --config "$teacher" "$@" --set "name=forward-$number" --set "seed=$number" --set "$(data "$source" "$target" \
        "$(corpus train "$train.$source" "$train.$target"), $(corpus validation "$dev.$source" "$dev.$target")")"
    tfm translate --run "forward-$number" --input "$train.$source" --output "$train.forward-$number.$target"
    tfm train --config "$teacher" "$@" --set "name=reverse-$number" --set "seed=$number" --set "$(data "$target" "$source" \
        "$(corpus train "$train.$target" "$train.$source"), $(corpus validation "$dev.$target" "$dev.$source")")"
    tfm translate --run "reverse-$number" --input "$train.$target" --output "$train.reverse-$number.$source"
    corpora+=", $(corpus train "$train.$source" "$train.forward-$number.$target")"
    corpora+=", $(corpus train "$train.reverse-$number.$source" "$train.$target")"
done

# Pairs that are equal to a real pair, or to one of another model, are dropped as duplicates.
tfm train --config "$config" "$@" --set name=diversified \
    --set "$(data "$source" "$target" "$corpora, $(corpus validation "$dev.$source" "$dev.$target")")"

for one in forward-1 diversified; do
    echo "== $one"
    tfm validate --run "$one" --source "$dev.$source" --reference "$dev.$target"
done
