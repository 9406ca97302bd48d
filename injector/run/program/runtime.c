/* See runtime.h.  The switches are the runtimes' own; their outputs are in the comments.
 *
 * Dumps of V8 go to the working directory, those of PHP, CPython, Erlang and Mono to /tmp, and none
 * of them can be told another place by its environment: left_over.h removes them. */
#include "injector/run/program/runtime.h"

#include "injector/run/program/node_reach.h"

#include <string.h>

#define SET(variable, text)                                                                        \
    {                                                                                              \
        SWITCH_SET, variable, text, 0, false, false                                                \
    }
#define APPEND(variable, text)                                                                     \
    {                                                                                              \
        SWITCH_APPEND, variable, text, ' ', false, false                                           \
    }

/* A perf map: each version has that, and an unknown option ends it. */
static const struct runtime older_mono = {.name = "mono",
                                          .switches = {APPEND("MONO_ENV_OPTIONS", "--jitmap")}};

#define PREPEND(variable, text)                                                                    \
    {                                                                                              \
        SWITCH_PREPEND, variable, text, ' ', false, false                                          \
    }

/* V8 tells of deopts in its code log only if it also traces them: to the program's standard output,
 * or to a file, which it opens at each deopt.  It ends the program where it can't (node 20, 24). */
#define DEOPT_WORDS "--log-deopt", "--redirect-code-traces", "--redirect-code-traces-to=%d/traces"

/* V8's code log has the calls that it inlined, and the text of scripts that are compiled in memory.
 * Each isolate writes a file of its own, whose name begins with its address.  NODE_OPTIONS refuses
 * these (node 20, 22 and 24). */
#define NODE_REACH "node/reach.js"
#define NODE_CODE_LOG                                                                              \
    .files = {{NODE_REACH, node_reach}}, .alone_programs = {"node", "nodejs"},                     \
    .alone_words = {"--log-code", "--log-source-code", "--logfile=%d/v8-%p.log",                   \
                    "--require=%c/" NODE_REACH},                                                   \
    .deopt_words = {DEOPT_WORDS}

#define ARGUMENT(text)                                                                             \
    {                                                                                              \
        SWITCH_ARGUMENT, NULL, text, 0, false, false                                               \
    }

/* NODE_OPTIONS refuses the places (node 20 and 24), so these are arguments; its workers and what it
 * forks have them.  V8 knows --perf-prof-path since 11.8, node since 22.  There is no perf map: if
 * the user is another one, it would not be trusted. */
static const struct runtime node_elsewhere = {
    .name = "node",
    .switches = {ARGUMENT("--perf-prof"),
                 ARGUMENT("--interpreted-frames-native-stack"),
                 ARGUMENT("--perf-prof-path=%d"),
                 {SWITCH_ARGUMENT, NULL, "--perf-prof-unwinding-info", 0, true, false}},
    NODE_CODE_LOG,
    .try_first = "--perf-prof-path=/tmp"};

/* Ruby refuses both JITs at once. */
static const struct runtime zjit_ruby = {
    .name = "ruby",
    .switches = {{SWITCH_APPEND, "RUBYOPT", "--zjit-perf", ' ', false, true}},
    .needs = "Ruby 4.0 or later with ZJIT",
    .try_first = "--zjit-perf"};

#define DENO_DEOPT_WORDS                                                                           \
    {                                                                                              \
        "--log-deopt,--redirect-code-traces,--redirect-code-traces-to=%d/traces"                   \
    }

/* DENO_V8_FLAGS takes any of V8's (11.8, Deno 1.37). */
static const struct runtime deno_elsewhere = {
    .name = "deno",
    .switches = {{SWITCH_APPEND, "DENO_V8_FLAGS",
                  "--perf-prof,--interpreted-frames-native-stack,--perf-prof-path=%d,"
                  "--log-code,--log-source-code,--logfile=%d/v8-%p.log",
                  ',', false, false}},
    .deopt_words = DENO_DEOPT_WORDS,
    .needs = "Deno 1.37 or later"};

