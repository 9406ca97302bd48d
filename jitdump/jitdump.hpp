/* libjitdump for C++17 and later: the calls of jitdump.h and jitdump/cfi.h with owning classes,
 * string views and, from C++20 on, spans.  There is only this header; link libjitdump as for C.
 *
 *     perfjit::dump dump;
 *     if (dump.open() != 0)                            // off unless PERFJIT=dump is set
 *         warnx("%s", dump.error());                   // off from now on
 *     ...
 *     if (dump) {
 *         perfjit::function function("fib", entry, entry_bytes);
 *         function.line(entry, "fib.src", 3).line(entry + 8, "fib.src", 4, 12);
 *         function.frame(perfjit::frame::pointer().saved(JITDUMP_RBX).stack_bytes(32).epilogues(0x4a));
 *         function.add(dump);                          // once, before the code first runs
 *     }
 *
 * jitdump.h and cfi.h document the calls: effects, errors, threads, forks, signals and stopped
 * threads.  This header documents what C++ adds.
 *
 * Errors: 0 or a negative errno, as in C.  Nothing throws, so programs without exceptions can use
 * this header.  Memory comes from malloc; if there is none, a call returns -ENOMEM.  Constructors
 * can't fail.
 *
 * Ownership: dump, function and cfi own their contents.  They can be moved, but not copied.  A
 * moved-from dump is off, other moved-from objects are empty.  Strings and arrays are copied before
 * a call returns, unless stated otherwise.  A string ends at the end of its view, or at a NUL in
 * it.
 *
 * Threads: any number at once on one dump, except for open, close, moving it and the destructor.
 * Only one thread at a time may use a function, cfi or frame.
 *
 * On and off while it runs (jitdump_poll in jitdump.h):
 *
 *     dump.open(JITDUMP_ATTACHABLE);                   // opens no dump yet
 *     ...
 *     dump.poll([&](const perfjit::dump &asked) noexcept {   // at a safe point, often
 *         const std::lock_guard lock(runtime.mutex);
 *         for (auto &compiled : runtime.functions)
 *             compiled.log(asked);                     // function.add(asked), as ever
 *     });
 *
 * The names here are inline: this header adds no symbol to an ABI.  Since 0.2.0. */
#ifndef JITDUMP_HPP
#define JITDUMP_HPP

#include "cfi.hpp"
#include "memory.hpp"
#include "trampoline.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif

namespace perfjit
{

namespace detail
{

inline std::uint64_t address(const void *code) noexcept
{
    return reinterpret_cast<std::uintptr_t>(code);
}

inline std::uint64_t address(std::uint64_t code) noexcept
{
    return code;
}

} // namespace detail

/* An open dump, or none.  `if (dump)` tests whether functions are recorded: names need not be built
 * otherwise.  If the dump can be requested later, another thread may change the result at any time.
 * The destructor closes the dump. */
class dump
{
  public:
    dump() noexcept = default;
    dump(const dump &) = delete;
    dump &operator=(const dump &) = delete;
    dump(dump &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), failed_(std::exchange(other.failed_, 0))
    {
    }
    dump &operator=(dump &&other) noexcept
    {
        if (this != &other) {
            close();
            handle_ = std::exchange(other.handle_, nullptr);
            failed_ = std::exchange(other.failed_, 0);
        }
        return *this;
    }
    ~dump()
    {
        close();
    }

    /* jitdump_open.  A dump that is open is closed first.  After a failure `error` says why, calls
     * return the same errno, and `!dump` is true. */
    int open(const jitdump_options &options) noexcept
    {
        close();
        failed_ = jitdump_open(&handle_, &options);
        return failed_;
    }
    int open(std::uint32_t flags = 0, std::uint64_t max_bytes = 0) noexcept
    {
        jitdump_options options = JITDUMP_OPTIONS_INIT;
        options.flags = flags;
        options.max_bytes = max_bytes;
        return open(options);
    }

    /* jitdump_close.  The dump is off then. */
    int close() noexcept
    {
        failed_ = 0;
        return jitdump_close(std::exchange(handle_, nullptr));
    }

    explicit operator bool() const noexcept
    {
        return handle_ != nullptr && failed_ == 0 && jitdump_is_on(handle_) != 0;
    }

