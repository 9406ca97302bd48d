/* See code_argument.h. */
#include "jitdump/code_argument.h"
#include "jitdump/guest/sized_struct.h"
#include "jitdump/inline_info.h"

int jd_struct_refuse(struct first_error *kept, int error, const char *name, const char *invalid)
{
    return jd_error_keep(kept, error, "struct %s: %s", name,
                         error == -E2BIG
                             ? "members that this version of libjitdump does not know are set"
                             : invalid);
}

/* More rows than a record can count need not be looked at: they are refused for their size. */
static const char *check_relative(const struct jitdump_code *code)
{
    if (code->line_count > UINT32_MAX)
        return NULL;
    for (size_t i = 0; i < code->line_count; i++)
        if (jd_row_offset(code, i) > code->code_size)
            return "JITDUMP_RELATIVE, and a row's addr is not an offset into the function";
    return NULL;
}

static const char *what_is_wrong(const struct jitdump_code *code)
{
    const struct jitdump_unwind *unwind = code->unwind;
    if (code->line_count && !code->lines)
        return "line_count is set, and lines is NULL";
    if (unwind && unwind->unwinding_size && !unwind->data)
        return "unwinding_size is set, and data is NULL";
    if (unwind && unwind->eh_frame_hdr_size > unwind->unwinding_size)
        return "eh_frame_hdr_size is more than unwinding_size, which includes it";
    if (code->flags & ~(uint64_t)JITDUMP_RELATIVE)
        return "an unknown flag is set";
    if (code->flags & JITDUMP_RELATIVE)
        return check_relative(code);
    return code->buffer_offset ? "buffer_offset is set, and JITDUMP_RELATIVE is not" : NULL;
}

/* Members of a later version, if the program says that it has some, must not be set. */
static int check_unwind(struct first_error *kept, const struct jitdump_code *code)
{
    struct jitdump_unwind known;
    if (!code->unwind || !code->unwind_size)
        return 0;
    int error =
        sized_struct_read(&known, sizeof known, code->unwind, code->unwind_size, sizeof known);
    return error ? jd_struct_refuse(kept, error, "jitdump_unwind", "unwind_size is not its size")
                 : 0;
}

int jd_code_read(struct first_error *kept, const struct jitdump_code **code,
                 struct jitdump_code *copy)
{
    const struct jitdump_code *given = *code;
    size_t least = offsetof(struct jitdump_code, code_size) + sizeof given->code_size;
    if (!given)
        return jd_struct_refuse(kept, -EINVAL, "jitdump_code", "is NULL");
    if (given->size != sizeof *given) {
        int error = sized_struct_read(copy, sizeof *copy, given, given->size, least);
        if (error)
            return jd_struct_refuse(kept, error, "jitdump_code",
                                    "size is not set (JITDUMP_CODE_INIT)");
        *code = copy;
    }
    const char *wrong = what_is_wrong(*code);
    return wrong ? jd_struct_refuse(kept, -EINVAL, "jitdump_code", wrong)
                 : check_unwind(kept, *code);
}
