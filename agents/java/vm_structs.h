/* What HotSpot knows of its code, and no event of JVMTI has: of a compiled method the tier, the
 * size of its frame, where it begins and ends; and code that has no event.  The places of these
 * fields are in tables that libjvm.so exports for debuggers (gHotSpotVMStructs).  Where a table
 * lacks a field, nothing is known. */
#ifndef PERFJIT_VM_STRUCTS_H
#define PERFJIT_VM_STRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A field: its place in the struct (or of the variable, if it is static), and its bytes. */
struct vm_field {
    uint64_t at;
    uint32_t bytes; /* 0: there is none */
    bool is_signed;
};

struct vm_structs {
    bool known; /* all fields that are needed to find code */
    struct vm_field heaps, array_length, array_data;
    struct vm_field heap_memory, heap_segmap, heap_log2_segment;
    struct vm_field space_low, space_high;
    struct vm_field block_used, block_length;
    uint64_t block_bytes, blob_bytes;
    struct vm_field name, size, code_begin, code_end, code_offset, data_offset, frame_size;
    struct vm_field state, compile_id; /* of a compiled method */
    struct vm_field tier, verified_entry, verified_entry_offset, osr_entry, entry_bci;
    struct vm_field compiled_method; /* the Method of compiled code */
    struct vm_field const_method, constants, name_index, signature_index;
    uint64_t constants_bytes; /* the pool's entries stand behind that */
    struct vm_field code_bytes;
    uint64_t method_bytes, const_method_bytes; /* the bytecodes stand behind the latter */
    struct vm_field id_number;                 /* of the method, among its class's IDs */
    struct vm_field holder;                    /* of a pool: the class */
    struct vm_field methods, method_ids;
    struct vm_field items_length, methods_data; /* the latter is a place only */
    struct vm_field threads, threads_length, threads_data;
    struct vm_field stack_base, stack_bytes; /* of a thread */
    struct vm_field symbol_length, symbol_body;
    int32_t
        sender_sp_words; /* from rbp to the caller's rsp in the interpreter's frame; 0: unknown */
};

/* FUNCTION is one of the JVM's. */
void vm_structs_read(struct vm_structs *structs, const void *function);

/* One piece of code: a compiled method, or a stub that has a frame. */
struct vm_code {
    bool is_compiled;
    uint64_t begin, end;     /* with the stubs at its end, as the perf map has it */
    int tier;                /* 0: it has none, a native method's wrapper */
    uint64_t compile_id;     /* of no other compiled method; 0: not known */
    uint64_t frame_bytes;    /* with the return address; 0: not known */
    uint64_t verified_entry; /* 0: not known */
    uint64_t osr_entry;      /* 0: there is none */
    uint64_t method;         /* 0: not known */
};

/* The code that has ADDR, which must not be unloaded meanwhile.  False: it is not known, or has
 * many pieces, as the interpreter. */
bool vm_code_find(const struct vm_structs *structs, uint64_t addr, struct vm_code *code);

/* A piece of the code heaps that is no method: stubs, adapters, buffers. */
struct vm_blob {
    uint64_t begin, end; /* of its code */
    uint64_t name;       /* where its name stands */
};

struct vm_blobs {
    struct vm_blob *items; /* owned; by address */
    size_t count, capacity;
    uint64_t method_names[2]; /* the names of what is left out; 0: none has been seen yet */
};

/* All pieces that are in use, in place of those that BLOBS has.  The heaps change meanwhile, and no
 * lock is taken: a piece may be seen half made.  False: it is not known, or this time something was
 * in the way. */
bool vm_blobs_read(const struct vm_structs *structs, struct vm_blobs *blobs);

/* Whether methods in the code heaps can be told apart by the number of their compilation. */
bool vm_methods_are_known(const struct vm_structs *structs);

typedef bool vm_method_check(void *user, uint64_t begin, uint64_t compile_id);

/* True: CHECK holds for all compiled methods that may still run.  False: not for one of them, or
 * something was in the way, as above. */
bool vm_methods_all(const struct vm_structs *structs, vm_method_check *check, void *user);

/* The piece whose code is at ADDR, or NULL. */
const struct vm_blob *vm_blobs_find(const struct vm_blobs *blobs, uint64_t addr);

enum { VM_NAME_BYTES = 256 };

/* Copy the name that stands at ADDR.  False: there is none. */
bool vm_name_copy(uint64_t addr, char name[VM_NAME_BYTES]);

/* The name and the descriptor of METHOD, a vm_code's, to be freed.  False: not known. */
bool vm_method_texts(const struct vm_structs *structs, uint64_t method, char **name,
                     char **signature);

/* The ConstMethod of METHOD; 0: not known. */
uint64_t vm_method_const(const struct vm_structs *structs, uint64_t method);

struct vm_bytecodes {
    uint64_t addr, bytes; /* bytes 0: there are none, or it is not known */
};

struct vm_bytecodes vm_method_bytecodes(const struct vm_structs *structs, uint64_t method);

#endif
