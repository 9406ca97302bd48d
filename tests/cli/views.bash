# What all views say of a choice of samples, of events that count time.  `load views` makes it a test's own.

# reported FORM OPTION...: "samples ns" by report.
reported() {
    perfjit report -q --json "${@:2}" "$1" | jq -r '"\(.samples) \(.total)"'
}

# views FORM OPTION...: the same by each view, which must agree.  profiler.firefox.com has times in ms.
views() {
    local form=$1 report
    shift
    report=$(reported "$form" "$@")
    perfjit flamegraph -q "$@" -o choice.html "$form"
    same <(data choice.html | jq -r '"\(.samples.weight | length) \(.samples.weight | add)"') <(echo "$report") >&2 || return
    same <(perfjit export -q -f folded --weight period "$@" "$form" | awk '{ n += $NF } END { printf "%.0f\n", n }') <(echo "${report#* }") >&2 || return
    same <(perfjit export -q -f speedscope "$@" "$form" | jq '[.profiles[].weights[]] | add') <(echo "${report#* }") >&2 || return
    same <(perfjit export -q -f firefox "$@" "$form" | jq '[.threads[].samples.weight[]] | add * 1000000 | round') <(echo "${report#* }") >&2 || return
    same <(perfjit export -q -f callgrind "$@" "$form" | sed -n 's/^totals: //p') <(echo "${report#* }") >&2 || return
    echo "$report"
}