    /* jitdump_poll: serves a pending request.  It opens the dump and calls EMIT_ALL(*this), or
     * closes the dump.  EMIT_ALL is a lambda or anything else that takes a const dump &, and adds
     * all code that is alive.  It is used only during this call and not copied, and its result is
     * ignored.
     *
     * Exceptions must not pass through the C library.  So EMIT_ALL must be noexcept if exceptions
     * are on, else this does not compile.  An exception that leaves it all the same ends the
     * process, as for any noexcept function.  EMIT_ALL must return and must not fork.  It may call
     * all members of a const dump; `poll` does nothing in it.  It must not open, close or move the
     * dump; a const dump has no such members. */
    template <class EmitAll> int poll(EmitAll &&emit_all) const noexcept
    {
        static_assert(std::is_invocable_v<EmitAll &, const dump &>,
                      "poll: what emits all code takes a const perfjit::dump &");
#if defined(__cpp_exceptions)
        static_assert(std::is_nothrow_invocable_v<EmitAll &, const dump &>,
                      "poll: what emits all code must be noexcept");
#endif
        struct asked {
            const dump *self;
            std::remove_reference_t<EmitAll> *emit_all;
        } call = {this, std::addressof(emit_all)};
        jitdump_emit *const emit = [](::jitdump *, void *user) noexcept {
            const asked &all = *static_cast<const asked *>(user);
            static_cast<void>((*all.emit_all)(*all.self));
        };
        return jitdump_poll(handle_, emit, &call);
    }
    /* For a runtime that has no code yet. */
    int poll() const noexcept
    {
        return jitdump_poll(handle_, nullptr, nullptr);
    }
    /* jitdump_poll_word, for compiled code that tests the word. */
    const volatile std::uint32_t *poll_word() const noexcept
    {
        return jitdump_poll_word(handle_);
    }

    /* Never NULL.  Valid as long as the dump is open. */
    const char *error() const noexcept
    {
        return jitdump_error(handle_);
    }
    const char *path() const noexcept
    {
        return jitdump_path(handle_);
    }
    std::uint64_t lost() const noexcept
    {
        return jitdump_lost(handle_);
    }
    std::uint64_t unreadable() const noexcept
    {
        return jitdump_unreadable(handle_);
    }
    std::uint64_t faults() const noexcept
    {
        return jitdump_faults(handle_);
    }

    /* jitdump_add_code, for callers that fill in the struct themselves. */
    int add(const jitdump_code &code, std::uint64_t *code_index = nullptr) const noexcept
    {
        return jitdump_add_code(handle_, &code, code_index);
    }

    /* A function with only a name.  If there is no memory for a long name, it is cut to 255 bytes.
     */
    int add(std::string_view name, const void *code, std::uint64_t code_size,
            std::uint64_t *code_index = nullptr) const noexcept
    {
        char text[256];
        void *memory =
            name.size() < sizeof text || !handle_ ? nullptr : std::malloc(name.size() + 1);
        char *copy = memory ? static_cast<char *>(memory) : text;
        const std::size_t most = memory ? name.size() : sizeof text - 1;
        copy[name.copy(copy, most)] = '\0';
        const int result = jitdump_add(handle_, copy, code, code_size, code_index);
        std::free(memory);
        return result;
    }
#if defined(__cpp_lib_span)
    int add(std::string_view name, std::span<const std::byte> code,
            std::uint64_t *code_index = nullptr) const noexcept
    {
        return add(name, code.data(), code.size(), code_index);
    }
#endif

    /* jitdump_move_code and jitdump_unload_code.  Addresses are pointers or uint64_t. */
    template <class Old, class New>
    int move(std::uint64_t code_index, Old old_code, New new_code,
             std::uint64_t code_size) const noexcept
    {
        return jitdump_move_code(handle_, code_index, detail::address(old_code),
                                 detail::address(new_code), code_size);
    }
    int move_pieces(std::uint64_t code_index, const jitdump_piece_move *moves,
                    std::size_t count) const noexcept
    {
        return jitdump_move_pieces(handle_, code_index, moves, count);
    }
#if defined(__cpp_lib_span)
    int move_pieces(std::uint64_t code_index,
                    std::span<const jitdump_piece_move> moves) const noexcept
    {
        return move_pieces(code_index, moves.data(), moves.size());
    }
#endif
    template <class Code>
    int unload(std::uint64_t code_index, Code code, std::uint64_t code_size) const noexcept
    {
        return jitdump_unload_code(handle_, code_index, detail::address(code), code_size);
    }

