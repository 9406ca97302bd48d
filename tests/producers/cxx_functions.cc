/* cxx_functions [SECONDS]: a small JIT in C++ that logs what it makes through jitdump.hpp: names that are views, lines, an inlined
 * call, frames in one line and by directives, a move and an unload.
 *
 * Prints "at NAME: PC" of one instruction in each function, for addr2line and the like, and in the end how often it ran what.
 * Returns 1 and says why if a call says anything else than its contract. */
#include "cxx_check.hpp"

#include <jitdump/jitdump.hpp>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <utility>

namespace
{

constexpr std::size_t arena_bytes = 65536, slot_bytes = 256;

using code = void();

/* push rbp; mov rbp, rsp; push rbx; sub rsp, 24; mov ebx, 30000; dec ebx; jnz; add rsp, 24; pop rbx; pop rbp; ret */
constexpr unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18,
                                    0xbb, 0x30, 0x75, 0x00, 0x00, 0xff, 0xcb, 0x75, 0xfc,
                                    0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3};
constexpr std::uint64_t framed_loop = 14, framed_epilogue = 18;

/* push rbx; mov ebx, 30000; dec ebx; jnz; pop rbx; ret */
constexpr unsigned char pushed[] = {0x53, 0xbb, 0x30, 0x75, 0x00, 0x00,
                                    0xff, 0xcb, 0x75, 0xfc, 0x5b, 0xc3};
constexpr std::uint64_t pushed_loop = 6, pushed_pop = 10;

unsigned char *arena()
{
    static void *const memory =
        mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return static_cast<unsigned char *>(memory);
}

template <std::size_t bytes>
unsigned char *put(std::size_t slot, const unsigned char (&from)[bytes])
{
    static_assert(bytes <= slot_bytes);
    unsigned char *to = arena() + slot * slot_bytes;
    std::memcpy(to, from, bytes);
    return to;
}

void run(unsigned char *at)
{
    code *function;
    std::memcpy(&function, &at, sizeof function);
    function();
}

void say(std::string_view name, const unsigned char *pc)
{
    std::printf("at %.*s: 0x%" PRIx64 "\n", static_cast<int>(name.size()), name.data(),
                perfjit::detail::address(pc));
}

/* The names are parts of a longer text, without a NUL behind them. */
constexpr std::string_view names = "framed|pushed|moved|gone|bare|cut";

std::string_view name_of(std::size_t number)
{
    std::string_view left = names;
    for (; number > 0; number--)
        left.remove_prefix(left.find('|') + 1);
    return left.substr(0, left.find('|'));
}

/* Everything about a function: lines of two files, of which one is of an inlined call, and a frame. */
void add_framed(const perfjit::dump &dump, perfjit::function &function, unsigned char *at)
{
    function.reset(name_of(0), at, sizeof framed);
    const std::uint32_t inner = function.inlined("inner", "framed.src", 12, 7, "inner.src", 30);
    function.line(at, "framed.src", 10)
        .line(at + framed_loop, "inner.src", 31, 5, inner)
        .line(perfjit::detail::address(at + framed_epilogue), "framed.src", 13);
    const perfjit::frame frame =
        perfjit::frame::pointer().saved(JITDUMP_RBX).stack_bytes(24).epilogues(framed_epilogue);
    CHECK(frame.prologue_bytes(JITDUMP_X86_64) == 9 && frame.epilogue_bytes(JITDUMP_X86_64) == 6);
    std::uint64_t index = 0;
    CHECK(function.frame(frame).add(dump, &index) == 0);
    CHECK(*function.unwind_error() == '\0' && (index == JITDUMP_NO_CODE) == !dump);
    say(name_of(0), at + framed_loop);
}

/* By directives, and epilogues from an array. */
void add_pushed(const perfjit::dump &dump, perfjit::function &function, unsigned char *at)
{
    function.reset(name_of(1), at, sizeof pushed);
    function.line(at, "pushed.src", 20);
    function.unwind().def_cfa_offset(1, 16).offset(1, JITDUMP_RBX, -16).def_cfa_offset(pushed_pop + 1, 8);
    CHECK(function.add(dump) == 0);
    say(name_of(1), at + pushed_loop);
}

