/* jitdump/cfi.h for C++17 and later: an owning class for the builder of unwind tables, and frames
 * made by setters.  There is only this header.  jitdump.hpp includes it, and documents what holds
 * for both.
 *
 *     perfjit::cfi cfi(JITDUMP_HOST_ARCH);
 *     cfi.frame(perfjit::frame::pointer().saved(JITDUMP_RBX).stack_bytes(32).epilogues(0x4a));
 *     jitdump_unwind unwind;
 *     if (cfi.finish(code_size, unwind) == 0)
 *         code.unwind = &unwind;
 *
 * Since 0.2.0. */
#ifndef JITDUMP_CFI_HPP
#define JITDUMP_CFI_HPP

#include "cfi.h"

#include <cstddef>
#include <cstdint>
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

/* A conversion that no compiler calls useless. */
template <class To, class From> constexpr To as(From from) noexcept
{
    if constexpr (std::is_same_v<To, From>)
        return from;
    else
        return static_cast<To>(from);
}

} // namespace detail

/* struct jitdump_frame, made by setters instead of C's JITDUMP_SAVED and JITDUMP_EPILOGUES. */
class frame
{
    static constexpr std::size_t epilogues_held = 16;

  public:
    explicit frame(jitdump_frame_kind kind) noexcept
    {
        frame_.kind = kind;
    }
    static frame leaf() noexcept
    {
        return frame(JITDUMP_FRAME_LEAF);
    }
    static frame pointer() noexcept
    {
        return frame(JITDUMP_FRAME_POINTER);
    }
    static frame stack() noexcept
    {
        return frame(JITDUMP_FRAME_STACK);
    }

    /* JITDUMP_FRAME_ENTERED | ... */
    frame &flags(std::uint32_t flags) noexcept
    {
        frame_.flags = flags;
        return *this;
    }
    /* Registers in the order they are pushed, by their DWARF numbers. */
    template <class... Registers> frame &saved(Registers... registers) noexcept
    {
        static_assert(sizeof...(registers) <= JITDUMP_FRAME_SAVED_MAX);
        frame_.saved_count = 0;
        (add_saved(detail::as<unsigned>(registers)), ...);
        return *this;
    }
    /* One more register, if they are known only at run time.  jitdump_cfi_frame refuses the frame
     * if there are too many, or a number is not a register's. */
    frame &add_saved(unsigned reg) noexcept
    {
        if (frame_.saved_count < JITDUMP_FRAME_SAVED_MAX)
            frame_.saved[frame_.saved_count] =
                static_cast<std::uint8_t>(reg <= UINT8_MAX ? reg : UINT8_MAX);
        frame_.saved_count++;
        return *this;
    }
    frame &stack_bytes(std::uint32_t bytes) noexcept
    {
        frame_.stack_bytes = bytes;
        return *this;
    }
    frame &prologue(std::uint64_t offset) noexcept
    {
        frame_.prologue = offset;
        return *this;
    }
    /* Registers in slots of the frame, which are copied: slots({{JITDUMP_RBX, 8}, {JITDUMP_R12,
     * 16}}). */
    template <std::size_t count> frame &slots(const jitdump_slot (&slots)[count]) noexcept
    {
        frame_.slot_count = 0;
        for (const jitdump_slot &slot : slots)
            add_slot(slot.reg, slot.offset);
        return *this;
    }
    /* One more slot.  With more than JITDUMP_FRAME_SLOTS_MAX the frame is refused. */
    frame &add_slot(unsigned reg, std::int32_t offset) noexcept
    {
        if (frame_.slot_count < JITDUMP_FRAME_SLOTS_MAX)
            slots_[frame_.slot_count] = {detail::as<std::uint32_t>(reg), offset};
        frame_.slot_count++;
        return *this;
    }
    /* The code offset of the first slot's store, if other code comes before it. */
    frame &slots_at(std::uint64_t offset) noexcept
    {
        frame_.slots_at = offset;
        return *this;
    }
    /* Code offsets, ascending; the frame keeps them. */
    template <class... Offsets, class = std::enable_if_t<(std::is_integral_v<Offsets> && ...)>>
    frame &epilogues(Offsets... offsets) noexcept
    {
        static_assert(sizeof...(offsets) <= epilogues_held, "pass an array");
        frame_.epilogues = nullptr;
        frame_.epilogue_count = 0;
        ((held_[frame_.epilogue_count++] = detail::as<std::uint64_t>(offsets)), ...);
        return *this;
    }
    /* The same as an array, which must live as long as the frame is used. */
    frame &epilogues(const std::uint64_t *offsets, std::size_t count) noexcept
    {
        frame_.epilogues = offsets;
        frame_.epilogue_count = count;
        return *this;
    }
#if defined(__cpp_lib_span)
    frame &epilogues(std::span<const std::uint64_t> offsets) noexcept
    {
        return epilogues(offsets.data(), offsets.size());
    }
#endif