    /* jitdump_trampoline: the code to call instead of ENTRY. */
    template <class Result, class... Arguments>
    auto trampoline(std::string_view name, std::string_view file, std::uint32_t line,
                    Result (*entry)(Arguments...)) const noexcept
    {
        detail::text_pool texts;
        auto *call = reinterpret_cast<jitdump_entry *>(entry);
        if (handle_)
            call = jitdump_trampoline(handle_, texts.copy(name), texts.copy(file), line, call);
        return reinterpret_cast<Result (*)(Arguments...)>(call);
    }
    /* For calls of jitdump.h; the dump keeps it. */
    ::jitdump *get() const noexcept
    {
        return handle_;
    }

  private:
    friend class function;
    /* The result of an add if nothing can be recorded. */
    int add_none(std::uint64_t *code_index) const noexcept
    {
        if (code_index)
            *code_index = JITDUMP_NO_CODE;
        return failed_;
    }

    ::jitdump *handle_ = nullptr;
    int failed_ = 0; /* result of opening it */
};

/* Everything about one function, collected step by step.  `reset` begins another function in the
 * same memory.
 *
 * If memory runs out or a frame is wrong, the function is recorded all the same, by its name.
 * `add` then leaves out its lines with the inlined calls, or its tables, and returns the error. */
class function
{
  public:
    function() noexcept = default;
    function(function &&other) noexcept
    {
        *this = std::move(other);
    }
    function &operator=(function &&other) noexcept
    {
        if (this == &other)
            return *this;
        forget();
        std::swap(code_, other.code_);
        std::swap(texts_, other.texts_);
        std::swap(lines_, other.lines_);
        std::swap(line_inlines_, other.line_inlines_);
        std::swap(inlines_, other.inlines_);
        std::swap(unwind_, other.unwind_);
        std::swap(has_unwind_, other.has_unwind_);
        std::swap(pieces_, other.pieces_);
        std::swap(error_, other.error_);
        std::swap(short_name_, other.short_name_);
        return *this;
    }
    function(std::string_view name, const void *code, std::uint64_t code_size) noexcept
    {
        reset(name, code, code_size);
    }
#if defined(__cpp_lib_span)
    function(std::string_view name, std::span<const std::byte> code) noexcept
        : function(name, code.data(), code.size())
    {
    }
#endif

    /* CODE_SIZE bytes at CODE.  They run there, and can be read there when `add` is called. */
    function &reset(std::string_view name, const void *code, std::uint64_t code_size) noexcept
    {
        forget();
        code_.name = texts_.copy(name);
        if (!code_.name) /* `add` passes what there is room for */
            short_name_[name.copy(short_name_, sizeof short_name_ - 1)] = '\0';
        code_.code_addr = detail::address(code);
        code_.code_size = code_size;
        code_.bytes = code;
        return *this;
    }

    /* The address at which the code runs, if its bytes are read elsewhere. */
    template <class Code> function &runs_at(Code code) noexcept
    {
        code_.code_addr = detail::address(code);
        return *this;
    }

    /* JITDUMP_RELATIVE: rows have offsets instead of addresses.  They count from the function's
     * first byte, or from the first byte of a buffer in which the function begins at BUFFER_OFFSET.
     */
    function &relative(std::uint64_t buffer_offset = 0) noexcept
    {
        code_.flags |= JITDUMP_RELATIVE;
        code_.buffer_offset = buffer_offset;
        return *this;
    }

    /* Another piece of this function: code, lines and frame of COLD, without its name.  It must
     * stay until `add`. */
    function &piece(function &cold) noexcept
    {
        if (!pieces_.add(&cold))
            error_ = -ENOMEM;
        return *this;
    }

    /* A row of the line table.  ADDR, a pointer or uint64_t, is the address at which its first
     * instruction runs.  INLINED is the result of `inlined` for the call that the row belongs to.
     */
    template <class Code>
    function &line(Code addr, std::string_view file, std::uint32_t line, std::uint32_t column = 0,
                   std::uint32_t inlined = JITDUMP_NOT_INLINED) noexcept
    {
        const jitdump_line row = {detail::address(addr), copy_file(file), line, column};
        if (!row.file || !lines_.add(row) || !line_inlines_.add(inlined))
            error_ = -ENOMEM;
        return *this;
    }

