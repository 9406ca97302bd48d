/* The jitdump file format: offsets and numbers, for writer and reader alike.
 *
 * Integers are in the byte order of the machine that wrote the file; the magic tells which.
 * Nothing is aligned: records follow one another byte after byte.
 *
 * File header, 40 bytes
 *      0 u32 magic             "DTiJ" in a little-endian file, "JiTD" in a big-endian one
 *      4 u32 version           1
 *      8 u32 total_size        40; perf up to 7.0 reads no other value
 *     12 u32 elf_mach          e_machine of the code
 *     16 u32 pad1              0, or how close timestamp is to the marker: 0x504a in the upper
 *                              half, and in the lower one the most that the two can be apart, in
 *                              units of timestamp (an extension; perf and other readers ignore the
 *                              field)
 *     20 u32 pid
 *     24 u64 timestamp
 *     32 u64 flags             bit 0: timestamps are cycles of the CPU's counter, not
 *                              CLOCK_MONOTONIC ns
 *
 * Record prefix, 16 bytes
 *      0 u32 id
 *      4 u32 total_size        of the record, prefix included
 *      8 u64 timestamp
 *
 * 0 CODE_LOAD, 56 bytes and more
 *     16 u32 pid
 *     20 u32 tid
 *     24 u64 vma
 *     32 u64 code_addr
 *     40 u64 code_size
 *     48 u64 code_index
 *     56     name             NUL-terminated
 *            code             the last code_size bytes of the record
 *
 * 1 CODE_MOVE, 64 bytes
 *     16 u32 pid, 20 u32 tid, 24 u64 vma
 *     32 u64 old_code_addr
 *     40 u64 new_code_addr
 *     48 u64 code_size
 *     56 u64 code_index
 *
 * 2 CODE_DEBUG_INFO, 32 bytes and more
 *     16 u64 code_addr
 *     24 u64 nr_entry
 *     32     entries           each u64 addr, u32 line, u32 discrim, name NUL-terminated
 *
 * 3 CODE_CLOSE, 16 bytes
 *
 * 4 CODE_UNWINDING_INFO, 40 bytes and more
 *     16 u64 unwinding_size
 *     24 u64 eh_frame_hdr_size
 *     32 u64 mapped_size
 *     40     .eh_frame, then .eh_frame_hdr (the specification's text says the opposite; perf reads
 *            this)
 *
 * Extensions of this project; every reader that skips unknown ids by total_size can read the file.
 *
 * 0x504a0001 CODE_UNLOAD, 48 bytes
 *     16 u32 pid, 20 u32 tid
 *     24 u64 code_addr
 *     32 u64 code_size
 *     40 u64 code_index
 *
 * 0x504a0002 FILLER, 16 bytes and more: readers ignore its contents and its timestamp.  A dump that
 * was not closed has one after its body, and up to three more after that (jitdump/README.md).  A
 * closed dump has none.
 *
 * 0x504a0003 CODE_INLINE_INFO, 40 bytes and more: which calls were inlined in the function whose
 * CODE_LOAD follows in the same group
 *     16 u64 code_addr        of that function; a reader matches by it
 *     24 u32 nr_inline
 *     28 u32 nr_span
 *     32 u32 strings_bytes
 *     36 u32 pad1             0
 *     40     inlines          nr_inline times 28 bytes: u32 parent, u32 call_file, u32 call_line,
 *                             u32 call_column, u32 name, u32 decl_file, u32 decl_line
 *            spans            nr_span times 8 bytes: u32 code_offset, u32 inline_index
 *            strings          strings_bytes bytes, the last of them NUL
 * parent: the index of an earlier inline, or JIT_INLINE_NONE: inlined straight into the function.
 * call_*: where in the parent (or the function) the call stands; line and column 0: not known.
 * name: of the callee.  decl_file, decl_line: where the callee is defined; JIT_INLINE_NONE and 0:
 * not known.  call_file, name and decl_file are offsets into strings, of a NUL-terminated string
 * each; JIT_INLINE_NONE: none, but not for name. spans: strictly ascending by code_offset.  From
 * code_offset up to the next span's, or the function's end, the instructions belong to inline
 * inline_index, the innermost one.  JIT_INLINE_NONE is the function itself.  In front of the first
 * span: the function itself.  The record is valid if all of these hold: the sizes add up to
 * total_size.  Strings end with NUL, or there are none and nr_inline is 0.  Each parent is none, or
 * smaller than its child's own index.  The offsets lie in strings.  The spans ascend.  Each
 * inline_index is none, or smaller than nr_inline.  A code_offset of code_size or more contradicts
 * the CODE_LOAD.
 *
 * 0x504a0004 CODE_PIECE, 40 bytes: the CODE_LOAD that follows in the same group is a piece of a
 * function that has several
 *     16 u64 code_addr        of that piece; a reader matches by it
 *     24 u64 code_index       of the function: of its piece 0
 *     32 u32 number           of this piece, from 0; its CODE_LOAD has code_index + number
 *     36 u32 nr_piece         2 or more; larger than number
 * The pieces of a function are one group, ascending by number; one without code has no records.  A
 * CODE_UNLOAD of piece 0 unloads the whole function.  A CODE_UNLOAD of another piece unloads only
 * that piece.
 *
 * 0x504a0005 CODE_HISTORY, 40 bytes: the first record of a dump that was rewritten to stay within a
 * bound (JITDUMP_RING).  Of the functions that were logged before timestamp, the dump has only
 * those that were alive then.  Their records follow, with earlier timestamps
 *      8 u64 timestamp         from here on everything that was logged is in the dump
 *     16 u64 generation        how often it has been rewritten; 0: not yet, and the rest is 0
 *     24 u64 dropped           functions that were logged before and are no longer in the dump
 *     32 u64 kept              functions from before that are in it
 *
 * 0x504a0006 INTERPRETER_FRAME, 48 bytes: where the frames of an interpreter say which function
 * they are of
 *     16 u64 code_addr        of the interpreter's code
 *     24 u64 code_size
 *     32 u32 frame_register   DWARF's number of the register that the frame is found by
 *     36 i32 function_offset  from there, of the word that stands for the function
 *     40 i32 position_offset  from there, of the word with the address of the function's
 *                             instruction at hand; 0: there is none
 *     44 u32 position_register  DWARF's number of the register that has this address while the
 *                             interpreter runs, and may have anything else in its stubs;
 *                             0xffffffff: there is none
 * It holds for the whole dump, whenever it was written.
 *
 * 0x504a0007 INTERPRETED_FUNCTION, 48 bytes and more: a function that such frames may be of
 *     16 u64 function         the word that stands for it: an address
 *     24 u32 function_bytes   what is there: a newer function that overlaps it took its memory
 *     28 u32 position_bytes   of its instructions; 0: it is native
 *     32 u64 position         the address of the first one
 *     40 u32 nr_line
 *     44 u32 lines_bytes
 *     48     name             NUL-terminated
 *            file             NUL-terminated; "": not known
 *            lines            lines_bytes bytes: nr_line times uleb128 distance of the instruction
 *                             from the row before (the first one: from position), sleb128
 *                             difference of the line (the first one: from 0)
 * A function is known from timestamp on, until another one of the same word is.  The first one of a
 * word is also right for earlier frames: it may have been there before the dump.
 *
 * Order in a group: [CODE_PIECE] [CODE_UNWINDING_INFO] [CODE_INLINE_INFO] [CODE_DEBUG_INFO]
 * CODE_LOAD, once or for each piece.
 *
 * A record is valid if total_size is at least its fixed size, lies inside the file, and holds the
 * variable part that its counts announce.  A prefix of zeros is room that was never used: the end.
 */
