#!/usr/bin/env bats
# gdb at every instruction of compiled code, by perfjit gdb and by what the process has registered itself: the chain of return
# addresses, and a name in each frame.
#
# The judge steps along: a call that pushed its return address begins a frame, and a return ends one.
# bats file_tags=live
load helper

setup() {
    cd "$BATS_TEST_TMPDIR"
}

write_steps() {
    cat >step.py <<'END'
# The file sourced before has a table of the compiled code, is_named for a frame, and go_to_code.
import gdb

def reg(name):
    return int(gdb.parse_and_eval("(long)$" + name)) & (2**64 - 1)

def words(addr, count):
    return bytes(gdb.selected_inferior().read_memory(addr, count))

def is_ours(pc):
    return table.function_at(pc) is not None

gdb.execute("set pagination off")
go_to_code()

# The chain to begin with: by name from the script, with the return address into C at its end.
frame, returns, chain = gdb.newest_frame(), [], []
while is_ours(frame.pc()):
    chain.append(frame.name())
    frame = frame.older()
    returns.append(frame.pc())
print("begins in: " + " ".join(chain))
returns.reverse()

steps = wrong = outside = 0
places, functions, deepest = set(), set(), 0
while returns:
    pc, sp = reg("pc"), reg("sp")
    if not is_ours(pc):  # C: until it has returned
        outside += 1
        gdb.execute("tbreak *0x%x" % returns.pop(), False, True)
        gdb.execute("continue", False, True)
        continue
    frame = gdb.newest_frame()
    right = is_named(frame, pc)
    for wanted in reversed(returns):
        frame = frame.older() if frame else None
        right = right and frame is not None and frame.pc() == wanted
        right = right and (not is_ours(wanted) or is_named(frame, wanted - 1))
    steps += 1
    wrong += not right
    if not right and wrong <= 3:
        print("wrong at 0x%x: %s" % (pc, gdb.execute("bt 12", False, True)))
    places.add(pc)
    functions.add(table.function_at(pc)[0])
    deepest = max(deepest, len(returns))
    returned = words(pc, 1) == b"\xc3"
    gdb.execute("stepi", False, True)
    after = reg("sp")
    if returned:
        if reg("pc") != returns.pop():
            print("the judge: a return to somewhere else")
    elif after == sp - 8:
        ret = int.from_bytes(words(after, 8), "little")
        if 0 < ret - pc <= 7 and not 0 <= reg("pc") - pc <= 7:
            returns.append(ret)
print("steps: %d wrong: %d places: %d functions: %d deepest: %d outside: %d" % (steps, wrong, len(places), len(functions), deepest, outside))
gdb.execute("kill", False, True)
END
    cat >attached.py <<'END'
# perfjit_gdb.py was read before: its table is the one.
import gdb

def is_named(frame, pc):
    return frame.name().startswith("tj::")

def go_to_code():
    gdb.execute("break native_mix", False, True)
    gdb.execute("continue", False, True)
    gdb.execute("return (long)0", False, True)
    gdb.execute("delete", False, True)
END
    cat >registered.py <<'END'
# gdb knows what the process has registered; the table is tinyjit's own log.
import bisect, gdb, os

class Table:
    size = 0

    def read(self):
        self.size = os.path.getsize("truth")
        code = {}
        for line in open("truth"):
            if line.startswith("#"):
                continue
            what, addr, rest = line.split(None, 3)[1:]
            addr = int(addr, 16)
            if what == "unload":
                del code[addr]
                continue
            if what == "move":
                del code[addr]
                addr, rest = rest.split(None, 1)
                addr = int(addr, 16)
            size, name = rest.split(None, 1)
            code[addr] = int(size), name.strip()
        self.functions = sorted((start, start + size, name) for start, (size, name) in code.items())
        self.starts = [function[0] for function in self.functions]

    def function_at(self, pc):
        if os.path.getsize("truth") != self.size:
            self.read()
        at = bisect.bisect_right(self.starts, pc) - 1
        return self.functions[at] if at >= 0 and pc < self.functions[at][1] else None

table = Table()

def is_named(frame, pc):
    return frame.name() == table.function_at(pc)[2]

def go_to_code():
    frame = gdb.newest_frame()
    while not table.function_at(frame.pc()):
        frame = frame.older()
    gdb.execute("tbreak *0x%x" % frame.pc(), False, True)
    gdb.execute("continue", False, True)
END
}

# are_right TIER N [OPTION...]: what step.py said of a script of N functions.
are_right() {
    local functions=$2
    grep -xF 'begins in: tj::wait'" [$1] tj::main [$1] tj::[stub] enter" steps || complain "$(tail -20 steps)"
    [[ $(grep ^steps: steps) =~ ^steps:\ ([0-9]+)\ wrong:\ 0\ places:\ ([0-9]+)\ functions:\ ([0-9]+) ]] || complain "$(grep -A12 wrong steps)"
    echo "# $functions functions, ${*:3}: ${BASH_REMATCH[0]}" >&3
    [ "${BASH_REMATCH[1]}" -ge $((functions * 30)) ]
    [ "${BASH_REMATCH[2]}" -ge $((functions * 15)) ]
    [ "${BASH_REMATCH[3]}" -ge "$functions" ]
    [ "$(grep -c 'the judge' steps)" = 0 ]
}

# steps_are_right TIER N [OPTION...]: in a script of N functions.
steps_are_right() {
    local tier=$1 functions=$2
    script_of_functions "$functions" >script.tj
    write_steps
    PERFJIT=dump JITDUMPDIR=$PWD "$BUILD/tinyjit" --no-inline "${@:3}" script.tj >/dev/null 2>&1 3>&- &
    await_use $! 100
    perfjit gdb -p $! -- --batch -ex 'source attached.py' -ex 'source step.py' >steps 2>&1
    wait $! || true
    are_right "$tier" "$functions" "${@:3}"
}

# registered_steps_are_right TIER N [OPTION...]: the same with nothing but gdb and what the process registers.
registered_steps_are_right() {
    script_of_functions "$2" "return native_mix(777);" >script.tj
    write_steps
    PERFJIT=gdb gdb -q --batch -ex run -ex 'source registered.py' -ex 'source step.py' --args \
        "$BUILD/tinyjit" --stop 777 --truth truth --no-inline "${@:3}" script.tj >steps 2>&1
    are_right "$@"
}

@test "gdb: the chain at every instruction of ten functions without a frame pointer" {
    steps_are_right tier1 10 --no-tier2 --no-frame-pointer
}

# bats test_tags=all
@test "gdb: the chain at every instruction of 200 functions, in both tiers" {
    steps_are_right tier1 200 --no-tier2
    steps_are_right tier1 200 --no-tier2 --no-frame-pointer
    steps_are_right tier2 200 --tier2-after 0
}

@test "gdb by what is registered: the chain at every instruction of ten functions without a frame pointer" {
    registered_steps_are_right tier1 10 --no-tier2 --no-frame-pointer
}

@test "... of ten functions that are compiled again and moved meanwhile" {
    registered_steps_are_right tier1 10 --tier2-after 1 --compact-every 1
    [ "$(grep -c '^[0-9]* move ' truth)" -ge 5 ]
}

# bats test_tags=all
@test "gdb by what is registered: the chain at every instruction of 200 functions, in both tiers" {
    registered_steps_are_right tier1 200 --no-tier2
    registered_steps_are_right tier1 200 --no-tier2 --no-frame-pointer
    registered_steps_are_right tier2 200 --tier2-after 0
}