/* One that is logged at another place, moved to where it runs, and one that is gone before that. */
void add_moved(const perfjit::dump &dump, unsigned char *from, unsigned char *to, unsigned char *gone)
{
    std::uint64_t index = 0;
    perfjit::function function(name_of(2), to, sizeof pushed);
    const std::uint64_t ends[] = {pushed_pop};
    function.runs_at(from).frame(perfjit::frame::stack().saved(JITDUMP_RBX).epilogues(ends, 1));
    perfjit::function taken = std::move(function);
    CHECK(taken.add(dump, &index) == 0);
    CHECK(dump.move(index, from, to, sizeof pushed) == 0);
    say(name_of(2), to + pushed_loop);
    CHECK(dump.add(name_of(3), gone, sizeof pushed, &index) == 0);
    CHECK(dump.unload(index, perfjit::detail::address(gone), sizeof pushed) == 0);
    CHECK(dump.add(name_of(4), gone, sizeof pushed) == 0);
    say(name_of(4), gone + pushed_loop);
}

/* A compiler in one pass: a function in two pieces of one buffer, rows by offset, a register in a
 * slot; both pieces are moved, by different distances. */
void add_pieces(const perfjit::dump &dump, unsigned char *hot, unsigned char *cold)
{
    constexpr std::uint64_t hot_offset = 64;
    std::uint64_t index = 0;
    const perfjit::frame slots =
        perfjit::frame::stack().stack_bytes(16).slots({{JITDUMP_RBX, 8}}).slots_at(hot_offset + 4).prologue(hot_offset);
    CHECK(slots.prologue_bytes(JITDUMP_X86_64) == 9);
    CHECK(perfjit::frame::stack().stack_bytes(16).add_slot(JITDUMP_RBX, 12).prologue_bytes(JITDUMP_X86_64) ==
          -EINVAL);
    perfjit::function second("not its name", pushed, sizeof pushed);
    second.runs_at(cold).relative().line(pushed_loop, "cold.src", 41).unwind().def_cfa_offset(1, 16);
    perfjit::function first("in_pieces", framed, sizeof framed);
    first.runs_at(hot).relative(hot_offset).line(hot_offset + framed_loop, "hot.src", 40).piece(second);
    first.unwind().begin(hot_offset).frame(slots);
    CHECK(first.add(dump, &index) == 0);
    const jitdump_piece_move moves[] = {{perfjit::detail::address(hot), perfjit::detail::address(hot) + 64, sizeof framed},
                                        {perfjit::detail::address(cold), perfjit::detail::address(cold) + 96, sizeof pushed}};
    CHECK(dump.move_pieces(index, moves, 2) == 0);
    CHECK(dump.unload(index, hot + 64, sizeof framed) == 0);
}

/* An entry of any type; where nothing is recorded, the entry itself. */
void add_interpreted(const perfjit::dump &dump)
{
    double (*const entry)(int, double, const char *) noexcept = [](int a, double b, const char *c) noexcept {
        return a + b + *c;
    };
    const std::string_view file = "interpreted.src and more";
    auto *call = dump.trampoline("interpreted", file.substr(0, 15), 50, entry);
    CHECK((call == entry) == !dump && call(1, 0.5, "\1") == 2.5);
    CHECK(jitdump_trampoline_free(dump.get(), reinterpret_cast<jitdump_entry *>(call)) == 0);
}

/* The builder of tables alone: functions of one buffer, and whether they fit their code. */
void check_one_pass()
{
    perfjit::cfi cfi(JITDUMP_X86_64);
    jitdump_unwind first, second;
    cfi.begin(100).frame(perfjit::frame::stack().saved(JITDUMP_RBX).epilogues(100 + pushed_pop));
    CHECK(cfi.end(100 + sizeof pushed, first) == 0 && cfi.check(pushed, sizeof pushed) == 0 && !*cfi.checked());
    cfi.begin(200).frame(perfjit::frame::stack().epilogues(200 + pushed_pop));
    CHECK(cfi.end(200 + sizeof pushed, second) == 0 && first.data != second.data);
    CHECK(cfi.check(pushed, sizeof pushed) == -EBADMSG && std::strstr(cfi.checked(), "the CFA is rsp+16 here"));
}

/* What is wrong is said, and what can be recorded is. */
void add_wrong(const perfjit::dump &dump, unsigned char *at)
{
    std::uint64_t index = 0;
    perfjit::function function(name_of(5), at, sizeof pushed);
    function.frame(perfjit::frame::stack().saved(JITDUMP_RSP).epilogues(pushed_pop));
    CHECK(function.add(dump, &index) == (dump ? -EINVAL : 0));
    CHECK((index == JITDUMP_NO_CODE) == !dump);
    CHECK((*function.unwind_error() != '\0') == !!dump || !dump);
    perfjit::frame many = perfjit::frame::stack();
    for (unsigned i = 0; i <= JITDUMP_FRAME_SAVED_MAX; i++)
        many.add_saved(i);
    CHECK(many.prologue_bytes(JITDUMP_X86_64) == -EINVAL);
    CHECK(perfjit::frame::stack().saved(300).prologue_bytes(JITDUMP_X86_64) == -EINVAL);
    const std::string long_name(5000, 'n');
    CHECK(dump.add(long_name, at + slot_bytes, 16) == 0);
}

