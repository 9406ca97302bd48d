# LuaJIT with examples/adapters/luajit/perfjit.lua: a runtime that knows nothing of perf, logged through FFI.

load helper
load perfs_names

adapter=${here%/*/*}/examples/adapters/luajit
libraries=${BUILD%/recorded}

setup_file() {
    require_perf || return 0
    [ "$RECORDINGS" = stored ] || command -v luajit >/dev/null || return 0
    cd "$BATS_FILE_TMPDIR"
    recording load record_load
    local dump
    for dump in dumps/jitdump-*/jit-*.dump dumps/jitdump-*/stage/jit-*.dump; do
        perfjit dump "$dump"
    done |
        sed -nE 's/^ *[0-9]+ +[^ ]+ +([0-9.]+) +CODE_LOAD .* name="(.*)"$/\1 \2/p' >loads
    [ -s loads ]
}

setup() {
    require_perf
    [ "$RECORDINGS" = stored ] || command -v luajit >/dev/null || skip "luajit is not installed (make setup-live)"
    cd "$BATS_FILE_TMPDIR"
}

# The tables in luajit's own file are stored.
record_load() {
    local BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR/home # which is not stored
    mkdir -p home
    cp "$(command -v luajit)" .
    mkdir dumps
    PERFJIT=dump JITDUMPDIR=$PWD/dumps LD_LIBRARY_PATH=$libraries LUA_PATH="$adapter/?.lua;;" record perf.data -F 1000 --call-graph dwarf,4096 \
        -e cpu-clock:u ./luajit -l perfjit "$adapter/load.lua" 0.6 >lua.out
    by_perf_inject
    judged_within luajit
}

# bats test_tags=live
@test "perfjit.lua: the program runs as without it" {
    [ "$(cat lua.out)" = true ]
    LUA_PATH="$adapter/?.lua;;" LD_LIBRARY_PATH=$libraries run luajit -l perfjit -e 'print(1)'
    [ "$status:$output" = 0:1 ]
}

# bats test_tags=both
@test "perfjit.lua: traces have the names of their functions, as by perf inject" {
    layouts="image kept"
    named leaf ' TRACE [0-9]+ load\.lua:[0-9]+' 200
    named chain ' TRACE [0-9]+ load\.lua:[0-9]+' 200
}

# bats test_tags=both
@test "perfjit.lua: a stack through a trace goes on in the interpreter" {
    layouts="image kept"
    named chain TRACE 200
    for form in $layouts; do
        # perfs_names has each frame's depth: behind the trace comes the interpreter, which has no name.
        awk '
            $1 == "jit" && $3 == 0 { traces++; trace = $2 }
            $1 == "other" && $3 == 1 && $2 == trace && /\/luajit$/ { whole++ }
            END { print "# " whole " of " traces " traces were entered from luajit"; exit !(traces > 200 && whole == traces) }' $form.chain
    done
}

# bats test_tags=live
@test "perfjit.lua: every stack through a trace is whole" {
    layouts="image kept"
    named chain TRACE 200
    for form in $layouts; do
        perf script -i $form.data --no-inline -F ip,sym 2>/dev/null | awk '
            BEGIN { RS = ""; FS = "\n" }
            /TRACE [0-9]+ load.lua:[0-9]+/ { all++; whole += $NF ~ / _start$/ }
            END { print "# " whole " of " all " chains are whole"; exit !(all > 100 && whole == all) }'
    done
}

@test "perfjit.lua: what jit.flush throws away is unloaded" {
    perfjit dump dumps/jitdump-*/jit-*.dump >records
    [ "$(grep -c CODE_UNLOAD records)" -gt 0 ]
}

# bats test_tags=live
@test "perfjit.lua: a dump that can't be opened is told, and the program goes on" {
    PERFJIT=dump JITDUMPDIR=/nonexistent LD_LIBRARY_PATH=$libraries LUA_PATH="$adapter/?.lua;;" \
        run --separate-stderr luajit -l perfjit -e 'print(1)'
    exits 0
    [ "$output" = 1 ]
    says /nonexistent
}

# wrong_frames AWAY INSTEAD: a copy of perfjit.lua with another line, and the load with it, into dumps-wrong.
wrong_frames() {
    mkdir wrong
    sed "s/$1/$2/" "$adapter/perfjit.lua" >wrong/perfjit.lua
    ! cmp -s wrong/perfjit.lua "$adapter/perfjit.lua" || return 1
    export PERFJIT=dump JITDUMPDIR=$PWD/wrong LD_LIBRARY_PATH=$libraries LUA_PATH="$PWD/wrong/?.lua;;"
}

