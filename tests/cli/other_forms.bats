# The forms of recording that have their like in forms.bats: other options of the same kind, and the same option in other company.
# The meaning of a line is explained there.
#
#     BUILD=$PWD/build bats -f 'registers' tests/cli/other_forms.bats
# bats file_tags=both
load helper
load forms

setup() {
    require_perf
}

# ---- Whose samples ----

@test "forms: -i"                              { long; form all   run -i; }
@test "forms: -t, of the main thread"          { long; form all   attaching -t PID; }
@test "forms: -a -G, of a cgroup"              { wide; form mixed run -a -G /; }
@test "forms: -C 0,1"                          { require_two_processors; wide; form all run -C 0,1; }
@test "forms: -C 0"                            { require_two_processors; wide; form all one_processor -C 0; }
@test "forms: user space alone"                { form mixed run --all-user; }

# ---- When perf records and writes ----

@test "forms: -D"                              { form all   delayed; }
@test "forms: --tail-synthesize"               { form files run --tail-synthesize; }    # a stream of it perf itself can't read
@test "forms: --threads -z"                    { form files run --threads -z; }
@test "forms: --aio"                           { form files run --aio=2; }
@test "forms: -m 1024, --mmap-flush"           { form mixed run -m 1024 --mmap-flush 64K; }

# ---- Which events ----

@test "forms: two events"                      { form all   run -e cpu-clock,page-faults; }
@test "forms: -c"                              { form mixed run -e task-clock -c 250000; }
@test "forms: a group"                         { form all   run -e '{cpu-clock,task-clock}'; }
@test "forms: a tracepoint"                    { require_tracepoints; form all run -e cpu-clock,sched:sched_switch; }
@test "forms: a tracepoint of calls"           { require_tracepoints; form all run -e cpu-clock,syscalls:sys_enter_mmap; }

# ---- What a record holds ----

@test "forms: --all-cgroups"                   { also 'report --no-children -g none -s cgroup,comm'; form all run --all-cgroups; }
@test "forms: --switch-events"                 { form all   run --switch-events; }
@test "forms: --sample-cpu, --sample-identifier" { also 'report --no-children -g none -s cpu,comm'; form mixed run --sample-cpu --sample-identifier; }
@test "forms: -R, registers"                   { form mixed run -R --intr-regs --user-regs; }
@test "forms: --buildid-all"                   { form mixed run --buildid-all; }
@test "forms: --buildid-mmap"                  { form mixed run --buildid-mmap; }
@test "forms: --no-buildid"                    { form mixed run --no-buildid; }

# ---- What the processes do (producers/process_lives) ----

@test "forms: two containers"                  { require_root; form all containers; }
