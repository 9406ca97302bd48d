# The table of forms in which perf records: of each, every JIT sample has the name that the program's own log has for it, and all else
# that perf says is as of the recording itself.  forms.bash tells how a form is recorded and judged.
#
# A line is: its name, as what it is recorded (all: into a file and a stream, each with -g and with --call-graph dwarf; files: the two
# files; chains: that with -g; mixed: a file with dwarf and a stream with -g; plain: the four, and both without call chains), how, and perf record's
# options.  In front of it stand the other outputs of perf that must be the same to the letter (also), and in `wide` that others' processes
# are recorded too, of which nothing is known: there only the program's own are compared, and perfjit may end with 3.  `long` has the
# program run for longer.
#
#     BUILD=$PWD/build FIGURES=1 bats -f 'lost' tests/cli/forms.bats          # FIGURES: how many samples were judged
#     BUILD=$PWD/build READER=/usr/bin/other-perf bats tests/cli/forms.bats   # another perf reads
# bats file_tags=more
load helper
load forms

setup() {
    require_perf
}

# ---- Whose samples ----

@test "forms: a program and its children"      { form plain run; }
@test "forms: -i"                              { long; form all   run -i; }
@test "forms: --per-thread"                    { long; form all   run --per-thread -T; }
@test "forms: -p"                              { form all   attaching -p PID; }
@test "forms: -t, of the main thread"          { long; form all   attaching -t PID; }
@test "forms: -a"                              { wide; form all run -a; }
@test "forms: -a -G, of a cgroup"              { wide; form mixed run -a -G /; }
@test "forms: -C 0,1"                          { wide; form all   run -C 0,1; }
@test "forms: -C 0"                            { wide; form all   one_processor -C 0; }
@test "forms: -C 0, threads made elsewhere"    { require_two_processors; wide; form all made_apart -C 0; }
@test "forms: user space alone"                { form mixed run --all-user; }

# ---- When perf records and writes ----

@test "forms: -D"                              { long; form all   run -D 100; }
@test "forms: switched on and off"             { form all   control; }
@test "forms: --switch-output"                 { form files pieces; }
@test "forms: --overwrite"                     { form files overwriting; }              # a stream of it perf itself can't read
@test "forms: snapshots"                       { form files snapshots; }
@test "forms: --tail-synthesize"               { form files run --tail-synthesize; }    # nor this
@test "forms: --tail-synthesize, -p"           { form chains leaving --tail-synthesize -p PID; }
@test "forms: lost events"                     { form all   losing; }
@test "forms: -z"                              { form all   run -z; }
@test "forms: --threads"                       { form files run --threads; }            # a directory
@test "forms: --threads -z"                    { form files run --threads -z; }
@test "forms: --aio"                           { form files run --aio=2; }
@test "forms: -m 1024, --mmap-flush"           { form mixed run -m 1024 --mmap-flush 64K; }
@test "forms: perf's own clock"                { form all   own_clock; }

# ---- Which events ----

@test "forms: two events"                      { form all   run -e cpu-clock,page-faults; }
@test "forms: -c"                              { form mixed run -e task-clock -c 250000; }
@test "forms: a group"                         { form all   run -e '{cpu-clock,task-clock}'; }
@test "forms: a group, read with its leader"   { long; form all   run -e '{cpu-clock,page-faults,context-switches}:S'; }
@test "forms: a tracepoint"                    { require_tracepoints; form all run -e cpu-clock,sched:sched_switch; }
@test "forms: a tracepoint of calls"           { require_tracepoints; form all run -e cpu-clock,syscalls:sys_enter_mmap; }
@test "forms: a tracepoint that none counts"   { require_tracepoints; form all run -e cpu-clock,kmem:mm_page_alloc; }
@test "forms: perf sched record"               { require_tracepoints; wide; also 'sched latency' 'sched timehist'; form all tool sched; }
@test "forms: perf trace record"               { require_tracepoints; also trace 'trace -s'; form all tool trace; }
@test "forms: perf lock record"                { require_tracepoints; also 'lock contention'; form all tool lock; }

# ---- What a record holds ----

@test "forms: --namespaces"                    { also 'report --no-children -g none -s cgroup_id,comm'; form all run --namespaces; }
@test "forms: --all-cgroups"                   { also 'report --no-children -g none -s cgroup,comm'; form all run --all-cgroups; }
@test "forms: --switch-events"                 { form all   run --switch-events; }
@test "forms: -s"                              { also 'report --no-children -g none -T -s comm'; form mixed run -s; }
@test "forms: addresses, pages and weights"    { form mixed run -d --phys-data --data-page-size --code-page-size -W; }
@test "forms: --sample-cpu, --sample-identifier" { also 'report --no-children -g none -s cpu,comm'; form mixed run --sample-cpu --sample-identifier; }
@test "forms: -R, registers"                   { form mixed run -R --intr-regs --user-regs; }
@test "forms: --buildid-all"                   { form mixed run --buildid-all; }
@test "forms: --buildid-mmap"                  { form mixed run --buildid-mmap; }
@test "forms: --no-buildid"                    { form mixed run --no-buildid; }

# ---- What the processes do (producers/process_lives) ----

@test "forms: 50 forks deep"                   { form all   forks 50; }
@test "forms: exec"                            { form all   exec; }
@test "forms: a pid that is used again"        { require_root; form all pid_again; }
@test "forms: two containers, --namespaces"    { require_root; form all containers --namespaces; }
@test "forms: two containers"                  { require_root; form all containers; }
@test "forms: the main thread is gone"         { form all   main_thread_gone; }
