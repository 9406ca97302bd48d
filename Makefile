# perfjit.  No configure step.  The commands to know (CONTRIBUTING.md has more):
#
#     make          build the command and the libraries
#     make demo     build, record a small JIT, inject, show the report
#     make check    run the tests that need no perf events
#
#     make install  install it (PREFIX, BINDIR, LIBDIR, INCLUDEDIR, MANDIR, DESTDIR); make uninstall removes it
#
# demo and check first install what is missing, from Debian's packages.

VERSION := 0.3.0
# What manual pages say: of their last change.
MANUAL_DATE := November 28, 2026
BUILD   ?= build
ifeq ($(BUILD),) # set, and empty: all would be built into /
override BUILD := build
endif
# A folder in this one has one name, whichever it was given by: so a target has one name, too.
override BUILD := $(subst |,,$(subst |$(CURDIR)/,,|$(BUILD)))
# The names of targets are words.  The sources may stand in a folder with spaces, and so may what is installed.
ifneq ($(words $(BUILD)),1)
$(error BUILD is '$(BUILD)': make can't build in a folder whose name has spaces.  Give BUILD without spaces)
endif
DESTDIR    ?=
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man
# Where each shell looks for completions of packages.
BASHDIR    ?= $(DATADIR)/bash-completion/completions
ZSHDIR     ?= $(DATADIR)/zsh/site-functions
FISHDIR    ?= $(DATADIR)/fish/vendor_completions.d

# What is needed, as "command-or-file:package".  A setup target installs the packages whose left side is missing.
#
# To build.  make says which one is missing: see $(BUILD)/headers.
BUILD_NEEDS := /usr/include/libelf.h:libelf-dev /usr/include/elfutils/libdw.h:libdw-dev /usr/include/zlib.h:zlib1g-dev \
               /usr/include/zstd.h:libzstd-dev /usr/include/lzma.h:liblzma-dev /usr/include/xxhash.h:libxxhash-dev \
               /usr/include/jansson.h:libjansson-dev
# tinyjit throws C++ exceptions.
DEMO_NEEDS  := $(BUILD_NEEDS) g++:g++ perf:linux-perf
CHECK_NEEDS := $(DEMO_NEEDS) /usr/include/cmocka.h:libcmocka-dev bats:bats jq:jq python3:python3 xz:xz-utils readelf:binutils \
               eu-readelf:elfutils dwz:dwz pkg-config:pkg-config
# Debuggers, other compilers and machines, and tools that refuse or count what a program asks the kernel for.
LIVE_NEEDS  := $(CHECK_NEEDS) script:bsdutils protoc:protobuf-compiler xmllint:libxml2-utils \
               /usr/lib/python3/dist-packages/jsonschema:python3-jsonschema hyperfine:hyperfine gnuplot:gnuplot-nox strace:strace \
               valgrind:valgrind gdb:gdb lldb-14:lldb-14 clang:clang clang-14:clang-14 \
               /usr/lib/x86_64-linux-gnu/libunwind.so.1:libunwind-14 /usr/lib/llvm-14/include/c++/v1/exception:libc++-14-dev \
               /usr/lib/llvm-14/lib/libc++abi.so:libc++abi-14-dev /usr/lib/llvm-14/lib/libunwind.so:libunwind-14-dev \
               bindfs:bindfs mkfs.ext4:e2fsprogs mkfs.btrfs:btrfs-progs chromium-headless-shell:chromium-headless-shell \
               /usr/include/bzlib.h:libbz2-dev musl-gcc:musl-tools qemu-aarch64:qemu-user aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu \
               /usr/aarch64-linux-gnu/lib/libc.a:libc6-dev-arm64-cross riscv64-linux-gnu-gcc:gcc-riscv64-linux-gnu \
               /usr/riscv64-linux-gnu/lib/libc.a:libc6-dev-riscv64-cross \
               $(if $(filter x86_64,$(shell uname -m)),/usr/include/asmjit/asmjit.h:libasmjit-dev /usr/lib32/libc.a:libc6-dev-i386 \
               /usr/lib/gcc/x86_64-linux-gnu/12/32/libgcc.a:lib32gcc-12-dev)

CC       ?= gcc
# The compiler's own: where it is for another machine, there may be no other one.
ifeq ($(origin AR),default)
AR       := $(or $(shell $(CC) -print-prog-name=ar 2>/dev/null),ar)
endif
WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wcast-align -Wcast-qual -Wundef -Wstrict-prototypes \
            -Wmissing-prototypes
# Files over 2 GiB, where a long has 32 bits.  Elsewhere it would only call other names of the same functions.
OFFSETS  := $(if $(filter 4,$(shell echo __SIZEOF_LONG__ | $(CC) -E -P -x c - 2>/dev/null)),-D_FILE_OFFSET_BITS=64)
# CPPFLAGS, CFLAGS and LDFLAGS are the user's.  What the build needs stands beside them, in the variables with ALL_.
ALL_CPPFLAGS := -I. -D_GNU_SOURCE $(OFFSETS) $(CPPFLAGS)
# With sanitizers -O2 takes gcc twice as long as -Og, and what they see is the same.
CFLAGS   ?= $(if $(SANITIZE),-Og -g1,-O2 -g)
ALL_CFLAGS := -std=c11 -fvisibility=hidden -fPIC -pthread $(WARNINGS) $(CFLAGS)
ALL_LDFLAGS := $(LDFLAGS)
ifdef SANITIZE
ALL_CFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
# Of 150 programs that all have debug information; gold takes a third of the time.
GOLD       := $(if $(shell command -v ld.gold),-fuse-ld=gold)
ALL_LDFLAGS += -fsanitize=$(SANITIZE) $(GOLD)
endif
# The static C++ runtime has a demangler that can be bounded; where there is none, long names stay as they are.
# gcc alone brings the shared runtime, and no link to it.
CXX_RUNTIME   := $(wildcard $(shell $(CC) -print-file-name=libsupc++.a)) \
                 $(if $(wildcard $(shell $(CC) -print-file-name=libstdc++.so)),-lstdc++,-l:libstdc++.so.6)
# musl has no argp: Alpine's argp-standalone.
ARGP          := $(if $(wildcard $(shell $(CC) -print-file-name=libargp.a)),-largp)
INJECTOR_LIBS := -ldw -lelf -ljansson -lzstd -llzma -lz $(ARGP) $(CXX_RUNTIME) -lm

JITDUMP_SRC  := $(wildcard jitdump/*.c jitdump/*/*.c)
PERFMAP_SRC  := $(wildcard perfmap/*.c)
# What libjitunwind takes from libjitdump has names of its own in the static library: a program may link both.
JITUNWIND_OWN := $(wildcard jitunwind/*.c jitunwind/*/*.c)
JITUNWIND_TAKEN := jitdump/guest/brief_lock.c jitdump/guest/fork_mark.c jitdump/guest/holder_state.c jitdump/format/dump_clock.c
JITUNWIND_SRC := $(JITUNWIND_OWN) $(JITUNWIND_TAKEN)
JITUNWIND_NAMES := fork_mark_set fork_mark_free lock_wait holder_sleep holder_state clock_has_counter clock_now
INJECTOR_SRC := $(wildcard injector/*.c injector/*/*.c injector/*/*/*.c)
TINYJIT_SRC  := $(wildcard examples/tinyjit/*.c)
TINYJIT_CXX  := examples/tinyjit/exception.cc
UNIT_SRC     := $(wildcard tests/unit/*_test.c)
PRODUCER_SRC := $(filter-out tests/producers/aarch64_% tests/producers/riscv64_% tests/producers/fail_nth.c,$(wildcard tests/producers/*.c))

# What is fuzzed (`make fuzz`), and the same functions with a main that replays inputs, for `make check`.
FUZZ_NAMES   := bench call_profile cfi_check compare demangle eh_frame injection inline_info jit_dump kernel_code \
                kernel_symbols lines marker_file off_cpu perf_data perf_map source_map stacks v8_log
FUZZ_SRC     := $(wildcard tests/fuzz/*.c)
MINUTES      ?= 5
JOBS         ?= $(shell nproc)

# Programs for aarch64 and riscv64, which tests run under qemu.  Where there is no compiler for one its tests are skipped.  -O2 -g
# takes gcc 1.6 times as long.
CROSS_CFLAGS := -O1 -g1
AARCH64_CC  := $(shell command -v aarch64-linux-gnu-gcc)
AARCH64_SRC := $(patsubst %,tests/producers/%.c,aarch64_frames both_libraries every_record trampolines)

RISCV64_CC  := $(shell command -v riscv64-linux-gnu-gcc)
RISCV64_SRC := $(patsubst %,tests/producers/%.c,riscv64_frames both_libraries every_record)

objects = $(patsubst %.cc,$(BUILD)/%.o,$(patsubst %.c,$(BUILD)/%.o,$(1)))

# The libraries for who keeps a copy of them: a C file and a header each.
DIST       := $(patsubst %,$(BUILD)/dist/%.c,jitdump perfmap jitunwind)

# What a command makes, in place of the command: $(call brief,CC,injector/main.c) stands before it.
# V=1 shows the command itself.  What the command says is seen in either case.
V ?= 0
KIND := $(if $(SANITIZE), ($(SANITIZE)))
brief = $(if $(filter 0,$(V)),@printf '%-4s%s\n' '$(1)' '$(2)' && )

LIBJITDUMP := $(BUILD)/libjitdump.a
LIBPERFMAP := $(BUILD)/libperfmap.a
LIBJITUNWIND := $(BUILD)/libjitunwind.a
SHARED     := $(patsubst %,$(BUILD)/lib%.so.0,jitdump perfmap jitunwind)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRC))
PRODUCERS  := $(patsubst tests/producers/%.c,$(BUILD)/producers/%,$(PRODUCER_SRC))

REPLAYERS  := $(patsubst %,$(BUILD)/replay/%,$(FUZZ_NAMES))
FUZZERS    := $(patsubst %,$(BUILD)/fuzzers/%,$(FUZZ_NAMES))

AARCH64    := $(patsubst tests/producers/%.c,$(BUILD)/aarch64/%,$(AARCH64_SRC))

RISCV64    := $(patsubst tests/producers/%.c,$(BUILD)/riscv64/%,$(RISCV64_SRC))

STATIC     := $(patsubst %,$(BUILD)/static/%,unwind_shapes tinyjit thread_turns)
BENCH      := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/*.c))

.PHONY: all agents libraries dist demo check check-live check-all check-tests live-tests both-builds plain-build sanitized-build \
        tests mutants recordings check-new-perf setup-build setup-demo setup-check setup-live setup-runtimes \
        bench bench-quick bench-diff bench-diff-quick docs-pictures fuzz fuzzers torture tsan install install-command \
        install-libraries uninstall manuals library-manuals static tarball deb clean format rooms FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: libraries $(BUILD)/perfjit agents

# ---- Agents, which a runtime loads ----
#
# Java's needs the headers of any JDK.  Where there is none it is left out, and that is said.
JVMTI := $(or $(if $(JAVA_HOME),$(wildcard $(JAVA_HOME)/include/jvmti.h)),$(wildcard /usr/lib/jvm/*/include/jvmti.h), \
           $(wildcard $(addsuffix ../include/jvmti.h,$(dir $(shell readlink -f "$$(command -v javac)" 2>/dev/null)))))