    /* For calls of cfi.h; valid as long as this frame. */
    jitdump_frame get() const noexcept
    {
        jitdump_frame whole = frame_;
        if (!whole.epilogues && whole.epilogue_count)
            whole.epilogues = held_;
        if (whole.slot_count)
            whole.slots = slots_;
        return whole;
    }

    /* jitdump_cfi_prologue_bytes and jitdump_cfi_epilogue_bytes. */
    int prologue_bytes(jitdump_arch arch) const noexcept
    {
        const jitdump_frame whole = get();
        return jitdump_cfi_prologue_bytes(arch, &whole);
    }
    int epilogue_bytes(jitdump_arch arch) const noexcept
    {
        const jitdump_frame whole = get();
        return jitdump_cfi_epilogue_bytes(arch, &whole);
    }

  private:
    jitdump_frame frame_ = {};
    std::uint64_t held_[epilogues_held] = {};
    jitdump_slot slots_[JITDUMP_FRAME_SLOTS_MAX] = {};
};

/* A builder of unwind tables.  Errors stick, and a builder without memory accepts all calls: only
 * the result of `finish` needs a check. */
class cfi
{
  public:
    explicit cfi(jitdump_arch arch) noexcept : cfi_(jitdump_cfi_new(arch))
    {
    }
    explicit cfi(std::nullptr_t) noexcept : cfi_(nullptr)
    {
    } /* as if there were no memory */
    cfi(const cfi &) = delete;
    cfi &operator=(const cfi &) = delete;
    cfi(cfi &&other) noexcept : cfi_(std::exchange(other.cfi_, nullptr))
    {
    }
    cfi &operator=(cfi &&other) noexcept
    {
        if (this != &other) {
            jitdump_cfi_free(cfi_);
            cfi_ = std::exchange(other.cfi_, nullptr);
        }
        return *this;
    }
    ~cfi()
    {
        jitdump_cfi_free(cfi_);
    }

    cfi &reset() noexcept
    {
        jitdump_cfi_reset(cfi_);
        return *this;
    }
    /* jitdump_cfi_begin: code offsets count from the buffer's first byte from now on. */
    cfi &begin(std::uint64_t at) noexcept
    {
        jitdump_cfi_begin(cfi_, at);
        return *this;
    }
    cfi &block(std::uint64_t start, std::uint64_t bytes) noexcept
    {
        jitdump_cfi_block(cfi_, start, bytes);
        return *this;
    }
    cfi &frame(const perfjit::frame &frame) noexcept
    {
        const jitdump_frame whole = frame.get();
        jitdump_cfi_frame(cfi_, &whole);
        return *this;
    }

