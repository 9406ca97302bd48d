# The common part of the tests of perfjit check.  `load checked` makes it theirs.

# checked STATUS ARGUMENT...: text and JSON have this status, JSON is one object and says so too, and the build with sanitizers says
# the same.  Leaves them in text and json.
checked() {
    local wanted=$1
    shift
    run --separate-stderr perfjit check "$@"
    exits "$wanted"
    printf '%s\n' "$output" >text
    run --separate-stderr sanitized_perfjit check --json "$@"
    exits "$wanted"
    printf '%s\n' "$output" >json
    jq -s -e "length == 1 and (.[0] | type == \"object\" and .status == $wanted)" json >/dev/null || complain "no JSON: $output"
}

# is FILTER: it holds for the JSON.
is() {
    jq -e "$1" json >/dev/null || complain "not so: $1, in: $(jq -c . json)"
}

# A dump with each kind of record.
every_record() {
    mkdir every
    PERFJIT=dump JITDUMPDIR=$PWD/every "$BUILD/producers/every_record" 0
    mv every/jitdump-*/jit-*.dump every.dump
}
