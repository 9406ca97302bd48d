/* cxx_asked: a runtime in C++ that is asked for its dump by jitdump.hpp's poll.
 *
 * Prints its pid, and "asked twice" once it was asked for a dump and for its end, twice; SIGTERM
 * ends it then.  The first time it tells what it has by a lambda, the second time by an object that
 * can't be copied.  Meanwhile a thread adds functions with lines, in two pieces.  Returns 1 and says
 * why if a call says anything else than its contract. */
#include "cxx_check.hpp"

#include <jitdump/jitdump.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>
#include <utility>

namespace
{

constexpr unsigned life_seconds = 600, step_us = 500, functions = 10;

constexpr unsigned char code[256] = {0xc3};

void add_whole(const perfjit::dump &to, std::string_view name, std::size_t at) noexcept
{
    perfjit::function function(name, code + at, 8);
    CHECK(function.line(code + at, "whole.src", 7).frame(perfjit::frame::leaf()).add(to) == 0);
}

/* It may call all that a const dump has; another poll does nothing. */
void tell(const perfjit::dump &asked) noexcept
{
    CHECK(asked && *asked.path() != '\0');
    bool again = false;
    CHECK(asked.poll([&](const perfjit::dump &) noexcept { again = true; }) == 0 && !again);
    for (std::size_t i = 0; i < functions; i++)
        add_whole(asked, "alive", i * 16);
}

struct teller {
    teller() noexcept = default;
    teller(const teller &) = delete;
    teller &operator=(const teller &) = delete;
    unsigned operator()(const perfjit::dump &asked) noexcept
    {
        tell(asked);
        return ++calls;
    }
    unsigned calls = 0;
};

struct adder {
    const perfjit::dump *dump;
    std::atomic<bool> stop;
};

/* Whether the dump is on is known once for both pieces and their lines. */
void *add_on(void *argument)
{
    adder &all = *static_cast<adder *>(argument);
    while (!all.stop) {
        perfjit::function hot("beside", code + 200, 8), cold("", code + 220, 8);
        cold.line(code + 220, "cold.src", 2);
        CHECK(hot.line(code + 200, "hot.src", 1).piece(cold).add(*all.dump) == 0);
        usleep(step_us / 10);
    }
    return nullptr;
}

/* Polls until the dump is on, or off. */
template <class EmitAll> void await(const perfjit::dump &dump, bool on, EmitAll &&emit_all)
{
    while (static_cast<bool>(dump) != on) {
        usleep(step_us);
        CHECK(dump.poll(emit_all) == 0);
    }
}

void check_off()
{
    const perfjit::dump off;
    teller none;
    CHECK(off.poll(none) == 0 && off.poll(&tell) == 0 && off.poll(tell) == 0 && off.poll() == 0 && none.calls == 0);
    CHECK(off.poll_word() == perfjit::dump().poll_word() && *off.poll_word() == 0);
}

} // namespace

int main()
{
    sigset_t end;
    int number = 0;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    CHECK(pthread_sigmask(SIG_BLOCK, &end, nullptr) == 0);
    alarm(life_seconds);
    check_off();
    perfjit::dump opened;
    CHECK(opened.open(JITDUMP_ATTACHABLE) == 0);
    const perfjit::dump dump = std::move(opened);
    CHECK(!dump && dump.get() && *dump.error() == '\0' && *dump.poll_word() == 0);
    CHECK(dump.poll_word() != perfjit::dump().poll_word());
    std::uint64_t index = 0;
    CHECK(perfjit::function("none", code, 16).add(dump, &index) == 0 && index == JITDUMP_NO_CODE);
    CHECK(dump.add("none", code, 16, &index) == 0 && index == JITDUMP_NO_CODE);
    adder beside = {&dump, {false}};
    pthread_t thread;
    CHECK(pthread_create(&thread, nullptr, add_on, &beside) == 0);
    std::printf("%d\n", getpid());
    std::fflush(stdout);
    unsigned by_lambda = 0;
    auto lambda = [&](const perfjit::dump &asked) noexcept {
        CHECK(&asked == &dump);
        tell(asked);
        by_lambda++;
    };
    await(dump, true, lambda);
    await(dump, false, lambda);
    teller by_object;
    await(dump, true, by_object);
    await(dump, false, std::move(by_object)); // NOLINT: it is used, not taken
    beside.stop = true;
    CHECK(pthread_join(thread, nullptr) == 0);
    CHECK(by_lambda == 1 && by_object.calls == 1 && dump.lost() == 0);
    std::printf("asked twice\n");
    std::fflush(stdout);
    return sigwait(&end, &number) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
