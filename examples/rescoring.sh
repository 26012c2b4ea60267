#!/usr/bin/env bash
# Rescoring: the best of N translations, by three models together.
#
#   bash examples/rescoring.sh RUN CONFIG TRAIN DEV INPUT SOURCE TARGET [--set ...]
#
# RUN is a trained run. CONFIG has the model and the training of two more runs: rescore-channel translates from the target
# language, and rescore-right-to-left writes a translation from its last word to its first. TRAIN, DEV and INPUT are plain
# text without the ending: TRAIN.en and TRAIN.it, if SOURCE is en and TARGET is it. Of INPUT only the source is read.
# The script writes the N best translations, INPUT.nbest.TARGET, and the chosen ones, INPUT.rescored.TARGET.
# N=10 and WEIGHTS="1 1 1" (of RUN, the channel and right to left) may be set in the environment.
# Sources: Li and Jurafsky 2016, "Mutual Information and Diverse Decoding Improve Neural Machine Translation";
# Liu et al. 2016, "Agreement on Target-bidirectional Neural Machine Translation".
set -euo pipefail
(($# >= 7)) || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
run=$1 config=$2 train=$3 dev=$4 input=$5 source=$6 target=$7
shift 7

corpus() { echo "{split: $1, source_path: $2, target_path: $3}"; }
data() { echo "data={source: files, source_language: $1, target_language: $2, test_share: 0.0, corpora: [$3]}"; }
reversed() { awk '{ for (i = NF; i > 0; i--) printf "%s%s", $i, (i > 1 ? " " : ""); print "" }' "$@"; }

for text in "$train" "$dev"; do reversed "$text.$target" > "$text.reversed.$target"; done
tfm train --config "$config" "$@" --set name=rescore-channel --set "$(data "$target" "$source" \
    "$(corpus train "$train.$target" "$train.$source"), $(corpus validation "$dev.$target" "$dev.$source")")"
tfm train --config "$config" "$@" --set name=rescore-right-to-left --set "$(data "$source" "$target" \
    "$(corpus train "$train.$source" "$train.reversed.$target"), $(corpus validation "$dev.$source" "$dev.reversed.$target")")"

# The columns of nbest: rank, score, text. A line of rank 1 belongs to the next line of the input.
nbest=$input.nbest.$target
tfm translate --run "$run" --input "$input.$source" --output "$nbest" --n-best "${N:-10}"
files=$(mktemp -d)
trap 'rm -r "$files"' EXIT
cut -f 3 "$nbest" > "$files/target"
reversed "$files/target" > "$files/reversed"
awk -F '\t' 'NR == FNR { lines[NR] = $0; next } $1 == 1 { number++ } { print lines[number] }' \
    "$input.$source" "$nbest" > "$files/source"
tfm likelihood --run "$run" --source "$files/source" --target "$files/target" > "$files/forward"
tfm likelihood --run rescore-channel --source "$files/target" --target "$files/source" > "$files/channel"
tfm likelihood --run rescore-right-to-left --source "$files/source" --target "$files/reversed" > "$files/backward"

# Each log-probability is divided by its number of tokens, so that long translations are no worse than short ones.
paste "$files/forward" "$files/channel" "$files/backward" "$nbest" | awk -F '\t' -v weights="${WEIGHTS:-1 1 1}" '
    BEGIN { split(weights, weight, " ") }
    $7 == 1 { if (NR > 1) print best; highest = "" }
    {
        score = weight[1] * $1 / $2 + weight[2] * $3 / $4 + weight[3] * $5 / $6
        if (highest == "" || score > highest) { highest = score; best = $9 }
    }
    END { if (NR > 0) print best }' > "$input.rescored.$target"
