/* The entries of .eh_frame and .debug_frame, one by one: the forms that there are, and what is
 * wrong with others. */
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/eh_entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROOM = 256, ADDRESS_BYTES = 8, PC = 0x1234, CODE_BYTES = 0x40 };

static uint8_t bytes[ROOM];

/* How a section is written. */
struct form {
    bool debug, wide;
    uint8_t version;
    const char *letters;
    uint8_t data[16]; /* of the augmentation */
    size_t data_bytes;
    const char *wrong; /* with the CIE */
};

static size_t begin(struct byte_sink *sink, const struct form *form)
{
    if (form->wide)
        sink_u32(sink, UINT32_MAX);
    size_t at = sink->size;
    if (form->wide)
        sink_u64(sink, 0);
    else
        sink_u32(sink, 0);
    return at;
}

static void end(struct byte_sink *sink, const struct form *form, size_t at)
{
    const size_t length_bytes = form->wide ? 8 : 4;
    uint64_t length = sink->size - at - length_bytes;
    memcpy(sink->data + at, &length, length_bytes);
}

static void put_id(struct byte_sink *sink, const struct form *form, bool is_cie)
{
    uint64_t id = form->debug ? (is_cie ? UINT64_MAX : 0) : is_cie ? 0 : sink->size;
    if (form->debug && form->wide)
        sink_u64(sink, id);
    else
        sink_u32(sink, (uint32_t)id);
}

/* A CIE at 0 and the FDE behind it.  Returns the offset of that one. */
static size_t put_section(struct byte_sink *sink, const struct form *form)
{
    *sink = byte_sink_over(bytes, sizeof bytes);
    sink->big_endian = false;
    size_t at = begin(sink, form);
    put_id(sink, form, true);
    sink_u8(sink, form->version);
    sink_cstr(sink, form->letters);
    if (form->version == 4)
        sink_u16(sink, ADDRESS_BYTES);
    sink_uleb(sink, 1);
    sink_sleb(sink, -8);
    sink_u8(sink, 16);
    if (*form->letters == 'z') {
        sink_uleb(sink, form->data_bytes);
        sink_bytes(sink, form->data, form->data_bytes);
    }
    sink_u8(sink, 0x0a); /* remember_state */
    end(sink, form, at);
    size_t fde = sink->size;
    at = begin(sink, form);
    put_id(sink, form, false);
    sink_u64(sink, PC);
    sink_u64(sink, CODE_BYTES);
    if (*form->letters == 'z')
        sink_uleb(sink, 0);
    sink_u8(sink, 0x0b); /* restore_state */
    end(sink, form, at);
    return fde;
}

static const struct form forms[] = {
    {false, false, 1, "", {0}, 0, NULL},
    {false, false, 3, "zR", {0}, 1, NULL},
    {false, false, 4, "zR", {0}, 1, NULL},
    {false, true, 1, "zRS", {0}, 1, NULL},
    {true, false, 4, "", {0}, 0, NULL},
    {true, true, 4, "", {0}, 0, NULL},
    {false, false, 1, "zPLR", {0x9b, 1, 2, 3, 4, 0x1b, 0}, 7, NULL},
    {false, false, 1, "zPR", {EH_PE_omit, 0}, 2, NULL},
    {false, false, 1, "zPR", {EH_PE_uleb128, 0x81, 1, 0}, 4, NULL},
    {false, false, 2, "", {0}, 0, "CIE of unknown version"},
    {false, false, 1, "eh", {0}, 0, "CIE with an augmentation of unknown length"},
    {false, false, 1, "zX", {0}, 1, "CIE with an unknown augmentation letter"},
    {false, false, 1, "zR", {0}, 0, "CIE with an augmentation shorter than its letters say"},
    {false, false, 1, "zPR", {0x05, 0}, 2, "CIE with an augmentation shorter than its letters say"},
    {false,
     false,
     1,
     "zR",
     {EH_PE_datarel | EH_PE_sdata4},
     1,
     "CIE with a pointer encoding that JIT code can't have"},
    {false, false, 1, "zR", {0x80}, 1, "CIE with a pointer encoding that JIT code can't have"},
    {false,
     false,
     1,
     "zR",
     {EH_PE_uleb128},
     1,
     "CIE with a pointer encoding that JIT code can't have"},
};

static void check_fde(const struct byte_cursor *section, const struct form *form, size_t at,
                      const struct eh_cie *cie)
{
    struct eh_entry entry;
    struct eh_fde fde = {.cie = *cie};
    assert_true(eh_entry_open(section, at, form->debug, &entry));
    assert_false(entry.is_cie);
    assert_int_equal(entry.cie_at, 0);
    assert_int_equal(entry.next, section->size);
    assert_null(eh_fde_read(&entry.cursor, ADDRESS_BYTES, &fde));
    assert_int_equal(eh_fde_pc(&fde, 0), PC);
    assert_int_equal(fde.pc_range, CODE_BYTES);
    assert_int_equal(fde.instructions_bytes, 1);
    assert_int_equal(*fde.instructions, 0x0b);
}

static void check_form(const struct form *form)
{
    struct byte_sink sink;
    size_t fde = put_section(&sink, form);
    const struct byte_cursor section = byte_cursor_over(bytes, sink.size, false);
    struct eh_entry entry;
    struct eh_cie cie;
    assert_true(eh_entry_open(&section, 0, form->debug, &entry));
    assert_true(entry.is_cie);
    assert_int_equal(entry.next, fde);
    const char *wrong = eh_cie_read(&entry.cursor, ADDRESS_BYTES, &cie);
    if (form->wrong) {
        assert_non_null(wrong);
        assert_string_equal(wrong, form->wrong);
        return;
    }
    assert_null(wrong);
    assert_int_equal(cie.return_register, 16);
    assert_int_equal(cie.data_align, -8);
    assert_int_equal(cie.signal_frame, strchr(form->letters, 'S') != NULL);
    assert_int_equal(cie.instructions_bytes, 1);
    assert_int_equal(*cie.instructions, 0x0a);
    if (cie.fde_encoding == EH_PE_absptr)
        check_fde(&section, form, fde, &cie);
}

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        check_form(&forms[i]);
}

/* However much of a section is there: what is not is not read. */
static void test_cut_at_each_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct byte_sink sink;
        size_t fde = put_section(&sink, &forms[i]);
        for (size_t size = 0; size < sink.size; size++) {
            const struct byte_cursor section = byte_cursor_over(bytes, size, false);
            struct eh_entry entry;
            assert_int_equal(eh_entry_open(&section, 0, forms[i].debug, &entry), size >= fde);
            assert_false(eh_entry_open(&section, fde, forms[i].debug, &entry));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_cut_at_each_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
