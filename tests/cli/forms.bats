# The table of forms in which perf records.  In each, every JIT sample has the name that the program's own log has for it, and all
# other output of perf is as for the recording itself.  The steps of recording and judging are in forms.bash.
#
# Forms with a like here are in other_forms.bats.  Stored are two recordings of each row or more, make check-live records one of
# each, make check-all all: see forms_of.
#
# A line has four parts: its name, the kinds of recording, how it is recorded, and perf record's options.  The kinds are all (into
# a file and a stream, each with -g and with --call-graph dwarf), files (the two files), chains (the file with -g), mixed (a file
# with dwarf and a stream with -g), and plain (the four, and both without call chains).  In front of it stand the other outputs of
# perf that must be the same to the letter (also).  With `wide` the processes of others are recorded too, and nothing is known of
# them: only the program's own are compared, and perfjit may end with 3.  `long` has the program run for longer; `lossy` is for a
# recording that lacks records.
#
#     BUILD=$PWD/build FIGURES=1 bats -f 'lost' tests/cli/forms.bats          # FIGURES: how many samples were judged
#     BUILD=$PWD/build READER=/usr/bin/other-perf bats tests/cli/forms.bats   # another perf reads
#     BUILD=$PWD/build RECORDINGS=live BRIEF=10 bats tests/cli/forms.bats     # recorded now, as in make check-live
# bats file_tags=both
load helper
load forms

setup() {
    require_perf
}

# ---- Whose samples ----

@test "forms: a program and its children"      { form plain run; }
@test "forms: --per-thread"                    { long; form all   run --per-thread -T; }
@test "forms: -p"                              { form all   attaching -p PID; }
@test "forms: -a"                              { wide; form all run -a; }
@test "forms: -C 0, threads made elsewhere"    { require_two_processors; wide; long; form all made_apart -C 0; }

# ---- When perf records and writes ----

@test "forms: switched on and off"             { form all   control; }
@test "forms: --switch-output"                 { form files pieces; }
@test "forms: --overwrite"                     { lossy; form files overwriting; }       # a stream of it perf itself can't read
@test "forms: snapshots"                       { lossy; form files snapshots; }
@test "forms: --tail-synthesize, -p"           { form chains leaving --tail-synthesize -p PID; }
@test "forms: lost events"                     { lossy; form all losing; }
@test "forms: -z"                              { form all   run -z; }
@test "forms: --threads"                       { ties; form files run --threads; }      # a directory
@test "forms: perf's own clock"                { own_clock; form all run; }

# ---- Which events ----

@test "forms: a group, read with its leader"   { long; form all   run -e '{cpu-clock,page-faults,context-switches}:S'; }
@test "forms: a tracepoint that none counts"   { require_tracepoints; form all run -e cpu-clock,kmem:mm_page_alloc; }
@test "forms: perf sched record"               { require_tracepoints; wide; also 'sched latency' 'sched timehist'; form all tool sched; }
@test "forms: perf trace record"               { require_tracepoints; also trace 'trace -s'; form all tool trace; }
@test "forms: perf lock record"                { require_tracepoints; also 'lock contention'; form all tool lock; }

# ---- What a record holds ----

@test "forms: --namespaces"                    { also 'report --no-children -g none -s cgroup_id,comm'; form all run --namespaces; }
@test "forms: -s"                              { also 'report --no-children -g none -T -s comm'; form mixed run -s; }
@test "forms: addresses, pages and weights"    { form mixed run -d --phys-data --data-page-size --code-page-size -W; }

# ---- What the processes do (producers/process_lives) ----

@test "forms: 50 forks deep"                   { form all   forks 50; }
@test "forms: exec"                            { form all   exec; }
@test "forms: a pid that is used again"        { require_root; form all pid_again; }
@test "forms: two containers, --namespaces"    { require_root; form all containers --namespaces; }
@test "forms: the main thread is gone"         { form all   main_thread_gone; }
