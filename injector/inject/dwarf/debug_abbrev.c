/* See debug_abbrev.h. */
#include "injector/inject/dwarf/debug_abbrev.h"

#include "injector/inject/dwarf/debug_room.h"

#include <dwarf.h>

struct attribute {
    uint8_t name, form; /* of all that are used here a byte is enough */
};

#define CALL_ATTRIBUTES                                                                            \
    {DW_AT_call_file, DW_FORM_udata}, {DW_AT_call_line, DW_FORM_udata},                            \
    {                                                                                              \
        DW_AT_call_column, DW_FORM_udata                                                           \
    }
#define FUNCTION_ATTRIBUTES                                                                        \
    {DW_AT_name, DW_FORM_strp}, {DW_AT_low_pc, DW_FORM_addr},                                      \
    {                                                                                              \
        DW_AT_high_pc, DW_FORM_data4                                                               \
    }

enum { MAX_ATTRIBUTES = 8 };

static const struct abbrev {
    uint8_t tag, children;
    struct attribute attributes[MAX_ATTRIBUTES];
} abbrevs[ABBREVS] = {
    [ABBREV_UNIT] = {DW_TAG_compile_unit,
                     DW_CHILDREN_yes,
                     {{DW_AT_producer, DW_FORM_strp},
                      {DW_AT_language, DW_FORM_data2},
                      {DW_AT_name, DW_FORM_strp},
                      {DW_AT_stmt_list, DW_FORM_sec_offset},
                      {DW_AT_low_pc, DW_FORM_addr},
                      {DW_AT_ranges, DW_FORM_sec_offset}}},
    [ABBREV_FUNCTION] = {DW_TAG_subprogram, DW_CHILDREN_no, {FUNCTION_ATTRIBUTES}},
    [ABBREV_FUNCTION_PARENT] = {DW_TAG_subprogram, DW_CHILDREN_yes, {FUNCTION_ATTRIBUTES}},
    [ABBREV_CALLEE] = {DW_TAG_subprogram,
                       DW_CHILDREN_no,
                       {{DW_AT_name, DW_FORM_strp},
                        {DW_AT_inline, DW_FORM_data1},
                        {DW_AT_decl_file, DW_FORM_udata},
                        {DW_AT_decl_line, DW_FORM_udata}}},
    [ABBREV_CALLEE_UNDECLARED] = {DW_TAG_subprogram,
                                  DW_CHILDREN_no,
                                  {{DW_AT_name, DW_FORM_strp}, {DW_AT_inline, DW_FORM_data1}}},
    [ABBREV_CALL] = {DW_TAG_inlined_subroutine,
                     DW_CHILDREN_no,
                     {{DW_AT_abstract_origin, DW_FORM_ref4},
                      {DW_AT_low_pc, DW_FORM_addr},
                      {DW_AT_high_pc, DW_FORM_data4},
                      CALL_ATTRIBUTES}},
    [ABBREV_CALL_PARENT] = {DW_TAG_inlined_subroutine,
                            DW_CHILDREN_yes,
                            {{DW_AT_abstract_origin, DW_FORM_ref4},
                             {DW_AT_low_pc, DW_FORM_addr},
                             {DW_AT_high_pc, DW_FORM_data4},
                             CALL_ATTRIBUTES}},
    [ABBREV_CALL_PIECES] = {DW_TAG_inlined_subroutine,
                            DW_CHILDREN_no,
                            {{DW_AT_abstract_origin, DW_FORM_ref4},
                             {DW_AT_ranges, DW_FORM_sec_offset},
                             CALL_ATTRIBUTES}},
    [ABBREV_CALL_PIECES_PARENT] = {DW_TAG_inlined_subroutine,
                                   DW_CHILDREN_yes,
                                   {{DW_AT_abstract_origin, DW_FORM_ref4},
                                    {DW_AT_ranges, DW_FORM_sec_offset},
                                    CALL_ATTRIBUTES}},
};

void debug_abbrev_put(struct byte_sink *sink)
{
    for (uint8_t code = 1; code < ABBREVS; code++) {
        debug_room(sink, 8 + 2 * MAX_ATTRIBUTES);
        sink_u8(sink, code);
        sink_u8(sink, abbrevs[code].tag);
        sink_u8(sink, abbrevs[code].children);
        for (size_t i = 0; i < MAX_ATTRIBUTES && abbrevs[code].attributes[i].name; i++) {
            sink_u8(sink, abbrevs[code].attributes[i].name);
            sink_u8(sink, abbrevs[code].attributes[i].form);
        }
        sink_u16(sink, 0);
    }
    debug_room(sink, 1);
    sink_u8(sink, 0);
}