    /* A call that the compiler inlined.  Add its parents first.  Returns the index for its rows and
     * children. */
    std::uint32_t inlined(std::string_view name, std::string_view call_file,
                          std::uint32_t call_line, std::uint32_t call_column = 0,
                          std::string_view decl_file = {}, std::uint32_t decl_line = 0,
                          std::uint32_t parent = JITDUMP_NOT_INLINED) noexcept
    {
        const jitdump_inline call = {texts_.copy(name),
                                     texts_.copy(call_file),
                                     texts_.copy(decl_file),
                                     call_line,
                                     call_column,
                                     decl_line,
                                     parent};
        if (!call.name || !call.call_file || !call.decl_file || !inlines_.add(call))
            error_ = -ENOMEM;
        return static_cast<std::uint32_t>(inlines_.size() - 1);
    }

#if defined(JITDUMP_HOST_ARCH)
    /* Describe the code's frame, for this machine: in one line, or by directives. */
    function &frame(const perfjit::frame &frame) noexcept
    {
        unwind().frame(frame);
        return *this;
    }
    cfi &unwind() noexcept
    {
        has_unwind_ = true;
        if (!unwind_.get())
            unwind_ = cfi(JITDUMP_HOST_ARCH);
        return unwind_;
    }
#endif

    /* Record it, as jitdump_add_code does.  If no dump is open, this is only a test.  If another
     * thread opens a dump meanwhile, `poll`'s EMIT_ALL adds the whole function to it. */
    int add(const dump &to, std::uint64_t *code_index = nullptr) noexcept
    {
        if (!to)
            return to.add_none(code_index);
        int wrong = 0;
        detail::list<jitdump_code> parts;
        jitdump_code code = describe(wrong);
        for (std::size_t i = 0; i < pieces_.size(); i++) {
            jitdump_code part = pieces_.data()[i]->describe(wrong);
            part.name = nullptr;
            if (!parts.add(part))
                wrong = -ENOMEM;
        }
        code.pieces = parts.data();
        code.piece_count = parts.size();
        const int result = to.add(code, code_index);
        return result ? result : wrong;
    }

    /* The error in its frame, or "". */
    const char *unwind_error() const noexcept
    {
        return has_unwind_ ? jitdump_cfi_error(unwind_.get()) : "";
    }

  private:
    /* Drop everything except the memory. */
    void forget() noexcept
    {
        texts_.clear();
        lines_.clear();
        line_inlines_.clear();
        inlines_.clear();
        pieces_.clear();
        unwind_.reset();
        has_unwind_ = false;
        error_ = 0;
        code_ = JITDUMP_CODE_INIT;
        short_name_[0] = '\0';
    }
    /* Most rows are in the same file as the row before. */
    const char *copy_file(std::string_view file) noexcept
    {
        if (lines_.size() && file == lines_.last().file)
            return lines_.last().file;
        return texts_.copy(file);
    }
    /* The struct for the C library, without invalid parts.  WRONG keeps the first error. */
    jitdump_code describe(int &wrong) noexcept
    {
        jitdump_code code = code_;
        if (!code.name)
            code.name = short_name_;
        int error = error_;
        if (!error)
            put_lines(code);
        if (has_unwind_) {
            const int result = unwind_.finish(code.code_size, tables_);
            if (result == 0)
                code.unwind = &tables_;
            else if (!error)
                error = result;
        }
        if (!wrong)
            wrong = error;
        return code;
    }
    void put_lines(jitdump_code &code) const noexcept
    {
        code.lines = lines_.data();
        code.line_count = lines_.size();
        code.inlines = inlines_.data();
        code.inline_count = inlines_.size();
        code.line_inlines = line_inlines_.data();
    }

    jitdump_code code_ = JITDUMP_CODE_INIT;
    detail::text_pool texts_;
    detail::list<jitdump_line> lines_;
    detail::list<std::uint32_t> line_inlines_;
    detail::list<jitdump_inline> inlines_;
    cfi unwind_{nullptr};
    detail::list<function *> pieces_;
    jitdump_unwind tables_ = {}; /* what `add` passes */
    bool has_unwind_ = false;
    int error_ = 0;
    char short_name_[64] = "";
};

} // namespace perfjit

#endif
