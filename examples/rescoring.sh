#!/usr/bin/env bash
# Rescoring: the best of N translations, by several models together.
#
#   bash examples/rescoring.sh INPUT SOURCE TARGET RUN [KIND:RUN:WEIGHT ...]
#
# INPUT is plain text without the ending: INPUT.en, if SOURCE is en. RUN writes the N best translations of each line,
# INPUT.nbest.TARGET. RUN itself, with weight 1, and all further runs score them; INPUT.rescored.TARGET gets the chosen ones.
# A further run is of one of these KINDs; examples/rescoring_models.sh trains one of each of the last two:
#   forward:RUN:WEIGHT         translates from SOURCE to TARGET, too
#   channel:RUN:WEIGHT         translates from TARGET to SOURCE
#   right-to-left:RUN:WEIGHT   writes a translation from its last word to its first
# N=20 before the command asks for 20 translations of each line; otherwise they are 10.
# Sources: Li and Jurafsky 2016, "Mutual Information and Diverse Decoding Improve Neural Machine Translation";
# Liu et al. 2016, "Agreement on Target-bidirectional Neural Machine Translation".
set -euo pipefail
(($# >= 4)) || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
input=$1 source=$2 target=$3 run=$4
shift 4
for judge in "$@"; do
    [[ $judge =~ ^(forward|channel|right-to-left):.+:[0-9.]+$ ]] || {
        echo "'$judge' is not forward:RUN:WEIGHT, channel:RUN:WEIGHT or right-to-left:RUN:WEIGHT" >&2
        exit 2
    }
done

# The columns of nbest: rank, score, text. A line of rank 1 belongs to the next line of the input.
nbest=$input.nbest.$target
tfm translate --run "$run" --input "$input.$source" --output "$nbest" --n-best "${N:-10}" \
    --set decoding.beam_size="${N:-10}"
files=$(mktemp -d)
trap 'rm -r "$files"' EXIT
cut -f 3 "$nbest" > "$files/target"
awk '{ for (i = NF; i > 0; i--) printf "%s%s", $i, (i > 1 ? " " : ""); print "" }' "$files/target" > "$files/reversed"
awk -F '\t' 'NR == FNR { lines[NR] = $0; next } $1 == 1 { number++ } { print lines[number] }' \
    "$input.$source" "$nbest" > "$files/source"

# Each log-probability is divided by its number of tokens, so that long translations are no worse than short ones.
mkdir "$files/scores"
for judge in "forward:$run:1" "$@"; do
    case $judge in
        forward:*) texts=(--source "$files/source" --target "$files/target") ;;
        channel:*) texts=(--source "$files/target" --target "$files/source") ;;
        right-to-left:*) texts=(--source "$files/source" --target "$files/reversed") ;;
    esac
    name=${judge#*:}
    tfm likelihood --run "${name%:*}" "${texts[@]}" |
        awk -v weight="${judge##*:}" '{ printf "%.9f\n", weight * $1 / $2 }' \
        > "$files/scores/$(find "$files/scores" -type f | wc -l)"
done
paste "$files"/scores/* | awk '{ sum = 0; for (i = 1; i <= NF; i++) sum += $i; printf "%.9f\n", sum }' |
    paste - "$nbest" | awk -F '\t' '
    $2 == 1 { if (NR > 1) print best; highest = "" }
    { if (highest == "" || $1 + 0 > highest) { highest = $1 + 0; best = $4 } }
    END { if (NR > 0) print best }' > "$input.rescored.$target"