const struct runtime runtimes[] = {
    /* V8 logs to jit-PID.dump, of which it loses the last 2 MiB if a signal ends it: the map, which
     * it writes line by line, has them.  Node reads NODE_OPTIONS up to a quote that is not closed,
     * and the last of two that contradict each other counts: the user's. */
    {.name = "node",
     .programs = {"node", "nodejs", "npm", "npx", "yarn", "pnpm", "tsx", "electron", "corepack"},
     .libraries = {"libnode.so"},
     .switches = {PREPEND("NODE_OPTIONS", "--perf-prof"),
                  PREPEND("NODE_OPTIONS", "--interpreted-frames-native-stack"),
                  PREPEND("NODE_OPTIONS", "--perf-basic-prof"),
                  {SWITCH_PREPEND, "NODE_OPTIONS", "--perf-prof-unwinding-info", ' ', true, false}},
     .writes_here = true,
     NODE_CODE_LOG,
     .elsewhere = &node_elsewhere},
    {.name = "deno",
     .programs = {"deno"},
     .switches = {{SWITCH_APPEND, "DENO_V8_FLAGS",
                   "--perf-prof,--interpreted-frames-native-stack,--perf-basic-prof,"
                   "--log-code,--log-source-code,--logfile=%d/v8-%p.log",
                   ',', false, false}},
     .writes_here = true,
     .deopt_words = DENO_DEOPT_WORDS,
     .elsewhere = &deno_elsewhere},
    /* JavaScriptCore logs a dump for each thread. */
    {.name = "bun",
     .programs = {"bun", "bunx"},
     .switches = {SET("BUN_JSC_useJITDump", "1"), SET("BUN_JSC_jitDumpDirectory", "%d")}},
    /* PHP's own php.ini and conf.d come between the two directories: the user's choice for the
     * JIT's size stands, and the log is on.  The JIT is switched on, too: Debian's conf.d turns it
     * off, and there is nothing to see of PHP then but its interpreter; -d opcache.jit=...  still
     * has the last word.  A file that is younger than two seconds would not be compiled
     * (file_update_protection), as those of a test or a container often are. */
    {.name = "php",
     .programs = {"php", "php-cli", "php-cgi", "php-fpm", "phpdbg", "composer", "phpunit"},
     .libraries = {"libphp"},
     .switches = {{SWITCH_AROUND, "PHP_INI_SCAN_DIR", "%c/php-first:*:%c/php-last", 0, false,
                   false}},
     .files = {{"php-first/perfjit.ini", "opcache.enable=1\nopcache.enable_cli=1\n"
                                         "opcache.jit_buffer_size=64M\n"
                                         "opcache.file_update_protection=0\n"},
               {"php-last/perfjit.ini", "opcache.jit=tracing\nopcache.jit_debug=0x30\n"}},
     .differs = "PHP's JIT is off by default, and this run turns it on",
     .needs = "opcache"},
    /* The agent logs code as it is compiled, with lines and inlined calls.  HotSpot also writes a
     * perf map when it ends, which no kill -9 lets it write, of stubs that no agent hears of; it
     * says on stderr that it was told.  OpenJ9 does so while it runs, by -XX:+PerfTool (its
     * documentation). */
    {.name = "java",
     .programs = {"java", "javac", "jshell", "mvn", "gradle", "gradlew", "mvnw", "kotlin", "scala",
                  "clojure", "groovy"},
     .libraries = {"libjvm.so"},
     .switches = {APPEND("JAVA_TOOL_OPTIONS", "-XX:+IgnoreUnrecognizedVMOptions"),
                  APPEND("JAVA_TOOL_OPTIONS", "-XX:+UnlockDiagnosticVMOptions"),
                  APPEND("JAVA_TOOL_OPTIONS", "-XX:+DumpPerfMapAtExit"),
                  APPEND("JAVA_TOOL_OPTIONS", "-XX:+PerfTool"),
                  APPEND("JAVA_TOOL_OPTIONS", "-XX:+PreserveFramePointer"),
                  APPEND("JAVA_TOOL_OPTIONS", "-XX:+DebugNonSafepoints"),
                  APPEND("JAVA_TOOL_OPTIONS", "-agentpath:%a")},
     .agent = "libperfjit-java.so",
     .writes_map_on_request = true,
     .needs = "JDK 17 or later"},
    /* 3.12 writes a perf map by the first; 3.13 and later prefer the dump by the second, which has
     * unwind tables.  Its trampolines are only seen as callers of the interpreter, and that has no
     * frame pointers in most builds. */
    {.name = "python",
     .programs = {"python", "ipython", "pytest", "pip", "gunicorn", "uwsgi", "celery"},
     .libraries = {"libpython"},
     .switches = {SET("PYTHONPERFSUPPORT", "1"), SET("PYTHON_PERF_JIT_SUPPORT", "1")},
     .copies_stacks = true,
     .needs = "Python 3.12 or later"},
    {.name = "erl",
     .programs = {"erl", "beam.smp", "elixir", "iex", "mix", "escript", "rebar3", "erlc"},
     .switches = {APPEND("ERL_FLAGS", "+JPperf true")},
     .needs = "OTP 25 or later"},
    /* An older Ruby ends at an option that it does not know. */
    {.name = "ruby",
     .programs = {"ruby", "bundle", "rake", "rails", "irb", "rspec"},
     .libraries = {"libruby"},
     .switches = {{SWITCH_APPEND, "RUBYOPT", "--yjit --yjit-perf", ' ', false, true}},
     .differs = "YJIT is off by default, and this run turns it on",
     .needs = "Ruby 3.3 or later with YJIT",
     .instead_if = "--zjit",
     .instead = &zjit_ruby,
     .try_first = "--yjit-perf"},
    /* Without the granularity .NET 10.0 writes records of stubs that break its dump. */
    {.name = "dotnet",
     .programs = {"dotnet", "pwsh", "csc", "fsi"},
     .libraries = {"libcoreclr.so", "libhostfxr.so"},
     .switches = {SET("DOTNET_PerfMapEnabled", "1"), SET("DOTNET_PerfMapJitDumpPath", "%d"),
                  SET("DOTNET_PerfMapStubGranularity", "2"), SET("COMPlus_PerfMapEnabled", "1")}},
    {.name = "mono",
     .programs = {"mono", "mono-sgen"},
     .libraries = {"libmono"},
     .switches = {APPEND("MONO_ENV_OPTIONS", "--jitdump"), APPEND("MONO_ENV_OPTIONS", "--jitmap")},
     .try_first = "--jitdump",
     .otherwise = &older_mono},
    /* The listener that logs is that of MCJIT; others of LLVM's need JITDUMPDIR alone. */
    {.name = "lli",
     .programs = {"lli"},
     .switches = {ARGUMENT("-jit-kind=mcjit")},
     .differs = "lli uses ORC by default, and this run uses MCJIT"},
    {.name = "julia",
     .programs = {"julia"},
     .libraries = {"libjulia"},
     .switches = {SET("ENABLE_JITPROFILING", "1")}},
    {.name = "qemu",
     .programs = {"qemu-x86_64", "qemu-aarch64", "qemu-arm", "qemu-i386", "qemu-riscv64",
                  "qemu-s390x", "qemu-ppc64le", "qemu-mips"},
     .switches = {SET("QEMU_JITDUMP", "1")},
     .needs = "QEMU 8.0 or later"},
    /* -perfmap and -jitdump are in `qemu-system-ARCH -help` since 8.0; an older one ends at them.
     */
    {.name = "qemu-system",
     .programs = {"qemu-system-x86_64", "qemu-system-aarch64", "qemu-system-arm",
                  "qemu-system-i386", "qemu-system-riscv64", "qemu-system-riscv32",
                  "qemu-system-s390x", "qemu-system-ppc64", "qemu-system-mips"},
     .switches = {ARGUMENT("-jitdump"), ARGUMENT("-perfmap")},
     .needs = "QEMU 8.0 or later, without KVM",
     .try_first = "-jitdump"},
    /* JSC's options of its command, and of WebKit's programs; an older one prints that it does not
     * know them. */
    {.name = "jsc",
     .programs = {"jsc"},
     .libraries = {"libjavascriptcoregtk", "libjavascriptcorewpe"},
     .switches = {{SWITCH_SET, "JSC_useJITDump", "1", 0, false, true},
                  {SWITCH_SET, "JSC_jitDumpDirectory", "%d", 0, false, true}}},
    /* `moar --help`: a perf map, if the variable is not empty. */
    {.name = "moarvm",
     .programs = {"moar", "raku", "rakudo", "rakudo-m", "perl6", "zef"},
     .libraries = {"libmoar"},
     .switches = {SET("MVM_JIT_PERF_MAP", "1")}},
    /* qv4assemblercommon.cpp: a perf map, if the variable is not empty. */
    {.name = "qml",
     .programs = {"qml", "qml6", "qmlscene", "qmljs"},
     .libraries = {"libQt5Qml.so", "libQt6Qml.so"},
     .switches = {SET("QV4_PROFILE_WRITE_PERF_MAP", "1")}},
    /* Its guide "Profiling oneDNN Performance": 6 is a perf map and a dump below JITDUMPDIR.  Up to
     * 2.x the variable was DNNL_JIT_PROFILE. */
    {.name = "onednn",
     .programs = {"benchdnn"},
     .libraries = {"libdnnl.so", "libmkldnn.so"},
     .switches = {SET("ONEDNN_JIT_PROFILE", "6"), SET("DNNL_JIT_PROFILE", "6")}},
    {.name = "luajit",
     .programs = {"luajit", "resty"},
     .libraries = {"libluajit"},
     .copies_stacks = true,
     .instead_if = "perfjit",
     .needs = "the adapter in perfjit's examples/adapters/luajit: put it into LUA_PATH, and run "
              "luajit -l perfjit"},
    {0}};

