# LuaJIT with examples/luajit/perfjit.lua: a runtime that knows nothing of perf, logged through FFI.

# bats file_tags=test
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR"
    mkdir dumps
    PERFJIT=dump JITDUMPDIR=$PWD/dumps LD_LIBRARY_PATH=$BUILD LUA_PATH="$here/../../examples/luajit/?.lua;;" \
        record lua.data --call-graph dwarf,4096 -e cpu-clock:u \
        luajit -l perfjit "$here/../../examples/luajit/load.lua" 1 >lua.out
    perfjit inject -q -i lua.data -o lua.jit.data
    perfjit inject -q -i lua.data -o lua.kept.data --stacks keep
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

@test "perfjit.lua: the program runs as without it" {
    [ "$(cat lua.out)" = true ]
    LUA_PATH="$here/../../examples/luajit/?.lua;;" LD_LIBRARY_PATH=$BUILD run luajit -l perfjit -e 'print(1)'
    [ "$status:$output" = 0:1 ]
}

@test "perfjit.lua: traces have the names of their functions, and every stack through one is whole" {
    for form in jit kept; do
        perf script -i lua.$form.data --no-inline -F ip,sym 2>/dev/null | awk '
            BEGIN { RS = ""; FS = "\n" }
            /TRACE [0-9]+ load.lua:[0-9]+/ { all++; whole += $NF ~ / _start$/ }
            END { print "# " whole " of " all " chains are whole"; exit !(all > 100 && whole == all) }'
    done
}

@test "perfjit.lua: what jit.flush throws away is unloaded" {
    perfjit dump dumps/jitdump-*/jit-*.dump >records
    [ "$(grep -c CODE_UNLOAD records)" -gt 0 ]
}

@test "perfjit.lua: a dump that can't be opened is told, and the program goes on" {
    PERFJIT=dump JITDUMPDIR=/nonexistent LD_LIBRARY_PATH=$BUILD LUA_PATH="$here/../../examples/luajit/?.lua;;" \
        run --separate-stderr luajit -l perfjit -e 'print(1)'
    exits 0
    [ "$output" = 1 ]
    says /nonexistent
}
