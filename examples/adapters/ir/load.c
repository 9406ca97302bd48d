/* Something for IR to compile, with frame pointers and without: recursion, several returns, more values than registers, calls. */
#include "ir.h"
#include "ir_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef uint64_t (*function)(uint64_t);

static void *fib_entry[2]; /* without a frame pointer, and with one */

static uint64_t called_back(uint64_t x)
{
	volatile uint64_t sum = x;
	for (int i = 0; i < 20; i++)
		sum = sum * 3 + 1;
	return sum;
}

static ir_ref call_fib(ir_ctx *ctx, ir_ref x)
{
	void **entry = &fib_entry[(ctx->flags & IR_USE_FRAME_POINTER) != 0];
	return ir_CALL_1(IR_U64, ir_LOAD_A(ir_CONST_ADDR(entry)), x);
}

static void write_leaf(ir_ctx *ctx)
{
	ir_START();
	ir_ref x = ir_PARAM(IR_U64, "x", 1);
	for (int i = 0; i < 40; i++)
		x = ir_XOR_U64(ir_MUL_U64(x, ir_CONST_U64(i * 2 + 5)), ir_CONST_U64(i));
	ir_RETURN(x);
}

static void write_fib(ir_ctx *ctx)
{
	ir_START();
	ir_ref x = ir_PARAM(IR_U64, "x", 1);
	ir_ref is_small = ir_IF(ir_LT(x, ir_CONST_U64(2)));
	ir_IF_TRUE(is_small);
	ir_RETURN(x);
	ir_IF_FALSE(is_small);
	ir_ref a = call_fib(ctx, ir_SUB_U64(x, ir_CONST_U64(1)));
	ir_ref b = call_fib(ctx, ir_SUB_U64(x, ir_CONST_U64(2)));
	ir_RETURN(ir_ADD_U64(a, b));
}

enum { VALUES = 20 };

static void write_spills(ir_ctx *ctx)
{
	ir_ref values[VALUES], next[VALUES];
	ir_START();
	ir_ref x = ir_PARAM(IR_U64, "x", 1);
	for (int i = 0; i < VALUES; i++)
		values[i] = ir_ADD_U64(x, ir_CONST_U64(i * 77));
	ir_ref none = ir_CONST_U64(0);
	ir_ref loop = ir_LOOP_BEGIN(ir_END());
	ir_ref n = ir_PHI_2(IR_U64, none, IR_UNUSED), phis[VALUES];
	for (int i = 0; i < VALUES; i++)
		phis[i] = ir_PHI_2(IR_U64, values[i], IR_UNUSED);
	ir_ref back = ir_CALL_1(IR_U64, ir_CONST_ADDR(called_back), n);
	for (int i = 0; i < VALUES; i++)
		next[i] = ir_ADD_U64(ir_XOR_U64(phis[i], back), phis[(i + 3) % VALUES]);
	ir_ref n_next = ir_ADD_U64(n, ir_CONST_U64(1));
	ir_ref goes_on = ir_IF(ir_LT(n_next, ir_CONST_U64(50)));
	ir_IF_TRUE(goes_on);
	ir_MERGE_SET_OP(loop, 2, ir_LOOP_END());
	ir_PHI_SET_OP(n, 2, n_next);
	for (int i = 0; i < VALUES; i++)
		ir_PHI_SET_OP(phis[i], 2, next[i]);
	ir_IF_FALSE(goes_on);
	for (int i = 0; i < VALUES; i++)
		x = ir_ADD_U64(x, next[i]);
	ir_RETURN(x);
}

static uint64_t (*const jumped_to)(uint64_t) = called_back;

/* It keeps a value over a call, and ends with a jump. */
static void write_tail(ir_ctx *ctx)
{
	ir_START();
	ir_ref x = ir_PARAM(IR_U64, "x", 1);
	ir_ref a = ir_CALL_1(IR_U64, ir_CONST_ADDR(called_back), x);
	ir_ref sum = ir_ADD_U64(a, x);
	ir_TAILCALL_1(IR_U64, ir_LOAD_A(ir_CONST_ADDR(&jumped_to)), sum);
}

static const struct {
	const char *names[2];
	void (*write)(ir_ctx *ctx);
	uint64_t x;
} sources[] = {
	{{"leaf", "leaf_fp"}, write_leaf, 3},
	{{"fib", "fib_fp"}, write_fib, 12},
	{{"spills", "spills_fp"}, write_spills, 9},
	{{"tail", "tail_fp"}, write_tail, 5},
};

static void *compile(int i, int fp)
{
	ir_ctx ctx;
	size_t size;
	ir_init(&ctx, IR_FUNCTION | IR_OPT_FOLDING | (fp ? IR_USE_FRAME_POINTER : 0), IR_CONSTS_LIMIT_MIN, IR_INSNS_LIMIT_MIN);
	ctx.ret_type = IR_U64;
	sources[i].write(&ctx);
	void *entry = ir_jit_compile(&ctx, 2, &size);
	if (!entry)
		exit(1);
	ir_perf_jitdump_register(sources[i].names[fp], entry, size);
	ir_free(&ctx);
	return entry;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1.2;
	void *entries[4][2];
	uint64_t sum = 0;
	ir_perf_jitdump_open();
	for (int i = 0; i < 4; i++)
		for (int fp = 0; fp < 2; fp++)
			entries[i][fp] = compile(i, fp);
	fib_entry[0] = entries[1][0];
	fib_entry[1] = entries[1][1];
	while ((double)clock() / CLOCKS_PER_SEC < seconds)
		for (int i = 0; i < 8; i++)
			sum += ((function)entries[i / 2][i % 2])(sources[i / 2].x);
	puts(sum ? "done" : "nothing");
	return !ir_perf_jitdump_close();
}