JDK   := $(patsubst %/include/jvmti.h,%,$(firstword $(JVMTI)))
JAVA_AGENT     := $(BUILD)/libperfjit-java.so
JAVA_AGENT_SRC := $(wildcard agents/java/*.c)
# These know nothing of Java's headers: units test them.
JAVA_AGENT_OWN := $(patsubst %,agents/java/%.c,agent_options code_rows code_table frame_tables interpreter_layout method_text old_methods watched_methods)
JAVA_CODE_OWN  := $(patsubst %,agents/java/%.c,told_code untold_code vm_structs)
AGENTS         := $(if $(JDK),$(JAVA_AGENT))
agents: $(AGENTS)
	@$(if $(JDK),:,echo 'No JDK: the agent for Java is left out (apt-get install default-jdk-headless or set JAVA_HOME)')
-include $(patsubst %.c,$(BUILD)/%.d,$(JAVA_AGENT_SRC))
# A linker must not see names of a copy of libjitdump that the program may have.
$(call objects,$(JAVA_AGENT_SRC)): ALL_CPPFLAGS += -DJITDUMP_STATIC $(if $(JDK),-isystem $(JDK)/include -isystem $(JDK)/include/linux)
$(JAVA_AGENT): $(call objects,$(JAVA_AGENT_SRC)) $(LIBJITDUMP)
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -shared -pthread $(ALL_LDFLAGS) -Wl,-soname,$(@F) $^ -Wl,-z,defs -Wl,-z,now -Wl,--exclude-libs,ALL \
	    -Wl,--as-needed -ldl -o $@

# Make's names have no spaces: below a folder that has some there is no absolute name.
ifeq ($(filter /%,$(BUILD))$(word 2,$(CURDIR)),)
# By its absolute name as well.
$(CURDIR)/$(BUILD)/%: $(BUILD)/% ;
endif
# What is there of an earlier build would count as made.
ELSEWHERE := $(filter-out $(BUILD)/%,$(filter build/%,$(MAKECMDGOALS)))
$(if $(ELSEWHERE),$(error BUILD is $(BUILD): make $(patsubst build/%,$(BUILD)/%,$(ELSEWHERE))))

# What a runtime links, with libc alone: also for another libc (jitdump/README.md).
libraries: $(LIBJITDUMP) $(LIBPERFMAP) $(LIBJITUNWIND) $(SHARED)

# What includes a header is made anew after it, by whichever of its two names BUILD has: tests give the absolute one.
DEPENDS = -MMD -MP -MT $(patsubst $(CURDIR)/%,%,$@) $(if $(word 2,$(CURDIR)),,-MT $(abspath $@))

-include $(patsubst %.c,$(BUILD)/%.d,$(JITDUMP_SRC) $(PERFMAP_SRC) $(JITUNWIND_SRC) $(INJECTOR_SRC) $(TINYJIT_SRC) \
                                      packaging/static_libc.c docs/man/header_page.c examples/minimal.c $(UNIT_SRC) $(PRODUCER_SRC) $(FUZZ_SRC)) $(patsubst %.cc,$(BUILD)/%.d,$(TINYJIT_CXX) tests/unit/throwing.cc) \
         $(patsubst %.c,$(BUILD)/jitunwind/%.d,$(JITUNWIND_TAKEN)) \
         $(patsubst %.c,$(BUILD)/shared/%.d,$(JITDUMP_SRC) $(PERFMAP_SRC) $(JITUNWIND_SRC)) \
         $(patsubst %.c,$(BUILD)/aarch64/%.d,$(JITDUMP_SRC) $(PERFMAP_SRC) $(JITUNWIND_SRC) $(AARCH64_SRC)) \
         $(patsubst %.c,$(BUILD)/riscv64/%.d,$(JITDUMP_SRC) $(PERFMAP_SRC) $(RISCV64_SRC))

# That the headers of the build libraries are there; made once.
$(BUILD)/headers:
	@mkdir -p $(@D)
	@missing=; for need in $(patsubst /usr/include/%,%,$(BUILD_NEEDS)); do \
	    echo "#include <$${need%:*}>" | $(CC) $(ALL_CPPFLAGS) -fsyntax-only -x c - 2>/dev/null && continue; \
	    echo "$${need%:*} is missing: it is in Debian's package $${need#*:}" >&2; \
	    missing="$$missing $${need#*:}"; \
	done; \
	[ -z "$$missing" ] || { echo "apt-get install$$missing      (or: make setup-build)" >&2; exit 1; }
	@touch $@
$(call objects,$(INJECTOR_SRC)): | $(BUILD)/headers

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call brief,CC,$<$(KIND))$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(UNIT_CFLAGS) $(DEPENDS) -c -o $@ $<

$(BUILD)/%.o: %.cc
	@mkdir -p $(@D)
	$(call brief,CXX,$<$(KIND))$(CXX) $(ALL_CPPFLAGS) -std=c++17 -Wall -Wextra $(CFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(DEPENDS) -c -o $@ $<

$(LIBJITDUMP): $(call objects,$(JITDUMP_SRC))
$(LIBPERFMAP): $(call objects,$(PERFMAP_SRC))
TAKEN_OBJECTS := $(patsubst %.c,$(BUILD)/jitunwind/%.o,$(JITUNWIND_TAKEN))
$(LIBJITUNWIND): $(call objects,$(JITUNWIND_OWN)) $(TAKEN_OBJECTS)
$(BUILD)/lib%.a:
	@rm -f $@
	$(call brief,AR,$@)$(AR) rcs $@ $^

ifdef SANITIZE
# The optimizer is three quarters of what a unit of 300 assertions takes gcc, and a check of each access in place of a call is a quarter
# of the rest; little of a unit's time is spent in its own code.  But some have a model of all that the product does.
$(BUILD)/tests/unit/%.o: UNIT_CFLAGS = -O0 --param asan-instrumentation-with-call-threshold=0
$(patsubst %,$(BUILD)/tests/unit/%_test.o,diff_size jitdump_attach_fork jitdump_ring jitdump_survival single_step timeline_random): \
    UNIT_CFLAGS = -O1
endif

# What a program takes in of a static library it does not export again, as its own: see JITDUMP_API.  Sanitized, only tests take them
# in, and the same objects make the shared libraries.
ifndef SANITIZE
$(BUILD)/jitdump/%.o: ALL_CPPFLAGS += -DJITDUMP_STATIC
$(BUILD)/perfmap/%.o: ALL_CPPFLAGS += -DPERFMAP_STATIC
$(BUILD)/jitunwind/%.o: ALL_CPPFLAGS += -DJITUNWIND_STATIC
endif
$(BUILD)/jitunwind/%.o: ALL_CPPFLAGS += $(foreach name,$(JITUNWIND_NAMES),-Djd_$(name)=ju_$(name))
$(TAKEN_OBJECTS): $(BUILD)/jitunwind/%.o: %.c
	@mkdir -p $(@D)
	$(call brief,CC,$< (libjitunwind)$(KIND))$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(DEPENDS) -c -o $@ $<

# These take the file in.
$(BUILD)/injector/debug/gdb_script.o: injector/debug/perfjit_gdb.py
$(BUILD)/injector/run/program/node_reach.o: injector/run/program/node_reach.js

# The shared libraries link libc alone, and export what their symbol map names.  -z now: the dynamic linker would take 4 KiB of a
# caller's stack at the first calls.
$(BUILD)/shared/%.o: %.c
	@mkdir -p $(@D)
	$(call brief,CC,$< (shared)$(KIND))$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(DEPENDS) -c -o $@ $<

ifdef SANITIZE
$(BUILD)/libjitdump.so.0: $(call objects,$(JITDUMP_SRC))
$(BUILD)/libperfmap.so.0: $(call objects,$(PERFMAP_SRC))
$(BUILD)/libjitunwind.so.0: $(call objects,$(JITUNWIND_OWN)) $(TAKEN_OBJECTS)
else
$(BUILD)/libjitdump.so.0: $(patsubst %.c,$(BUILD)/shared/%.o,$(JITDUMP_SRC))
$(BUILD)/libperfmap.so.0: $(patsubst %.c,$(BUILD)/shared/%.o,$(PERFMAP_SRC))
$(BUILD)/libjitunwind.so.0: $(patsubst %.c,$(BUILD)/shared/%.o,$(JITUNWIND_SRC))
endif
$(BUILD)/lib%.so.0:
	$(call brief,LD,$@)$(CC) -shared -pthread $(ALL_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=$*/lib$*.map \
	    $^ -Wl,-z,defs -Wl,-z,now -Wl,--as-needed -o $@
	@ln -sf $(@F) $(BUILD)/lib$*.so

# What .incbin takes is no dependency that the compiler tells.
$(BUILD)/injector/profile/flamegraph/page_parts.o: $(wildcard injector/profile/flamegraph/page/*)

$(BUILD)/perfjit: $(call objects,$(INJECTOR_SRC)) $(LIBJITDUMP) $(LIBPERFMAP)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^ $(INJECTOR_LIBS)

$(BUILD)/tinyjit: $(call objects,$(TINYJIT_SRC) $(TINYJIT_CXX)) $(LIBJITDUMP) $(LIBPERFMAP) $(LIBJITUNWIND)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^ -lstdc++

$(BUILD)/minimal: $(call objects,examples/minimal.c) $(LIBJITDUMP)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^

# The command but its main, for programs that take parts of it: of 230 objects a hundred unit tests link those that they use.
$(BUILD)/injector.a: $(filter-out $(BUILD)/injector/main.o,$(call objects,$(INJECTOR_SRC)))
	@rm -f $@
	$(call brief,AR,$@)$(AR) rcsT $@ $^

PRODUCT := $(BUILD)/injector.a $(LIBJITDUMP) $(LIBPERFMAP)

$(BUILD)/tests/%_test: $(BUILD)/tests/unit/%_test.o $(PRODUCT) $(LIBJITUNWIND)
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(INJECTOR_LIBS)

$(BUILD)/tests/java_agent_test: $(call objects,$(JAVA_AGENT_OWN))
$(BUILD)/tests/java_code_test: $(call objects,$(JAVA_CODE_OWN))

# C++ is what throws.
$(BUILD)/tests/jitunwind_exceptions_test: $(BUILD)/tests/unit/throwing.o

$(BUILD)/tests/jitdump_stop_test: ALL_LDFLAGS += -Wl,--wrap=jd_holder_sleep
$(BUILD)/tests/jitdump_place_test: ALL_LDFLAGS += -Wl,--wrap=flock

$(addprefix $(BUILD)/tests/,perfmap_stack_test jitdump_stack_test jitunwind_room_test): ALL_LDFLAGS += -Wl,-z,now

$(BUILD)/producers/%: $(BUILD)/tests/producers/%.o $(LIBJITDUMP) $(LIBPERFMAP) $(LIBJITUNWIND)
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^

# It runs tinyjit's code itself.
$(BUILD)/producers/self_unwind: $(BUILD)/tests/producers/self_unwind.o \
        $(filter-out $(BUILD)/examples/tinyjit/main.o,$(call objects,$(TINYJIT_SRC) $(TINYJIT_CXX))) \
        $(LIBJITDUMP) $(LIBPERFMAP) $(LIBJITUNWIND)
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^ -lstdc++

# perf record -g goes through its interpreter, and backtrace(3) by the unwinder that exceptions have, which a static program has in it.
$(BUILD)/tests/producers/interpreted.o: ALL_CFLAGS += -fno-omit-frame-pointer
ifeq ($(findstring -static,$(LDFLAGS)),)
$(BUILD)/producers/interpreted: ALL_LDFLAGS += -Wl,--no-as-needed -lgcc_s -Wl,--as-needed
endif

# It calls the readers themselves.
$(BUILD)/producers/costly_calls: $(BUILD)/tests/producers/costly_calls.o $(PRODUCT)
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^ $(INJECTOR_LIBS)

# Without perf_event_open and 20 ms of waiting for each input, and with the same clocks each time.
$(BUILD)/replay/injection $(BUILD)/fuzzers/injection $(BUILD)/replay/call_profile $(BUILD)/fuzzers/call_profile: ALL_LDFLAGS += -Wl,--wrap=clock_live_read
$(BUILD)/replay/call_profile $(BUILD)/fuzzers/call_profile: ALL_LDFLAGS += -Wl,--wrap=kernel_symbols_read

$(BUILD)/replay/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/replay.o $(PRODUCT)
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^ $(INJECTOR_LIBS)

$(BUILD)/fuzzers/%: $(BUILD)/tests/fuzz/%.o $(PRODUCT)
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(INJECTOR_LIBS)

# The first inputs of each fuzzer: what producers write, in pieces.
$(BUILD)/seeds: $(BUILD)/tests/fuzz/seeds.o $(PRODUCT)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(INJECTOR_LIBS)

# Static, so that qemu needs no libraries; made once, whatever else is sanitized.
$(BUILD)/aarch64/%.o: %.c
	@mkdir -p $(@D)
	$(call brief,CC,$< (aarch64))$(AARCH64_CC) $(ALL_CPPFLAGS) -std=c11 -pthread $(WARNINGS) $(CROSS_CFLAGS) $(DEPENDS) -c -o $@ $<

$(BUILD)/aarch64/%: $(BUILD)/aarch64/tests/producers/%.o \
                    $(patsubst %.c,$(BUILD)/aarch64/%.o,$(JITDUMP_SRC) $(PERFMAP_SRC) $(JITUNWIND_SRC))
	$(call brief,LD,$@)$(AARCH64_CC) -static -pthread -o $@ $^

$(BUILD)/riscv64/%.o: %.c
	@mkdir -p $(@D)
	$(call brief,CC,$< (riscv64))$(RISCV64_CC) $(ALL_CPPFLAGS) -std=c11 -pthread $(WARNINGS) $(CROSS_CFLAGS) $(DEPENDS) -c -o $@ $<

$(BUILD)/riscv64/%: $(BUILD)/riscv64/tests/producers/%.o \
                    $(patsubst %.c,$(BUILD)/riscv64/%.o,$(JITDUMP_SRC) $(PERFMAP_SRC))
	$(call brief,LD,$@)$(RISCV64_CC) -static -pthread -o $@ $^

# Preloaded into others: never sanitized itself.
FAIL_NTH   := $(BUILD)/fail_nth.so
$(FAIL_NTH): tests/producers/fail_nth.c
	@mkdir -p $(@D)
	$(call brief,CC,$<)$(CC) $(ALL_CPPFLAGS) -std=c11 -fvisibility=hidden -fPIC $(WARNINGS) -O2 -g -shared -o $@ $< -ldl

# What make check runs of either build, and what the tests that record run besides.  `tests` adds all units.
SHIPPED_UNITS := $(shell sed -nE 's,^(shipped|arithmetic|live) unit/,,p' tests/levels)
ifdef SANITIZE
check-tests: $(BUILD)/perfjit $(SHARED) $(UNIT_TESTS) $(REPLAYERS) $(patsubst %,$(BUILD)/producers/%,every_record map_lines)
live-tests: check-tests
else
check-tests: all manuals $(BUILD)/tinyjit $(BUILD)/minimal dist $(addprefix $(BUILD)/tests/,$(SHIPPED_UNITS)) $(PRODUCERS) $(FAIL_NTH) $(BUILD)/seeds
live-tests: check-tests $(if $(AARCH64_CC),$(AARCH64)) $(if $(RISCV64_CC),$(RISCV64))
endif
tests: live-tests $(UNIT_TESTS)
fuzzers: $(FUZZERS)

# Manual pages, in $(BUILD)/man, and completions, in $(BUILD)/completions/SHELL.  They are made from the tables of options and the
# comments of headers, by what is built; docs/man has the rest.  A build for another machine has none.
manuals: $(BUILD)/man/perfjit.1 library-manuals
library-manuals: $(BUILD)/man/jitdump.5

PUBLIC_HEADERS := jitdump/jitdump.h jitdump/cfi.h jitdump/trampoline.h perfmap/perfmap.h jitunwind/jitunwind.h
# $(call write_page,NAME,COMMAND...): with the date in front.
write_page = { echo '.Dd $(MANUAL_DATE)'; $(2); } > $(BUILD)/man/$(1)
# Whether $(1) runs here.
runs_here = $(1) > /dev/null 2>&1 || { echo 'no manual pages: $(firstword $(1)) does not run on this machine'; exit 0; }; set -e

$(BUILD)/header_page: $(call objects,docs/man/header_page.c injector/text/mdoc.c)
	$(call brief,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^

$(BUILD)/man/perfjit.1: $(BUILD)/perfjit $(wildcard docs/man/perfjit*.part) Makefile
	@mkdir -p $(BUILD)/man $(addprefix $(BUILD)/completions/,bash zsh fish)
	$(call brief,MAN,$@)$(call runs_here,$< manual names); \
	$< manual bash > $(BUILD)/completions/bash/perfjit; \
	$< manual zsh > $(BUILD)/completions/zsh/_perfjit; \
	$< manual fish > $(BUILD)/completions/fish/perfjit.fish; \
	for name in $$($< manual names); do \
	    $(call write_page,perfjit-$$name.1,$< manual man $$name docs/man/perfjit-$$name.1.part); \
	done; \
	$(call write_page,perfjit.1,$< manual man perfjit docs/man/perfjit.1.part)

$(BUILD)/man/jitdump.5: $(BUILD)/header_page $(wildcard docs/man/[jl]*.part) $(PUBLIC_HEADERS) jitdump/format/jitdump_format.h Makefile
	@mkdir -p $(BUILD)/man
	$(call brief,MAN,$@)$(call runs_here,$< -n jitdump/jitdump.h); \
	$(foreach lib,jitdump perfmap jitunwind,\
	    $(call write_page,lib$(lib).3,$< lib$(lib) docs/man/lib$(lib).3.part $(filter $(lib)/%,$(PUBLIC_HEADERS))); \
	    for name in $$($< -n $(filter $(lib)/%,$(PUBLIC_HEADERS))); do echo '.so man3/lib$(lib).3' > $(BUILD)/man/$$name.3; done;) \
	$(call write_page,jitdump.5,$< -f docs/man/jitdump.5.part jitdump/format/jitdump_format.h)

# What docs/ shows of the commands, made by them.
docs-pictures: $(BUILD)/perfjit
	docs/pictures/make.sh $(BUILD)

dist: $(DIST)

$(BUILD)/dist/%.c: dist/amalgamate.py LICENSE $(wildcard jitdump/*.[ch] jitdump/*.hpp jitdump/*/*.[ch] perfmap/*.[ch] \
                                                         jitunwind/*.[ch] jitunwind/*/*.[ch])
	$(call brief,PY,$@)python3 dist/amalgamate.py $* $(@D)

# Install what is missing; nothing to do, and no network, when all is there.
setup-build: NEEDS = $(BUILD_NEEDS)
setup-demo:  NEEDS = $(DEMO_NEEDS)
setup-check: NEEDS = $(CHECK_NEEDS)
setup-live:  NEEDS = $(LIVE_NEEDS)
setup-build setup-demo setup-check setup-live:
	@missing=; for need in $(NEEDS); do \
	    thing=$${need%%:*}; package=$${need##*:}; \
	    case $$thing in \
	        /*) [ -e "$$thing" ] ;; \
	        *) command -v "$$thing" >/dev/null ;; \
	    esac || missing="$$missing $$package"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	echo "$@: installing$$missing"; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	$$sudo apt-get -q update && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $$missing

setup-live: setup-runtimes
setup-runtimes:
	@tests/setup_runtimes.sh $(BUILD)

# What setup installs must be there before the rules that use it are read: hence the second make.
demo: setup-demo
	@$(MAKE) --no-print-directory -j$(shell nproc) all $(BUILD)/tinyjit
	@examples/demo.sh "$(abspath $(BUILD))"

# Units with ASan and UBSan, the command on stored recordings, the libraries with programs of their own.  Runs as any user, without perf
# events, root, network and runtimes; four minutes on two processors.  tests/README.md has more.
check: setup-check both-builds
	@tests/style.sh
	@tests/run.sh "$(abspath $(BUILD))" check

# Records real programs and runtimes, kills them, fills disks, takes permissions away.  Needs perf events, and root for some tests.
check-live: setup-live
	@$(MAKE) --no-print-directory both-builds
	@$(MAKE) --no-print-directory -j$(shell nproc) live-tests
	@tests/run.sh "$(abspath $(BUILD))" live

# Before a release: what the other two leave out because it takes long, and whether it has become slower.
check-all: setup-live
	@$(MAKE) --no-print-directory both-builds
	@$(MAKE) --no-print-directory -j$(shell nproc) live-tests
	@tests/run.sh "$(abspath $(BUILD))" all
	@$(MAKE) --no-print-directory bench-quick
	@$(MAKE) --no-print-directory bench-diff-quick

# Beside each other: what one links last leaves a processor to the other.
both-builds:
	@$(MAKE) --no-print-directory -j$(shell nproc) plain-build sanitized-build
plain-build:
	@$(MAKE) --no-print-directory check-tests
sanitized-build:
	@$(MAKE) --no-print-directory check-tests BUILD=$(BUILD)/sanitized SANITIZE=address,undefined

# Record anew what tests/recordings holds: all of it, or FILES="one.bats other.bats".  Needs root and perf events.
recordings: setup-live
	@$(MAKE) --no-print-directory both-builds
	@tests/recordings/make.sh $(BUILD) $(FILES)

# Planted faults that the tests must find.
mutants: setup-check
	@tests/mutants/run.sh

# How fast it is: bench/results.md (half an hour or less), and whether a ratio fell below half of what stands there (a minute).
bench: setup-live
	@$(MAKE) --no-print-directory all $(BUILD)/tinyjit $(BENCH)
	@bench/run.sh "$(abspath $(BUILD))" full

bench-quick: setup-live
	@$(MAKE) --no-print-directory all $(BUILD)/tinyjit $(BENCH)
	@bench/run.sh "$(abspath $(BUILD))" quick

# What perfjit diff says of programs that are the same, and of planted changes: the tables of bench/comparisons.md
# (an hour and a half), or a few of each (20 s).
bench-diff: setup-live
	@$(MAKE) --no-print-directory all $(BUILD)/tinyjit
	@bench/comparisons.sh "$(abspath $(BUILD))" full

bench-diff-quick: setup-live
	@$(MAKE) --no-print-directory all $(BUILD)/tinyjit
	@bench/comparisons.sh "$(abspath $(BUILD))" quick

# The unwind tests with the newest perf, whose unwinder is another; root and the network needed.
check-new-perf: setup-live
	@$(MAKE) --no-print-directory all $(BUILD)/tinyjit $(STATIC) \
		$(addprefix $(BUILD)/producers/,chain_check address_churn process_lives truth_check)
	@tests/new_perf.sh "$(abspath $(BUILD))"

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(LIBJITUNWIND) $(LIBJITDUMP)
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -pthread $(ALL_LDFLAGS) -o $@ $^

# The tests of kills, full disks, signals and failing calls, as many as one has the time for.
RUNS ?= 1000
torture: setup-live
	@$(MAKE) --no-print-directory tests
	@$(MAKE) --no-print-directory $(addprefix $(BUILD)/sanitized/,perfjit producers/every_record producers/map_lines) \
	    BUILD=$(BUILD)/sanitized SANITIZE=address,undefined
	@BUILD="$(abspath $(BUILD))" RECORDINGS=live TORTURE=$(RUNS) bats tests/cli/torture.bats tests/cli/hostile.bats tests/cli/failing_calls.bats

# The writers' threads, forks, opening and closing with ThreadSanitizer.  It knows nothing of forks among threads (it takes
# the parent's threads for the child's) and can't start threads in such a child: those are left to make check.
TSAN_UNITS := jitdump_survival jitdump_stop jitdump_attach jitdump_attach_fork jitdump_attach_left jitdump_attach_rights perfmap_stop
tsan:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/tsan SANITIZE=thread $(BUILD)/tsan/producers/torture \
	    $(patsubst %,$(BUILD)/tsan/tests/%_test,$(TSAN_UNITS))
	@set -e; for unit in $(TSAN_UNITS); do $(BUILD)/tsan/tests/$${unit}_test; done
	@dir=$$(mktemp -d) && $(BUILD)/tsan/producers/torture stress $$dir 20 1; status=$$?; rm -r $$dir; exit $$status

# All fuzzers for MINUTES each, JOBS at a time; what they learn stays in $(BUILD)/corpus.  A finding ends it.
# clang's pointer-overflow takes NULL + 0 for one, which every empty list does; accesses are ASan's business.
fuzz: setup-live
	@$(MAKE) --no-print-directory tests
	@$(MAKE) --no-print-directory fuzzers BUILD=$(BUILD)/fuzzing CC=clang \
	    CFLAGS='-O2 -g -Wno-string-concatenation' \
	    SANITIZE='fuzzer-no-link,address,undefined -fno-sanitize=pointer-overflow'
	@tests/fuzz/run.sh "$(abspath $(BUILD))" $(MINUTES) $(JOBS) $(FUZZ_NAMES)

# What is installed, as "DIRECTORY:NAME:HOW:SOURCE", with a directory's variable: its value may have spaces.  HOW is a mode, or how the
# file is made (put_HOW).  install and uninstall go through these rows.
LIBRARIES := jitdump perfmap jitunwind
JITDUMP_HEADERS := jitdump.h cfi.h trampoline.h jitdump.hpp cfi.hpp memory.hpp
# What stands there when the recipe runs, and make has no record of.
made = $(notdir $(shell ls $(BUILD)/$(1) 2>/dev/null))
manual_rows = $(foreach section,$(1),$(foreach page,$(call made,man/*.$(section)),MANDIR:man$(section)/$(page):644:$(BUILD)/man/$(page)))
completion_rows = $(foreach file,$(call made,completions/$(2)/*),$(1):$(file):644:$(BUILD)/completions/$(2)/$(file))
COMMAND_ROWS = BINDIR:perfjit:755:$(BUILD)/perfjit $(foreach agent,$(AGENTS),LIBDIR:perfjit/$(notdir $(agent)):755:$(agent)) \
    $(call manual_rows,1 5 7) \
    $(call completion_rows,BASHDIR,bash) $(call completion_rows,ZSHDIR,zsh) $(call completion_rows,FISHDIR,fish)
# Programs say <jitdump.h> as well, as in 0.1: it includes <jitdump/jitdump.h>.
LIBRARY_ROWS = $(foreach header,$(JITDUMP_HEADERS),INCLUDEDIR:jitdump/$(header):644:jitdump/$(header)) \
    INCLUDEDIR:perfmap/perfmap.h:644:perfmap/perfmap.h INCLUDEDIR:jitunwind/jitunwind.h:644:jitunwind/jitunwind.h \
    $(call manual_rows,3) $(foreach lib,$(LIBRARIES), \
    INCLUDEDIR:$(lib).h:header:$(lib) \
    LIBDIR:lib$(lib).a:644:$(BUILD)/lib$(lib).a \
    LIBDIR:lib$(lib).so.$(VERSION):755:$(BUILD)/lib$(lib).so.0 \
    LIBDIR:lib$(lib).so.0:link:lib$(lib).so.$(VERSION) \
    LIBDIR:lib$(lib).so:link:lib$(lib).so.0 \
    LIBDIR:pkgconfig/lib$(lib).pc:pc:$(lib) \
    LIBDIR:pkgconfig/$(lib).pc:link:lib$(lib).pc)

define newline


endef
# One word of the shell.
quoted = '$(subst ','\'',$(1))'
at = $(call quoted,$(DESTDIR)$($(word 1,$(1)))/$(word 2,$(1)))
put = $(call put_$(word 3,$(1)),$(word 4,$(1)),$(call at,$(1)))
put_755 = install -D -m 755 $(1) $(2)
put_644 = install -D -m 644 $(1) $(2)
put_link = ln -sfn $(1) $(2)
put_text = install -D -m 644 /dev/null $(2) && $(1) >$(2)
put_header = $(call put_text,printf '%s\n' '/* The header of lib$(1): this is its other name. */' '#include <$(1)/$(1).h>',$(2))
put_pc = $(call put_text,sed $(foreach name,LIBDIR INCLUDEDIR,-e $(call replacement,$(name),$(call below_prefix,$($(name))))) \
    -e $(call replacement,PREFIX,$(PREFIX)) -e $(call replacement,DESCRIPTION,$(DESCRIPTION_$(1))) \
    -e 's/@VERSION@/$(VERSION)/' -e 's/@NAME@/$(1)/' packaging/library.pc.in,$(2))
# Below PREFIX, as the file says it: then the tree can be moved.
below_prefix = $(subst |,,$(subst |$(PREFIX)/,|$${prefix}/,|$(1)))
replacement = $(call quoted,s|@$(1)@|$(subst &,\&,$(subst |,\|,$(subst \,\\,$(2))))|)
put_all = $(foreach row,$(1),$(call put,$(subst :, ,$(row)))$(newline))
remove_all = $(foreach row,$(1),rm -f $(call at,$(subst :, ,$(row)))$(newline))

install: install-command install-libraries
install-command: $(BUILD)/perfjit agents manuals
	$(call put_all,$(COMMAND_ROWS))
install-libraries: libraries library-manuals
	$(call put_all,$(LIBRARY_ROWS))
# The folders of the headers are the libraries' own.
uninstall: manuals
	$(call remove_all,$(COMMAND_ROWS) $(LIBRARY_ROWS))
	$(foreach lib,$(LIBRARIES),rmdir $(call quoted,$(DESTDIR)$(INCLUDEDIR)/$(lib)) 2>/dev/null || :$(newline))

DESCRIPTION_jitdump   := Tell Linux perf about code that a JIT compiler made (jitdump)
DESCRIPTION_perfmap   := Write and read /tmp/perf-<pid>.map, in which a JIT names its code for Linux perf
DESCRIPTION_jitunwind := A process unwinds and names its own JIT code (crash reports, backtraces)

# Which folder includes which, and what goes back: docs/architecture.md.
rooms:
	@tests/rooms.sh

format:
	clang-format -i $(wildcard jitdump/*.[ch] jitdump/*.hpp perfmap/*.[ch] jitunwind/*.[ch] jitunwind/*/*.[ch] injector/*.[ch] injector/*/*.[ch] \
	    packaging/*.c docs/man/*.c examples/*.c examples/*/*.[ch] tests/*/*.[ch])

# Programs that can be copied anywhere.
$(BUILD)/static/unwind_shapes: $(BUILD)/tests/producers/unwind_shapes.o $(LIBJITDUMP)
$(BUILD)/static/thread_turns: $(BUILD)/tests/producers/thread_turns.o $(LIBJITDUMP)
$(BUILD)/static/tinyjit: $(call objects,$(TINYJIT_SRC) $(TINYJIT_CXX)) $(LIBJITDUMP) $(LIBPERFMAP) $(LIBJITUNWIND)
$(STATIC):
	@mkdir -p $(@D)
	$(call brief,LD,$@)$(CC) -static -pthread $(ALL_LDFLAGS) -o $@ $^ -lstdc++

# The command as one file that needs no other, for machines where nothing can be installed.
STATIC_LIBS := $(filter-out -l:libstdc++.so.6,$(INJECTOR_LIBS)) -lbz2
STATIC_NEEDS := libdw.a:libdw-dev libelf.a:libelf-dev libjansson.a:libjansson-dev \
                libzstd.a:libzstd-dev liblzma.a:liblzma-dev libz.a:zlib1g-dev libbz2.a:libbz2-dev
static: $(BUILD)/static/perfjit
$(BUILD)/static/perfjit: $(call objects,$(INJECTOR_SRC) packaging/static_libc.c) $(LIBJITDUMP) $(LIBPERFMAP)
	@mkdir -p $(@D)
	@missing=; for need in $(STATIC_NEEDS); do \
	    case $$($(CC) -print-file-name=$${need%%:*}) in /*) ;; *) missing="$$missing $${need##*:}" ;; esac; \
	done; \
	[ -z "$$missing" ] || { echo "make static: apt-get install$$missing" >&2; exit 1; }
	$(call brief,LD,$@)$(CC) -static -s -pthread $(ALL_LDFLAGS) -Wl,--wrap=dlopen -o $@ $^ $(STATIC_LIBS)

# The sources as they are committed, for packages.
tarball:
	@mkdir -p $(BUILD)
	git archive --prefix=perfjit-$(VERSION)/ -o $(BUILD)/perfjit-$(VERSION).tar.gz HEAD

# Debian packages of what is committed, with debian/, in $(BUILD)/deb.  What this make was given is for itself alone.
# A JDK is large, and needed for the agent for Java alone: without one of Debian's they are built without the agent.
JDK_PACKAGE = dpkg-query -W -f='$${db:Status-Status} $${Package}, $${Provides}\n' 2>/dev/null | grep -qE '^installed .*(default-jdk|java-sdk)-headless'
DEB_TREE = $(BUILD)/deb/perfjit-$(VERSION)
deb:
	@command -v dpkg-buildpackage >/dev/null || { echo 'make deb: apt-get install build-essential debhelper' >&2; exit 1; }
	rm -rf $(BUILD)/deb
	mkdir -p $(DEB_TREE)
	git archive HEAD | tar -x -C $(DEB_TREE)
	@profiles=; $(JDK_PACKAGE) || { profiles=-Pnojava; \
	    echo 'make deb: without the agent for Java: apt-get install default-jdk-headless'; }; \
	cd $(DEB_TREE) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u BUILD -u CPPFLAGS -u CFLAGS -u LDFLAGS -u DESTDIR -u PREFIX \
	    dpkg-buildpackage -us -uc $$profiles
	rm -r $(DEB_TREE)

# The list of quirks stands in the command: docs/quirks.md repeats it below the heading that ends what was written by hand.
docs/quirks.md: $(BUILD)/perfjit FORCE
	sed -n '1,/^## The list$$/p' $@ > $@.new
	(echo; $< inject --list-quirks) >> $@.new
	mv $@.new $@

clean:
	rm -rf $(BUILD)