@test "perfjit.lua: its frames fit the traces' code" {
    perfjit check --json dumps/jitdump-*/jit-*.dump >checked || [ $? -eq 3 ]
    jq -e '.dumps[0].frames | .wrong == 0 and .functions > 20 and .instructions > 1000' checked
    # A trace is jumped to, in the interpreter's frame.
    jq -e '.dumps[0].frames | .on_trust == .functions' checked
}

# No stack through such a trace is whole.
# bats test_tags=live
@test "perfjit.lua: a CFA that is off by the room that a trace makes for what it spills is told" {
    cd "$BATS_TEST_TMPDIR"
    wrong_frames 'trace.room = parent_room - added' 'trace.room = parent_room'
    luajit -l perfjit "$adapter/load.lua" 0.5
    unset PERFJIT JITDUMPDIR LD_LIBRARY_PATH LUA_PATH
    run --separate-stderr perfjit check wrong/jitdump-*/jit-*.dump
    exits 3
    [[ "$output" =~ "TRACE "[0-9]+" load.lua:"[0-9]+": at +0x4 ("[^\)]*"): the CFA is rsp+112 here, the frame says rsp+96" ]]
}

# A frame in no instruction of the trace: the frame in which the trace is entered.
# bats test_tags=live
@test "perfjit.lua: a CFA that is off by 16 in all traces is told by their chains" {
    cd "$BATS_TEST_TMPDIR"
    wrong_frames 'FRAME_BYTES = 96' 'FRAME_BYTES = 80'
    record wrong.data --call-graph dwarf,4096 -e cpu-clock:u luajit -l perfjit "$adapter/load.lua" 1 >out
    unset PERFJIT JITDUMPDIR LD_LIBRARY_PATH LUA_PATH
    run --separate-stderr perfjit check --chains wrong.data
    exits 3
    [[ "$output" == *"TRACE "*" load.lua:"* ]]
}

# Interpreted, and in traces: there the loop is, in a function of which no trace alone would tell.  (No %: the table of LuaJIT's
# interpreter is wrong where it calls its own function for that.)
# bats test_tags=live
@test "frames.lua: a function that asks for one has a frame on every stack, and all that a call has" {
    cd "$BATS_TEST_TMPDIR"
    cat >framed.lua <<'END'
local frames = require("frames")
local function spin(n) local x = 0 for i = 1, n do x = (x + i) * 0.5 end return x end
local inner = frames.frame(function(n, nothing) assert(nothing == nil) return spin(n), nil, "third", nil end, "inner")
local outer = frames.frame(function(n) return select("#", inner(n, nil)), inner(n) end, "outer")
local fails = frames.frame(function() error({"as it is"}) end)
local ok, err = pcall(fails)
assert(not ok and err[1] == "as it is")
local expected, stop = spin(200000), os.clock() + tonumber(arg[1])
repeat
    local count, x, nothing, third = outer(200000)
    assert(count == 4 and x == expected and nothing == nil and third == "third")
until os.clock() > stop
print(frames.frame(inner) ~= inner)
END
    export LD_LIBRARY_PATH=$libraries LUA_PATH="$adapter/?.lua;;"
    [ "$(luajit framed.lua 0)" = false ]
    for jit in on off; do
        PERFJIT=dump JITDUMPDIR=$PWD record framed.data --call-graph dwarf,16384 -e cpu-clock:u luajit -j$jit framed.lua 0.6 >out
        [ "$(cat out)" = true ]
        env -u LD_LIBRARY_PATH -u LUA_PATH "$BUILD/perfjit" inject -q -i framed.data
        perf script -i framed.jit.data --no-inline -F ip,sym 2>/dev/null | awk '
            BEGIN { RS = ""; FS = "\n" }
            { names = ""
              for (i = 1; i <= NF; i++)
                  if (match($i, / (inner|outer|lua_pcall)$/))
                      names = names substr($i, RSTART + 1) ";"
              all++
              right += names ~ /^inner;outer;lua_pcall;/ && $NF ~ / _start$/ }
            END { print "# " right " of " all " chains have both"; exit !(all > 100 && right > 0.9 * all) }' >&3
    done
}