#ifndef JITDUMP_FORMAT_H
#define JITDUMP_FORMAT_H

#include <stdint.h>

enum {
    JITDUMP_MAGIC = 0x4a695444,
    JITDUMP_MAGIC_SWAPPED = 0x4454694a,
    JITDUMP_FILE_VERSION = 1,
};

/* The other 63 bits are reserved: 0. */
enum { JITDUMP_FLAG_ARCH_TIMESTAMP = 1 };

enum {
    JIT_CODE_LOAD = 0,
    JIT_CODE_MOVE = 1,
    JIT_CODE_DEBUG_INFO = 2,
    JIT_CODE_CLOSE = 3,
    JIT_CODE_UNWINDING_INFO = 4,
    JIT_CODE_UNLOAD = 0x504a0001,
    JIT_FILLER = 0x504a0002,
    JIT_CODE_INLINE_INFO = 0x504a0003,
    JIT_CODE_PIECE = 0x504a0004,
    JIT_CODE_HISTORY = 0x504a0005,
    JIT_INTERPRETER_FRAME = 0x504a0006,
    JIT_INTERPRETED_FUNCTION = 0x504a0007,
};

/* No inline, no string. */
#define JIT_INLINE_NONE UINT32_MAX

/* No register. */
#define JIT_REGISTER_NONE UINT32_MAX

/* Fixed sizes, in bytes. */
enum {
    JITHEADER_BYTES = 40,
    JITHEADER_PAD1 = 16,
    JITHEADER_TIMESTAMP = 24,
    JITHEADER_PAD1_TAG = 0x504a,
    JR_PREFIX_BYTES = 16,
    JR_CODE_LOAD_BYTES = 56,
    JR_CODE_LOAD_INDEX = 48,
    JR_CODE_MOVE_BYTES = 64,
    JR_CODE_DEBUG_INFO_BYTES = 32,
    JR_DEBUG_ENTRY_BYTES = 16, /* and the name with its NUL */
    JR_CODE_CLOSE_BYTES = 16,
    JR_CODE_UNWINDING_INFO_BYTES = 40,
    JR_CODE_UNLOAD_BYTES = 48,
    JR_CODE_INLINE_INFO_BYTES = 40,
    JR_CODE_PIECE_BYTES = 40,
    JR_CODE_PIECE_INDEX = 24,
    JR_CODE_PIECE_NUMBER = 32,
    JR_INLINE_BYTES = 28,
    JR_INLINE_SPAN_BYTES = 8,
    JR_CODE_HISTORY_BYTES = 40,
    JR_INTERPRETER_FRAME_BYTES = 48,
    JR_INTERPRETED_FUNCTION_BYTES = 48,
};

#endif
