# Sourced by table.sh and run.sh: what stands in a table's cells.

fact() {
    awk -v name="$1" '$1 == name { $1 = ""; print substr($0, 2) }' "$work/facts"
}

# cell WHAT TOOL FUNCTIONS: "12.3 (10.1)" milliseconds, or a dash.
cell() {
    local wall cpu
    wall=$(median "$1" "$2" "$3" 4) cpu=$(median "$1" "$2" "$3" 5)
    [ -n "$wall" ] || { echo "–"; return; }
    awk -v w="$wall" -v c="$cpu" 'BEGIN { printf w < 0.1 ? "%.1f (%.1f)" : "%.0f (%.0f)", w * 1000, c * 1000 }'
}

cells() { # WHAT FUNCTIONS TOOL...
    local what=$1 n=$2 tool
    shift 2
    for tool; do printf ' %s |' "$(cell "$what" "$tool" "$n")"; done
    echo
}