/* Owners: off, moved from, opened where nothing can be. */
void check_owners()
{
    perfjit::dump off;
    CHECK(!off && *off.error() == '\0' && *off.path() == '\0' && off.close() == 0 && off.lost() == 0);
    CHECK(off.add("nothing", nullptr, 16) == 0 && off.move(0, 1ull, 2ull, 3) == 0 && off.unreadable() == 0);
    jitdump_options nowhere = JITDUMP_OPTIONS_INIT;
    nowhere.dir = "/nonexistent";
    nowhere.flags = JITDUMP_ALWAYS;
    CHECK(off.open(nowhere) == -ENOENT && !off && std::strstr(off.error(), "/nonexistent"));
    CHECK(off.add("nothing", nullptr, 16) == -ENOENT);
    perfjit::dump other = std::move(off);
    CHECK(!other && *other.error() && !*off.error()); // NOLINT: it is off
    perfjit::function none;
    CHECK(none.add(off) == 0); // NOLINT
    none.reset("a name of its own", &none, 16).line(&none, "none.src", 1);
    perfjit::function taken = std::move(none);
    none = std::move(taken);
    taken.reset("another", &taken, 16);
    CHECK(taken.add(off) == 0);
    perfjit::cfi cfi(JITDUMP_X86_64);
    perfjit::cfi to = std::move(cfi);
    jitdump_unwind tables;
    CHECK(to.frame(perfjit::frame::leaf()).finish(16, tables) == 0 && tables.unwinding_size > 0);
    CHECK(cfi.finish(16, tables) == -ENOMEM && tables.unwinding_size == 0); // NOLINT
    perfjit::cfi used(JITDUMP_X86_64);
    used.frame(perfjit::frame::pointer().epilogues(std::uint64_t{8}));
    used = std::move(to); // what it had described is not the other's now
    CHECK(!to.get() && to.finish(16, tables) == -ENOMEM); // NOLINT
    CHECK(used.finish(16, tables) == 0 && tables.unwinding_size > 0);
    perfjit::function empty("full", &used, 16);
    empty.line(&used, "full.src", 1).frame(perfjit::frame::leaf());
    taken = std::move(empty);
    CHECK(!*empty.unwind_error() && empty.add(off) == 0); // NOLINT
}

#if defined(__cpp_lib_span)
void add_by_spans(const perfjit::dump &dump)
{
    static const std::byte bytes[16] = {};
    const std::uint64_t ends[] = {4, 10};
    perfjit::function function("by_span", std::span(bytes));
    function.frame(perfjit::frame::pointer().epilogues(std::span(ends)));
    CHECK(function.add(dump) == 0);
    CHECK(dump.add("bare_by_span", std::span(bytes)) == 0);
}
#endif

} // namespace

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
    perfjit::dump dump;
    CHECK(dump.open() == 0);
    unsigned char *const first = put(0, framed), *const second = put(1, pushed);
    unsigned char *const moved = put(3, pushed), *const gone = put(4, pushed);
    perfjit::function function;
    check_owners();
    add_framed(dump, function, first);
    add_pushed(dump, function, second);
    add_moved(dump, moved - slot_bytes, moved, gone);
    add_pieces(dump, arena() + 16 * slot_bytes, arena() + 20 * slot_bytes);
    check_one_pass();
    CHECK(dump.faults() == 0);
    add_interpreted(dump);
    add_wrong(dump, arena() + 8 * slot_bytes);
#if defined(__cpp_lib_span)
    add_by_spans(dump);
#endif
    const std::clock_t end = std::clock() + static_cast<std::clock_t>(seconds * CLOCKS_PER_SEC);
    unsigned long rounds = 0;
    do {
        run(first);
        run(second);
        run(moved);
        run(gone);
        rounds++;
    } while (std::clock() < end);
    std::printf("%lu rounds, C++%s\n", rounds, __cplusplus >= 202002L ? "20" : "17");
    CHECK(dump.lost() == 0);
    return dump.close() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
