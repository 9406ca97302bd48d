/* IR's functions in Linux perf: this file takes the place of IR's own ir_perf.c.  x86-64. */
#include "ir.h"
#include "ir_x86.h"
#include "ir_private.h"
#include "ir_perf.h"

#include "jitdump/cfi.h"

static struct jitdump *dump;
static struct jitdump_cfi *cfi;
static struct jitdump_unwind unwind; /* of the function that was emitted last; size 0: none is known */

int ir_perf_jitdump_open(void)
{
	cfi = jitdump_cfi_new(JITDUMP_X86_64);
	return jitdump_open(&dump, NULL) == 0;
}

int ir_perf_jitdump_close(void)
{
	jitdump_cfi_free(cfi);
	return jitdump_close(dump) == 0;
}

void ir_perf_frame(ir_ctx *ctx, const uint64_t *epilogues, size_t count, size_t size)
{
	bool pointer = (ctx->flags & IR_USE_FRAME_POINTER) != 0;
	struct jitdump_frame frame = {.kind = pointer ? JITDUMP_FRAME_POINTER : JITDUMP_FRAME_STACK,
		.flags = pointer ? JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_MOV_POP : 0,
		.epilogues = epilogues, .epilogue_count = count};
	for (int reg = IR_REG_GP_FIRST; reg <= IR_REG_GP_LAST; reg++) {
		if (IR_REGSET_IN((ir_regset)ctx->used_preserved_regs, reg)) {
			frame.saved[frame.saved_count++] = jitdump_dwarf_register(JITDUMP_X86_64, reg - IR_REG_GP_FIRST);
		}
	}
	frame.stack_bytes = ctx->stack_frame_size + ctx->call_stack_size - 8 * frame.saved_count;
	jitdump_cfi_reset(cfi);
	jitdump_cfi_frame(cfi, &frame);
	jitdump_cfi_finish(cfi, size, &unwind);
}

int ir_perf_jitdump_register(const char *name, const void *start, size_t size)
{
	struct jitdump_code code = JITDUMP_CODE_INIT;
	code.name = name;
	code.code_addr = (uintptr_t)start;
	code.code_size = size;
	code.bytes = start;
	code.unwind = &unwind;
	return jitdump_add_code(dump, &code, NULL) == 0;
}

void ir_perf_map_register(const char *name, const void *start, size_t size)
{
}