    /* The directives, each named as the assembler's. */
    cfi &def_cfa(std::uint64_t at, unsigned reg, std::int64_t offset) noexcept
    {
        jitdump_cfi_def_cfa(cfi_, at, reg, offset);
        return *this;
    }
    cfi &def_cfa_register(std::uint64_t at, unsigned reg) noexcept
    {
        jitdump_cfi_def_cfa_register(cfi_, at, reg);
        return *this;
    }
    cfi &def_cfa_offset(std::uint64_t at, std::int64_t offset) noexcept
    {
        jitdump_cfi_def_cfa_offset(cfi_, at, offset);
        return *this;
    }
    cfi &adjust_cfa_offset(std::uint64_t at, std::int64_t delta) noexcept
    {
        jitdump_cfi_adjust_cfa_offset(cfi_, at, delta);
        return *this;
    }
    cfi &offset(std::uint64_t at, unsigned reg, std::int64_t offset) noexcept
    {
        jitdump_cfi_offset(cfi_, at, reg, offset);
        return *this;
    }
    cfi &rel_offset(std::uint64_t at, unsigned reg, std::int64_t offset) noexcept
    {
        jitdump_cfi_rel_offset(cfi_, at, reg, offset);
        return *this;
    }
    cfi &val_offset(std::uint64_t at, unsigned reg, std::int64_t offset) noexcept
    {
        jitdump_cfi_val_offset(cfi_, at, reg, offset);
        return *this;
    }
    cfi &in_register(std::uint64_t at, unsigned reg, unsigned where) noexcept /* .cfi_register */
    {
        jitdump_cfi_register(cfi_, at, reg, where);
        return *this;
    }
    cfi &same_value(std::uint64_t at, unsigned reg) noexcept
    {
        jitdump_cfi_same_value(cfi_, at, reg);
        return *this;
    }
    cfi &undefined(std::uint64_t at, unsigned reg) noexcept
    {
        jitdump_cfi_undefined(cfi_, at, reg);
        return *this;
    }
    cfi &restore(std::uint64_t at, unsigned reg) noexcept
    {
        jitdump_cfi_restore(cfi_, at, reg);
        return *this;
    }
    cfi &remember_state(std::uint64_t at) noexcept
    {
        jitdump_cfi_remember_state(cfi_, at);
        return *this;
    }
    cfi &restore_state(std::uint64_t at) noexcept
    {
        jitdump_cfi_restore_state(cfi_, at);
        return *this;
    }
    cfi &escape(std::uint64_t at, const void *bytes, std::size_t size) noexcept
    {
        jitdump_cfi_escape(cfi_, at, bytes, size);
        return *this;
    }
    int import(const void *eh_frame, std::size_t size, std::uint64_t section_addr,
               std::uint64_t code_addr, std::uint64_t code_size) noexcept
    {
        return jitdump_cfi_import(cfi_, eh_frame, size, section_addr, code_addr, code_size);
    }

    /* jitdump_cfi_finish.  The bytes of UNWIND belong to this builder. */
    int finish(std::uint64_t code_size, jitdump_unwind &unwind) noexcept
    {
        return jitdump_cfi_finish(cfi_, code_size, &unwind);
    }
    /* jitdump_cfi_end.  The bytes belong to this builder until `reset`. */
    int end(std::uint64_t at, jitdump_unwind &unwind) noexcept
    {
        return jitdump_cfi_end(cfi_, at, &unwind);
    }
    const char *error() const noexcept
    {
        return jitdump_cfi_error(cfi_);
    }

    /* jitdump_cfi_check: whether the description fits the CODE_SIZE BYTES.  `checked` has the text.
     */
    int check(const void *bytes, std::uint64_t code_size) noexcept
    {
        return jitdump_cfi_check(cfi_, bytes, code_size);
    }
    const char *checked() const noexcept
    {
        return jitdump_cfi_checked(cfi_);
    }

    /* For calls of cfi.h; the builder keeps it. */
    jitdump_cfi *get() const noexcept
    {
        return cfi_;
    }

  private:
    jitdump_cfi *cfi_;
};

} // namespace perfjit

#endif