const struct runtime *runtime_named(const char *name)
{
    const struct runtime *runtime = runtimes;
    while (runtime->name && strcmp(runtime->name, name))
        runtime++;
    return runtime->name ? runtime : NULL;
}

/* Whether NAME is WORD, or WORD and a version: 3.13t, -14, 8.2. */
static bool is_called(const char *name, const char *word)
{
    size_t bytes = strlen(word);
    if (strncmp(name, word, bytes))
        return false;
    name += bytes;
    if (strcmp(name, "-static") == 0)
        return true;
    size_t version = strspn(name, "-.0123456789");
    name += version + (version ? strspn(name + version, "dt") : 0);
    return *name == '\0';
}

const struct runtime *runtime_of_program(const char *basename)
{
    for (const struct runtime *runtime = runtimes; runtime->name; runtime++)
        for (size_t i = 0; i < RUNTIME_NAMES_MOST && runtime->programs[i]; i++)
            if (is_called(basename, runtime->programs[i]))
                return runtime;
    return NULL;
}

const struct runtime *runtime_of_library(const char *name)
{
    for (const struct runtime *runtime = runtimes; runtime->name; runtime++)
        for (size_t i = 0; i < RUNTIME_NAMES_MOST && runtime->libraries[i]; i++)
            if (strncmp(name, runtime->libraries[i], strlen(runtime->libraries[i])) == 0)
                return runtime;
    return NULL;
}

const struct runtime *runtime_inherited(const struct runtime *runtime)
{
    if (runtime->try_first)
        return runtime->otherwise;
    if (!runtime->switches[0].kind)
        return NULL;
    for (size_t i = 0; i < RUNTIME_SWITCHES_MOST && runtime->switches[i].kind; i++)
        if (runtime->switches[i].kind == SWITCH_ARGUMENT || runtime->switches[i].only_quiet)
            return NULL;
    return runtime;
}
